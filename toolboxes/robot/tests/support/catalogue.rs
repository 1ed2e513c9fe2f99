//! Every tool once, with arguments that a robot that has everything can do.

use ovos_toolbox_sdk::testing::Harness;
use serde_json::{Value, json};

/// The tools of the toolbox; those that stop or lift a stop come last.
pub(crate) fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("wave", json!({"arm": "both", "style": "royal"})),
        (
            "move_arm",
            json!({"arm": "right", "position": "home", "speed": 1.0}),
        ),
        ("look_at", json!({"target": "left"})),
        ("nod", json!({"type": "yes", "intensity": "subtle"})),
        ("go_to_pose", json!({"pose": "arms_up"})),
        // Robots perform their own gestures and dances with arms that are at home.
        ("go_to_pose", json!({"pose": "home"})),
        ("express", json!({"emotion": "happy", "intensity": "subtle"})),
        ("gesture_while_speaking", json!({"enabled": true})),
        ("point_at_person", json!({"name": "Ada", "arm": "right"})),
        ("pick_object", json!({"object": "cup", "hand": "right"})),
        ("place_object", json!({"location": "table", "hand": "right"})),
        ("gripper", json!({"arm": "right", "action": "open"})),
        ("move_base", json!({"direction": "forward", "distance": 0.1})),
        (
            "walk",
            json!({"direction": "left", "speed": 0.1, "duration": 0.5}),
        ),
        ("spin", json!({"direction": "cw", "degrees": 20.0, "speed": 0.5})),
        ("turn", json!({"target": "left", "speed": 1.0})),
        ("remember_place", json!({"place": "Kitchen"})),
        ("move_base", json!({"direction": "forward", "distance": 0.1})),
        ("go_to_place", json!({"place": "kitchen"})),
        ("list_places", json!({})),
        ("forget_place", json!({"place": "kitchen"})),
        ("go_to_pose", json!({"pose": "home"})),
        ("dance", json!({"style": "happy", "duration": 1.0})),
        (
            "alert_hazard",
            json!({"hazard_type": "fire", "bearing_degrees": -20.0}),
        ),
        ("enable_fire_detection", json!({"enabled": true})),
        ("lift", json!({"action": "up", "distance_mm": 20})),
        ("hitch", json!({"action": "close"})),
        ("tow_cart", json!({"action": "attach"})),
        ("tow_cart", json!({"action": "detach"})),
        ("dock_charger", json!({"action": "dock", "verify_charge": false})),
        ("dock_charger", json!({"action": "undock"})),
        ("scan_motors", json!({"bus": "both"})),
        ("motor_status", json!({"subsystem": "right_arm"})),
        ("test_motor", json!({"bus": "right", "motor_id": 1, "angle": 5.0})),
        ("check_torque", json!({"subsystem": "right_arm"})),
        ("enable_torque", json!({"subsystem": "right_arm", "enable": true})),
        ("check_servos", json!({})),
        // What writes into servos needs them without power.
        ("enable_torque", json!({"subsystem": "all", "enable": false})),
        (
            "recover_servo",
            json!({"bus": "left", "motor_id": 3, "action": "reset_error"}),
        ),
        ("servo_health_report", json!({})),
        ("enable_degraded_mode", json!({"missing_servos": ["left:5"]})),
        ("enable_degraded_mode", json!({"missing_servos": []})),
        ("calibrate_arm", json!({"arm": "left", "mode": "quick"})),
        ("calibrate_gantry", json!({"mode": "center_only"})),
        ("calibrate_lift", json!({"find_limits": false})),
        ("calibrate_base", json!({"mode": "wheel_test"})),
        ("calibrate_hitch", json!({"mode": "set_home"})),
        ("enable_torque", json!({"subsystem": "all", "enable": false})),
        (
            "set_motor_id",
            json!({"bus": "right", "current_id": 6, "new_id": 20}),
        ),
        (
            "set_motor_id",
            json!({"bus": "right", "current_id": 20, "new_id": 6}),
        ),
        ("set_home_position", json!({"subsystem": "gantry"})),
        ("setup_robot", json!({"steps": ["scan", "calibrate_gantry"]})),
        ("self_test", json!({"subsystems": ["right_arm"], "verbose": true})),
        ("save_config", json!({"name": "usual", "subsystems": ["all"]})),
        ("enable_torque", json!({"subsystem": "all", "enable": false})),
        ("load_config", json!({"name": "usual"})),
        ("get_visible_people", json!({})),
        ("identify_person", json!({"position": "left"})),
        ("enroll_person", json!({"name": "Ada"})),
        ("get_speaker_direction", json!({})),
        ("identify_speaker", json!({})),
        ("enroll_voice", json!({"name": "Ada", "duration_seconds": 1})),
        ("get_known_people", json!({})),
        ("forget_person", json!({"name": "Ada"})),
        ("who_said_that", json!({})),
        ("look_at_speaker", json!({})),
        ("get_last_seen", json!({"name": "Ada"})),
        ("what_is_there", json!({})),
        ("stop", json!({})),
        ("reset_stop", json!({})),
    ]
}

/// What became of a call.
#[derive(Debug)]
pub(crate) enum Came {
    /// It is not in the list, because the robot cannot do it.
    Absent,
    Done(Value),
    /// The answer says that it failed, or there was an error.
    Failed(String),
}

/// Runs a tool if the robot has it.
pub(crate) fn run(harness: &Harness, listed: &[String], tool: &str, args: &Value) -> Came {
    if !listed.iter().any(|name| name == tool) {
        return Came::Absent;
    }
    match harness.invoke(tool, args.clone()) {
        Ok(output) if output["success"] == false => Came::Failed(output["message"].to_string()),
        Ok(output) => Came::Done(output),
        Err(failure) => Came::Failed(failure.message),
    }
}

pub(crate) fn listed(harness: &Harness) -> Vec<String> {
    harness.tools().into_iter().map(|tool| tool.name).collect()
}

/// Robots side by side: they wait most of the time.
pub(crate) fn each<T: Send + Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for row in rows {
            let check = &check;
            scope.spawn(move || check(row));
        }
    });
}
