//! Joint, speed and workspace limits, in one place for every adapter.
//!
//! Owns the last check of an action before an adapter sees it. An action beyond the limits is refused and never
//! clamped, because a clamped movement is not the one that was asked for. Read [`check`].

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::{Action, LiftTarget, Motion, Velocity};
use crate::adapter::ActionError;
use crate::capability::{Capabilities, Joint};
use crate::spot::Spot;
use crate::step::Step;
use crate::subsystem::Subsystem;

/// The longest that the base is ever driven by one command.
pub const LONGEST_DRIVE: Duration = Duration::from_secs(120);
/// How far from the origin of its frame a base is ever sent, in metres.
pub const FARTHEST: f64 = 10_000.0;
/// Degrees, for `test_motor`.
pub const LARGEST_TEST: f64 = 30.0;
/// The rounding error of an angle that is computed in one unit and compared in another.
const ROUNDING: f64 = 1e-6;

/// Narrower limits than the robot's own. What is missing, or wider, changes nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Of joints, lift and hitch: the fraction of their largest speed that 1.0 stands for.
    #[schemars(range(min = 0.05, max = 1.0))]
    pub speed: Option<f64>,
    /// Forwards, backwards and sideways, m/s.
    #[schemars(range(min = 0.01, max = 5.0))]
    pub linear: Option<f64>,
    /// Turning, rad/s.
    #[schemars(range(min = 0.01, max = 10.0))]
    pub angular: Option<f64>,
    /// Degrees: `{"left_arm": {"elbow": [0, 90]}}`, by subsystem and joint.
    pub joints: BTreeMap<String, BTreeMap<String, [f64; 2]>>,
    /// How far the base may go from where it was when the toolbox was opened, in metres. For a robot that knows where its base is;
    /// others refuse it.
    #[schemars(range(min = 0.1))]
    pub radius: Option<f64>,
}

/// Checks an action against what the robot can do.
///
/// # Errors
/// [`ActionError::OutOfRange`] with the joint and its limits, [`ActionError::NotSupported`] where the robot lacks the
/// subsystem, [`ActionError::Refused`] where the number of joint angles is wrong.
pub fn check(robot: &str, capabilities: &Capabilities, action: &Action) -> Result<(), ActionError> {
    let on = action.subsystem;
    if !capabilities.has(on) {
        return Err(ActionError::NotSupported {
            robot: robot.to_string(),
            what: on.to_string(),
        });
    }
    match &action.motion {
        Some(Motion::Joints { positions, speed }) => {
            check_speed(*speed)?;
            check_positions(robot, capabilities, on, positions)
        }
        Some(Motion::Frames(frames)) => {
            for frame in frames {
                check_speed(frame.speed)?;
                within("hold", frame.hold, 0.0, 10.0, "s")?;
                check_positions(robot, capabilities, on, &frame.positions)?;
            }
            Ok(())
        }
        Some(Motion::Drive { velocity, duration }) => check_drive(robot, capabilities, velocity, *duration),
        Some(Motion::GoTo(spot)) => check_spot(robot, capabilities, spot),
        Some(Motion::Lift(to)) => check_lift(robot, capabilities, *to),
        None => match &action.step {
            Step::Grasp { force, .. } => within("force", *force, 0.0, 1.0, ""),
            Step::Hitch {
                grip_percent: Some(percent),
                ..
            } => within("grip_percent", *percent, 0.0, 100.0, "%"),
            Step::TestMotor { angle, .. } => within("angle", *angle, -LARGEST_TEST, LARGEST_TEST, "degrees"),
            _ => Ok(()),
        },
    }
}

/// Checks where a motion of the base ends, for a base that knows where it is now and where it was at the start.
///
/// # Errors
/// [`ActionError::OutOfRange`]: the motion would end outside of the radius, and farther out than the base is now. The
/// way back is always allowed. [`ActionError::Refused`]: the start is in another frame.
pub fn check_radius(
    capabilities: &Capabilities,
    action: &Action,
    start: &Spot,
    now: &Spot,
) -> Result<(), ActionError> {
    let Some(radius) = capabilities.base.as_ref().and_then(|base| base.radius) else {
        return Ok(());
    };
    let (end_x, end_y) = match &action.motion {
        Some(Motion::Drive { velocity, duration }) => {
            let seconds = duration.as_secs_f64();
            let (along, across) = (velocity.x * seconds, velocity.y * seconds);
            let (sin, cos) = now.heading.to_radians().sin_cos();
            (
                now.x + along * cos - across * sin,
                now.y + along * sin + across * cos,
            )
        }
        Some(Motion::GoTo(spot)) => (spot.x, spot.y),
        _ => return Ok(()),
    };
    if start.frame != now.frame {
        return Err(ActionError::Refused(format!(
            "the base now measures from another origin (frame {}, at the start {}), so bounds.radius cannot be checked: restart the \
             service to measure from where the base is then",
            now.frame, start.frame
        )));
    }
    let from = (now.x - start.x).hypot(now.y - start.y);
    let to = (end_x - start.x).hypot(end_y - start.y);
    if to <= from {
        return Ok(());
    }
    within("distance from the start", to, 0.0, radius, "m")
}

/// Checks joint angles of an arm or the gantry.
///
/// # Errors
/// As [`check`].
pub fn check_positions(
    robot: &str,
    capabilities: &Capabilities,
    on: Subsystem,
    positions: &[f64],
) -> Result<(), ActionError> {
    let joints = capabilities.joints(on).ok_or_else(|| ActionError::NotSupported {
        robot: robot.to_string(),
        what: format!("joint angles of {on}"),
    })?;
    if joints.len() != positions.len() {
        return Err(ActionError::Refused(format!(
            "{on} has {} joints ({}), got {} angles",
            joints.len(),
            names(joints),
            positions.len()
        )));
    }
    for (joint, position) in joints.iter().zip(positions) {
        within(
            &format!("{on} {}", joint.name),
            *position,
            joint.min,
            joint.max,
            "degrees",
        )?;
    }
    Ok(())
}

fn names(joints: &[Joint]) -> String {
    let names: Vec<&str> = joints.iter().map(|joint| joint.name.as_str()).collect();
    names.join(", ")
}

fn check_speed(speed: f64) -> Result<(), ActionError> {
    within("speed", speed, 0.05, 1.0, "")
}

fn check_drive(
    robot: &str,
    capabilities: &Capabilities,
    velocity: &Velocity,
    duration: Duration,
) -> Result<(), ActionError> {
    let Some(base) = &capabilities.base else {
        return Err(ActionError::NotSupported {
            robot: robot.to_string(),
            what: Subsystem::Base.to_string(),
        });
    };
    within(
        "base forwards",
        velocity.x,
        -base.max_linear,
        base.max_linear,
        "m/s",
    )?;
    within(
        "base sideways",
        velocity.y,
        -base.max_lateral,
        base.max_lateral,
        "m/s",
    )?;
    within(
        "base turn",
        velocity.turn,
        -base.max_angular,
        base.max_angular,
        "rad/s",
    )?;
    within(
        "base time",
        duration.as_secs_f64(),
        0.0,
        LONGEST_DRIVE.as_secs_f64(),
        "s",
    )
}

/// Checks that a base that finds its own way can be sent to a spot.
fn check_spot(robot: &str, capabilities: &Capabilities, spot: &Spot) -> Result<(), ActionError> {
    if capabilities.base.is_none() || !capabilities.services.navigates {
        return Err(ActionError::NotSupported {
            robot: robot.to_string(),
            what: "finding its own way".to_string(),
        });
    }
    within("x", spot.x, -FARTHEST, FARTHEST, "m")?;
    within("y", spot.y, -FARTHEST, FARTHEST, "m")?;
    within("heading", spot.heading, -180.0, 180.0, "degrees")
}

fn check_lift(robot: &str, capabilities: &Capabilities, to: LiftTarget) -> Result<(), ActionError> {
    let Some(lift) = &capabilities.lift else {
        return Err(ActionError::NotSupported {
            robot: robot.to_string(),
            what: Subsystem::Lift.to_string(),
        });
    };
    let span = lift.max - lift.min;
    match to {
        // The adapter ends the movement at the lift's limits, because the start is known only when it runs.
        LiftTarget::By(by) => within("lift by", by, -span, span, "mm"),
        LiftTarget::To(to) => within("lift to", to, lift.min, lift.max, "mm"),
    }
}

/// Checks that a number is in its range. NaN is out of every range.
fn within(what: &str, value: f64, min: f64, max: f64, unit: &'static str) -> Result<(), ActionError> {
    if value >= min - ROUNDING && value <= max + ROUNDING {
        return Ok(());
    }
    Err(ActionError::OutOfRange {
        what: what.to_string(),
        value,
        min,
        max,
        unit,
    })
}

/// Narrows what a robot can do to what the configuration allows.
///
/// # Errors
/// The configuration names a subsystem or joint that the robot lacks, or a range that leaves nothing.
pub fn narrow(robot: &str, capabilities: &mut Capabilities, bounds: &Bounds) -> Result<(), ActionError> {
    if let Some(speed) = bounds.speed {
        within("bounds.speed", speed, 0.05, 1.0, "")?;
        slow_down(capabilities, speed);
    }
    if let Some(base) = &mut capabilities.base {
        if let Some(linear) = bounds.linear {
            within("bounds.linear", linear, 0.01, 5.0, "m/s")?;
            base.max_linear = base.max_linear.min(linear);
            base.max_lateral = base.max_lateral.min(linear);
            base.usual_linear = base.usual_linear.min(linear);
        }
        if let Some(angular) = bounds.angular {
            within("bounds.angular", angular, 0.01, 10.0, "rad/s")?;
            base.max_angular = base.max_angular.min(angular);
        }
    }
    if let Some((radius, base)) = bounds.radius.zip(capabilities.base.as_mut()) {
        within("bounds.radius", radius, 0.1, 1e6, "m")?;
        base.radius = Some(radius);
    }
    for (name, joints) in &bounds.joints {
        let known = name.parse::<Subsystem>().ok();
        let own =
            known
                .and_then(|on| capabilities.joints_mut(on))
                .ok_or_else(|| ActionError::NotSupported {
                    robot: robot.to_string(),
                    what: format!("bounds.joints.{name}: it has no joints of that name"),
                })?;
        for (joint, [min, max]) in joints {
            narrow_joint(robot, name, own, joint, *min, *max)?;
        }
    }
    capabilities.fit_grippers();
    Ok(())
}

fn narrow_joint(
    robot: &str,
    on: &str,
    own: &mut [Joint],
    joint: &str,
    min: f64,
    max: f64,
) -> Result<(), ActionError> {
    let known = names(own);
    let Some(found) = own.iter_mut().find(|own| own.name == joint) else {
        return Err(ActionError::Refused(format!(
            "{robot}: bounds.joints.{on}.{joint}: no such joint; known are {known}"
        )));
    };
    let (low, high) = (found.min.max(min), found.max.min(max));
    if low >= high || !low.is_finite() || !high.is_finite() {
        return Err(ActionError::Refused(format!(
            "{robot}: bounds.joints.{on}.{joint}: nothing is left of {} to {} degrees within {min} to {max}",
            found.min, found.max
        )));
    }
    (found.min, found.max) = (low, high);
    Ok(())
}

fn slow_down(capabilities: &mut Capabilities, speed: f64) {
    for on in [Subsystem::LeftArm, Subsystem::RightArm, Subsystem::Gantry] {
        for joint in capabilities.joints_mut(on).into_iter().flatten() {
            joint.max_speed *= speed;
        }
    }
    for arm in [&mut capabilities.left_arm, &mut capabilities.right_arm] {
        if let Some(gripper) = arm.as_mut().and_then(|arm| arm.gripper.as_mut()) {
            gripper.max_speed *= speed;
        }
    }
    if let Some(lift) = &mut capabilities.lift {
        lift.max_speed *= speed;
    }
    if let Some(hitch) = &mut capabilities.hitch {
        hitch.max_speed *= speed;
    }
}
