//! The preconditions of the tools, and the refusal when one does not hold.

use super::*;

fn taken(failsafe: bool) -> OverrideCause {
    OverrideCause {
        how: "a pilot".into(),
        failsafe,
    }
}

fn code(tool: &str, facts: &Facts) -> &'static str {
    let row = row(tool).unwrap();
    require(row.needs, facts, &Limits::default()).map_or_else(|refusal| refusal.code, |()| "ok")
}

const MOVES: &[&str] = &[
    "set_yaw",
    "turn_cw",
    "turn_ccw",
    "move_forward",
    "move_left",
    "move_right",
    "move_up",
    "move_down",
    "goto_gps",
    "goto_local",
    "follow_path",
    "safe_approach_until",
    "scan",
    "orient_to_object",
    "track_object",
];

#[test]
fn every_tool_may_begin_where_everything_is_well() {
    for row in rows() {
        assert_eq!(code(row.tool, &good(row.tool)), "ok", "{}", row.tool);
    }
}

/// Each row: the tools, a change of the facts, and the code of the refusal.
#[test]
fn needs_that_do_not_hold_are_refused_and_so_are_unknown_ones() {
    type Change = fn(&mut Facts);
    let all_motion: Vec<&str> = [MOVES, &["arm", "takeoff"]].concat();
    let rows: &[(&[&str], Change, &str)] = &[
        (
            &all_motion,
            |f| f.trusted = Err("unknown vehicle".into()),
            "not_trusted",
        ),
        (
            &["land", "rtl", "hold", "disarm", "capture_photo"],
            |f| f.trusted = Err("unknown".into()),
            "not_trusted",
        ),
        (&all_motion, |f| f.link_ok = false, "link_down"),
        // A fixed wing, a VTOL, a rover, a helicopter, and a vehicle that has not reported what it is.
        (&all_motion, |f| f.kind = Some(1), "wrong_vehicle"),
        (&all_motion, |f| f.kind = Some(22), "wrong_vehicle"),
        (&all_motion, |f| f.kind = Some(10), "wrong_vehicle"),
        (&all_motion, |f| f.kind = Some(4), "wrong_vehicle"),
        (&all_motion, |f| f.kind = None, "no_telemetry"),
        (&all_motion, |f| f.kind = Some(14), "ok"),
        (&["land", "rtl", "hold", "disarm"], |f| f.kind = Some(1), "ok"),
        (MOVES, |f| f.overridden = Some(taken(true)), "failsafe"),
        (
            &["land", "rtl", "hold", "disarm", "start_video", "stop_video"],
            |f| f.link_ok = false,
            "link_down",
        ),
        (
            &all_motion,
            |f| f.overridden = Some(taken(false)),
            "pilot_override",
        ),
        (MOVES, |f| f.mode = Some(Mode::Posctl), "pilot_override"),
        (MOVES, |f| f.mode = Some(Mode::Manual), "pilot_override"),
        (&["arm"], |f| f.landed = Some(Landed::InAir), "in_air"),
        (&["arm"], |f| f.landed = None, "no_telemetry"),
        (&["arm"], |f| f.health = None, "no_telemetry"),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    gyro: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    accel: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    mag: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    local: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    global: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    home: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (
            &["arm"],
            |f| {
                f.health = Some(Health {
                    armable: false,
                    ..f.health.unwrap()
                })
            },
            "preflight",
        ),
        (&all_motion, |f| f.battery_pct = Some(24.9), "battery_low"),
        (&all_motion, |f| f.battery_pct = None, "no_battery_data"),
        (&["disarm"], |f| f.landed = Some(Landed::InAir), "in_air"),
        (&["disarm"], |f| f.landed = None, "no_telemetry"),
        (&["takeoff"], |f| f.armed = Some(false), "not_armed"),
        (&["takeoff"], |f| f.armed = None, "no_telemetry"),
        (&["takeoff"], |f| f.in_air = Some(true), "in_air"),
        (&["takeoff"], |f| f.in_air = None, "no_telemetry"),
        (
            &["takeoff", "goto_gps", "follow_path"],
            |f| {
                f.health = Some(Health {
                    global: false,
                    ..f.health.unwrap()
                })
            },
            "no_global_position",
        ),
        (
            &["takeoff", "goto_gps"],
            |f| {
                f.health = Some(Health {
                    home: false,
                    ..f.health.unwrap()
                })
            },
            "no_global_position",
        ),
        (MOVES, |f| f.armed = Some(false), "not_armed"),
        (MOVES, |f| f.in_air = Some(false), "not_in_air"),
        (MOVES, |f| f.in_air = None, "no_telemetry"),
        (MOVES, |f| f.pose = None, "stale_telemetry"),
        (
            &["goto_local", "move_up"],
            |f| {
                f.health = Some(Health {
                    local: false,
                    ..f.health.unwrap()
                })
            },
            "no_local_position",
        ),
        (MOVES, |f| f.home = None, "no_home"),
        (&["rtl"], |f| f.home = None, "no_home"),
        (&["rtl", "hold"], |f| f.in_air = Some(false), "not_in_air"),
        (
            &["capture_photo", "start_video", "stop_video"],
            |f| f.camera = None,
            "no_camera",
        ),
        (
            &[
                "is_visible",
                "object_pose",
                "count_objects",
                "scan",
                "orient_to_object",
                "safe_approach_until",
                "track_object",
            ],
            |f| f.vision = Err("stale".into()),
            "vision_unavailable",
        ),
    ];
    for (tools, change, expected) in rows {
        for tool in *tools {
            let mut facts = good(tool);
            change(&mut facts);
            assert_eq!(code(tool, &facts), *expected, "{tool}");
        }
    }
}

#[test]
fn safe_tools_and_questions_work_while_a_pilot_flies_or_the_battery_is_low() {
    for tool in [
        "land",
        "rtl",
        "hold",
        "vehicle_health",
        "battery_status",
        "vehicle_state",
        "scene_free_ahead",
        "log",
    ] {
        let mut facts = good(tool);
        facts.battery_pct = Some(3.0);
        facts.caller.operator = true;
        facts.overridden = Some(taken(false));
        facts.mode = Some(Mode::Posctl);
        assert_eq!(code(tool, &facts), "ok", "{tool}");
    }
    for tool in [
        "vehicle_health",
        "battery_status",
        "vehicle_state",
        "log",
        "emergency_brake",
    ] {
        let nothing = Facts {
            link_ok: false,
            pose: None,
            armed: None,
            in_air: None,
            health: None,
            ..flying()
        };
        assert_eq!(code(tool, &nothing), "ok", "{tool}");
    }
}

#[test]
fn why_it_will_not_arm_is_said() {
    let mut facts = standing();
    facts.health = Some(Health {
        mag: false,
        ..facts.health.unwrap()
    });
    let refusal = require(row("arm").unwrap().needs, &facts, &Limits::default()).unwrap_err();
    assert!(
        refusal.msg.contains("magnetometer") && refusal.msg.contains("Resolve system health"),
        "{refusal}"
    );
}
