//! The autopilot's rules that concern tools: arming, failsafes, the battery, the pilot. On virtual time.
use px4_sim::{
    Ack, Home, Landed, Mode, Quirks, Vehicle, World,
    geo::length,
    log::{Cause, What},
    params::Param,
    vehicle::{Health, Setpoint},
};

const STEP: f64 = 0.01;

fn pass(vehicle: &mut Vehicle, seconds: f64) {
    for _ in 0..(seconds / STEP) as usize {
        vehicle.step(STEP);
    }
}

fn booted() -> Vehicle {
    let world = World {
        things: Vec::new(),
        ..World::default()
    };
    let mut vehicle = Vehicle::new(Home::default(), Quirks::all(), world);
    pass(&mut vehicle, 5.0);
    vehicle
}

fn flying(height: f32) -> Vehicle {
    let mut vehicle = booted();
    vehicle
        .params
        .set("MIS_TAKEOFF_ALT", Param::Float(height))
        .unwrap();
    vehicle.arm();
    vehicle.takeoff();
    pass(&mut vehicle, 20.0);
    assert_eq!((vehicle.mode(), vehicle.landed()), (Mode::Hold, Landed::InAir));
    vehicle
}

fn modes(vehicle: &Vehicle) -> Vec<(Mode, Cause)> {
    let mode = |what: &What| match what {
        What::Mode { to, cause, .. } => Some((*to, *cause)),
        _ => None,
    };
    vehicle
        .log
        .since(0)
        .filter_map(|entry| mode(&entry.what))
        .collect()
}

#[test]
fn it_does_not_arm_while_a_sensor_fails_or_the_battery_is_empty() {
    let healthy = Health::default();
    let rows = [
        (healthy, 100.0, Ack::Accepted),
        (healthy, 5.0, Ack::Denied),
        (
            Health {
                gps: false,
                ..healthy
            },
            100.0,
            Ack::Denied,
        ),
        (
            Health {
                gyro: false,
                ..healthy
            },
            100.0,
            Ack::Denied,
        ),
        (
            Health {
                mag: false,
                ..healthy
            },
            100.0,
            Ack::Denied,
        ),
        (
            Health {
                home: false,
                ..healthy
            },
            100.0,
            Ack::Denied,
        ),
    ];
    for (health, battery, ack) in rows {
        let mut vehicle = booted();
        vehicle.health = health;
        vehicle.battery_pct = battery;
        assert_eq!(vehicle.arm(), ack, "{health:?} {battery}");
    }
}

#[test]
fn it_disarms_by_itself_when_it_does_not_take_off_and_after_landing() {
    let mut vehicle = booted();
    vehicle.arm();
    pass(&mut vehicle, 9.0);
    assert!(vehicle.armed());
    pass(&mut vehicle, 2.0);
    assert!(!vehicle.armed());

    let mut vehicle = flying(8.5);
    let start = vehicle.time();
    vehicle.land();
    while vehicle.armed() && vehicle.time() < start + 60.0 {
        vehicle.step(STEP);
    }
    let took = vehicle.time() - start;
    assert!((16.0..26.0).contains(&took), "landing from 8.1 m took {took} s");
    assert_eq!(vehicle.arm(), Ack::Accepted, "it can be flown again");
}

#[test]
fn a_takeoff_that_was_accepted_while_disarmed_happens_with_the_arming() {
    let mut vehicle = booted();
    vehicle.takeoff();
    pass(&mut vehicle, 5.0);
    assert_eq!(vehicle.landed(), Landed::OnGround);
    vehicle.arm();
    pass(&mut vehicle, 10.0);
    assert!(vehicle.height() > 1.5);
}

#[test]
fn offboard_needs_a_fresh_setpoint() {
    let mut vehicle = flying(5.0);
    assert_eq!(
        vehicle.set_mode(Mode::Offboard, Cause::Command),
        Ack::TemporarilyRejected
    );
    let here = Setpoint::Position {
        place: vehicle.body().position,
        velocity: None,
        yaw: None,
    };
    vehicle.take_setpoint(here);
    pass(&mut vehicle, 0.7);
    assert_eq!(
        vehicle.set_mode(Mode::Offboard, Cause::Command),
        Ack::TemporarilyRejected
    );
    vehicle.take_setpoint(here);
    assert_eq!(vehicle.set_mode(Mode::Offboard, Cause::Command), Ack::Accepted);
}

#[test]
fn a_low_battery_does_what_the_parameter_says() {
    let rows = [
        (0, 6.0, Mode::Hold),
        (3, 6.0, Mode::Return),
        (3, 4.0, Mode::Land),
        (2, 6.0, Mode::Land),
        (3, 14.0, Mode::Hold),
    ];
    for (action, battery, mode) in rows {
        let mut vehicle = flying(5.0);
        vehicle.params.set("COM_LOW_BAT_ACT", Param::Int(action)).unwrap();
        vehicle.battery_pct = battery;
        pass(&mut vehicle, 0.1);
        assert_eq!(vehicle.mode(), mode, "COM_LOW_BAT_ACT {action} at {battery} %");
    }
}

#[test]
fn a_silent_ground_station_does_what_the_parameter_says() {
    for (action, mode) in [
        (0, Mode::Hold),
        (1, Mode::Hold),
        (2, Mode::Return),
        (3, Mode::Land),
    ] {
        let mut vehicle = flying(5.0);
        vehicle.params.set("NAV_DLL_ACT", Param::Int(action)).unwrap();
        vehicle.hear_station();
        pass(&mut vehicle, 9.5);
        assert_eq!(vehicle.mode(), Mode::Hold);
        pass(&mut vehicle, 1.0);
        assert_eq!(vehicle.mode(), mode, "NAV_DLL_ACT {action}");
    }
}

#[test]
fn the_pilot_takes_over_and_the_log_knows_who_it_was() {
    let mut vehicle = flying(5.0);
    vehicle.sticks = [1.0, 0.0, 0.0];
    vehicle.set_mode(Mode::Posctl, Cause::Pilot);
    pass(&mut vehicle, 5.0);
    let forward = vehicle.body().velocity[0];
    assert!((0.1..2.0).contains(&forward), "{forward}");
    vehicle.sticks = [0.0; 3];
    pass(&mut vehicle, 8.0);
    assert!(length(vehicle.body().velocity) < 0.9);
    vehicle.failsafe(Mode::Land, "Failsafe activated");
    let mode_reports = modes(&vehicle);
    assert!(
        mode_reports.contains(&(Mode::Posctl, Cause::Pilot)),
        "{mode_reports:?}"
    );
    assert!(
        mode_reports.contains(&(Mode::Land, Cause::Failsafe)),
        "{mode_reports:?}"
    );
}

#[test]
fn without_a_position_it_lands() {
    let mut vehicle = flying(5.0);
    vehicle.health.gps = false;
    pass(&mut vehicle, 1.0);
    assert_eq!(vehicle.mode(), Mode::Land);
    pass(&mut vehicle, 30.0);
    assert_eq!((vehicle.landed(), vehicle.armed()), (Landed::OnGround, false));
}

#[test]
fn an_empty_battery_drops_it() {
    let mut vehicle = flying(5.0);
    vehicle.battery_pct = 0.01;
    pass(&mut vehicle, 5.0);
    assert!(!vehicle.armed() && vehicle.height() < 0.01);
}
