//! What the README says of the servos is what the robots' data files say.

use robot::capability::{Bus, Capabilities, Motor};
use robot::subsystem::Subsystem;

use crate::servos::known;

/// A servo with the range of what it moves, as the README has it.
fn servo(robot: &Capabilities, motor: &Motor) -> String {
    let (id, name) = (motor.id, &motor.name);
    let joint = || {
        robot
            .joints(motor.subsystem)?
            .iter()
            .find(|joint| joint.name == *name)
    };
    let range = match motor.subsystem {
        Subsystem::Base => None,
        Subsystem::Lift => robot.lift.as_ref().map(|lift| (lift.min, lift.max)),
        Subsystem::Hitch => robot.hitch.as_ref().map(|hitch| (hitch.open, hitch.closed)),
        _ => Some(joint().map(|joint| (joint.min, joint.max)).unwrap()),
    };
    match range {
        Some((min, max)) => format!("{id} {name} ({min} to {max})"),
        None => format!("{id} {name}"),
    }
}

fn row(robot: &Capabilities, bus: &Bus, part: Subsystem) -> String {
    let motors = bus.motors.iter().filter(|motor| motor.subsystem == part);
    let servos: Vec<String> = motors.map(|motor| servo(robot, motor)).collect();
    format!(
        "\n| `{}` | `{part}` | {} |\n",
        bus.name.as_str(),
        servos.join(", ")
    )
}

#[test]
fn the_readme_has_every_servo_and_range() {
    let readme = include_str!("../../README.md");
    let mut rows = 0;
    for kind in ["johnny5", "lekiwi"] {
        let robot = known(kind).capabilities;
        for bus in &robot.buses {
            for part in bus.subsystems() {
                let row = row(&robot, bus, part);
                assert!(readme.contains(&row), "{}: the README has no{row}", robot.model);
                rows += 1;
            }
        }
    }
    assert_eq!(
        readme.matches("\n| `left` | `").count() + readme.matches("\n| `right` | `").count(),
        rows
    );
}
