//! Every guard as rows: what is accepted, clamped, rejected, and what happens when a fact is missing.

use super::fence::Fence;
use super::range::Adjusted;
use super::*;
use crate::geo::Origin;

const HOME: Home = Home {
    origin: Origin {
        lat: 47.397_742,
        lon: 8.545_594,
    },
    north_m: 0.0,
    east_m: 0.0,
    down_m: 0.0,
    amsl_m: 488.0,
    centre: [0.0, 0.0],
};

/// A vehicle that hovers at 5 m, healthy, full, and alone.
fn flying() -> Facts {
    Facts {
        trusted: Ok(()),
        link_ok: true,
        overridden: None,
        pose: Some(Pose {
            ned: [0.0, 0.0, -5.0],
            velocity: [0.0; 3],
            yaw_deg: 0.0,
            alt_m: 5.0,
            amsl_m: 493.0,
            lat: 47.397_742,
            lon: 8.545_594,
        }),
        armed: Some(true),
        in_air: Some(true),
        landed: Some(Landed::InAir),
        mode: Some(Mode::Hold),
        health: Some(Health {
            gyro: true,
            accel: true,
            mag: true,
            local: true,
            global: true,
            home: true,
            armable: true,
        }),
        battery_pct: Some(90.0),
        home: Some(HOME),
        free_ahead_m: Ok(10.0),
        vision: Ok(()),
        camera: Some(100),
        rotation_accum_deg: 0.0,
        forward_accum_m: 0.0,
        last_text: Some("Arming denied: Resolve system health failures first".to_string()),
    }
}

/// The same on the ground, disarmed.
fn standing() -> Facts {
    let mut facts = flying();
    facts.armed = Some(false);
    facts.in_air = Some(false);
    facts.landed = Some(Landed::OnGround);
    facts
}

fn armed() -> Facts {
    Facts {
        armed: Some(true),
        ..standing()
    }
}

/// Facts in which a tool may begin.
fn good(tool: &str) -> Facts {
    match tool {
        "arm" | "disarm" => standing(),
        "takeoff" => armed(),
        _ => flying(),
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

/// What is changed, for which tools, and what is said then.
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
        (
            &["land", "rtl", "hold", "disarm", "start_video", "stop_video"],
            |f| f.link_ok = false,
            "link_down",
        ),
        (
            &all_motion,
            |f| f.overridden = Some("a pilot".into()),
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
fn safe_tools_and_questions_work_while_somebody_else_flies_or_the_battery_is_low() {
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
        facts.overridden = Some("a pilot".into());
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

/// Tool, argument, value, and what becomes of it: a number, or the code of the refusal.
#[test]
fn numbers_are_clamped_where_that_is_safe_and_rejected_where_it_is_not() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let rows: &[(&str, &str, f64, Result<f64, &str>)] = &[
        ("takeoff", "alt_m", 5.0, Ok(5.0)),
        ("takeoff", "alt_m", 1.0, Ok(1.0)),
        ("takeoff", "alt_m", 0.2, Ok(1.0)),
        ("takeoff", "alt_m", -4.0, Ok(1.0)),
        ("takeoff", "alt_m", 31.0, Ok(30.0)),
        ("takeoff", "alt_m", 1e300, Ok(30.0)),
        ("takeoff", "alt_m", NAN, Err("not_finite")),
        ("takeoff", "alt_m", INF, Err("not_finite")),
        ("set_yaw", "deg", 180.0, Ok(180.0)),
        ("set_yaw", "deg", 270.0, Ok(180.0)),
        ("set_yaw", "deg", -181.0, Ok(-180.0)),
        ("set_yaw", "deg", NAN, Err("not_finite")),
        ("turn_cw", "deg", 45.0, Ok(45.0)),
        ("turn_cw", "deg", 0.0, Ok(1.0)),
        ("turn_cw", "deg", 360.0, Ok(90.0)),
        ("turn_ccw", "deg", -30.0, Ok(1.0)),
        ("turn_ccw", "deg", -INF, Err("not_finite")),
        ("move_forward", "cm", 100.0, Ok(100.0)),
        ("move_forward", "cm", 9.0, Ok(10.0)),
        ("move_forward", "cm", 301.0, Ok(300.0)),
        ("move_left", "cm", 1000.0, Ok(300.0)),
        ("move_right", "cm", -50.0, Ok(10.0)),
        ("move_up", "cm", 500.0, Ok(300.0)),
        ("move_down", "cm", 0.0, Ok(10.0)),
        ("move_down", "cm", NAN, Err("not_finite")),
        ("hold", "ms", 0.0, Ok(0.0)),
        ("hold", "ms", -1.0, Ok(0.0)),
        ("hold", "ms", 60_000.0, Ok(5000.0)),
        ("goto_gps", "lat", 91.0, Err("out_of_range")),
        ("goto_gps", "lon", -180.1, Err("out_of_range")),
        ("goto_gps", "yaw_deg", 400.0, Ok(180.0)),
        ("goto_gps", "yaw_deg", NAN, Err("not_finite")),
        ("goto_local", "north_m", INF, Err("not_finite")),
        ("goto_local", "down_m", -50.0, Ok(-30.0)),
        ("goto_local", "down_m", 3.0, Ok(-0.5)),
        ("follow_path", "cruise_mps", 0.1, Ok(0.5)),
        ("follow_path", "cruise_mps", 20.0, Ok(8.0)),
        ("is_visible", "conf_min", 0.0, Ok(0.0)),
        ("is_visible", "conf_min", 1.1, Err("out_of_range")),
        ("is_visible", "conf_min", -0.1, Err("out_of_range")),
        ("is_visible", "conf_min", NAN, Err("not_finite")),
        ("scene_free_ahead", "range_m", 0.1, Ok(0.5)),
        ("scene_free_ahead", "range_m", 50.0, Ok(10.0)),
        ("safe_approach_until", "stop_dist_m", 0.3, Ok(0.3)),
        ("safe_approach_until", "stop_dist_m", 0.2, Err("out_of_range")),
        ("safe_approach_until", "stop_dist_m", 3.1, Err("out_of_range")),
        ("safe_approach_until", "step_cm", 500.0, Ok(300.0)),
        ("scan", "step_deg", 2.0, Ok(5.0)),
        ("scan", "step_deg", 90.0, Ok(45.0)),
        ("scan", "max_steps", 40.0, Ok(12.0)),
        ("orient_to_object", "micro_deg", 90.0, Ok(45.0)),
        ("orient_to_object", "min", -0.1, Err("out_of_range")),
        ("orient_to_object", "max", 1.1, Err("out_of_range")),
        ("track_object", "horizon_s", 0.0, Ok(0.5)),
        ("track_object", "horizon_s", 600.0, Ok(30.0)),
    ];
    for (tool, arg, value, expected) in rows {
        let mut adjusted: Vec<Adjusted> = Vec::new();
        let result = row(tool)
            .unwrap()
            .number(arg, *value, &mut adjusted)
            .map_err(|refusal| refusal.code);
        assert_eq!(result, *expected, "{tool} {arg} {value}");
        let reported = adjusted
            .iter()
            .any(|one| one.arg() == *arg && one.numbers()["applied"] == *expected.as_ref().unwrap_or(&0.0));
        assert_eq!(
            reported,
            result.is_ok_and(|applied| applied != *value),
            "{tool} {arg} {value}: {adjusted:?}"
        );
    }
}

#[test]
fn places_on_earth() {
    for (lat, lon, expected) in [
        (47.4, 8.5, "ok"),
        (90.0, -180.0, "ok"),
        (90.1, 0.0, "out_of_range"),
        (0.0, 180.1, "out_of_range"),
        (0.0, 0.0, "out_of_range"),
        (f64::NAN, 8.0, "not_finite"),
        (47.0, f64::INFINITY, "not_finite"),
    ] {
        assert_eq!(
            place(lat, lon).map_or_else(|refusal| refusal.code, |()| "ok"),
            expected,
            "{lat} {lon}"
        );
    }
}

fn way_code(fence: &Fence, from: Ned, to: Ned) -> &'static str {
    way(&flying(), &Limits::default(), fence, from, to).map_or_else(|refusal| refusal.code, |()| "ok")
}

/// From, to, verdict; the fence is 20 m around home and 3 m are kept.
#[test]
fn ways_stay_inside_the_fence_and_the_band() {
    let circle = Fence::RadiusM(20.0);
    let rows: &[(Ned, Ned, &str)] = &[
        ([0.0, 0.0, -5.0], [10.0, 0.0, -5.0], "ok"),
        ([0.0, 0.0, -5.0], [16.9, 0.0, -5.0], "ok"),
        ([0.0, 0.0, -5.0], [17.1, 0.0, -5.0], "fence"),
        ([0.0, 0.0, -5.0], [200.0, 0.0, -5.0], "fence"),
        ([0.0, 0.0, -5.0], [-12.1, 12.1, -5.0], "fence"),
        // Already in the margin: further in, never further out or along.
        ([18.0, 0.0, -5.0], [15.0, 0.0, -5.0], "ok"),
        ([18.0, 0.0, -5.0], [17.5, 0.0, -5.0], "ok"),
        ([18.0, 0.0, -5.0], [18.5, 0.0, -5.0], "fence"),
        ([22.0, 0.0, -5.0], [10.0, 0.0, -5.0], "ok"),
        // The band.
        ([0.0, 0.0, -5.0], [0.0, 0.0, -30.0], "ok"),
        ([0.0, 0.0, -5.0], [0.0, 0.0, -30.1], "altitude_ceiling"),
        ([0.0, 0.0, -5.0], [0.0, 0.0, -0.5], "ok"),
        ([0.0, 0.0, -5.0], [0.0, 0.0, -0.4], "altitude_floor"),
        ([0.0, 0.0, -0.4], [0.0, 0.0, -0.45], "ok"),
        ([0.0, 0.0, -31.0], [0.0, 0.0, -30.5], "ok"),
        ([0.0, 0.0, -5.0], [f64::NAN, 0.0, -5.0], "not_finite"),
        ([0.0, 0.0, -5.0], [0.0, f64::INFINITY, -5.0], "not_finite"),
    ];
    for (from, to, expected) in rows {
        assert_eq!(way_code(&circle, *from, *to), *expected, "{from:?} to {to:?}");
    }
    let homeless = Facts {
        home: None,
        ..flying()
    };
    let refusal = way(&homeless, &Limits::default(), &circle, [0.0; 3], [1.0, 0.0, -5.0]).unwrap_err();
    assert_eq!(refusal.code, "no_home");
}

#[test]
fn a_polygon_may_be_concave_and_the_way_is_judged_not_only_its_end() {
    // A U, open to the north: two arms with a gap between them.
    let corners = [
        [30.0, -30.0],
        [30.0, -10.0],
        [-10.0, -10.0],
        [-10.0, 10.0],
        [30.0, 10.0],
        [30.0, 30.0],
        [-30.0, 30.0],
        [-30.0, -30.0],
    ];
    let global = |[north, east]: [f64; 2]| {
        let (lat, lon) = HOME.origin.global(north, east);
        [lat, lon]
    };
    let fence = Fence::Polygon(corners.into_iter().map(global).collect());
    assert_eq!(fence.check(&Limits::default()), Ok(()));
    for (from, to, expected) in [
        ([20.0, -20.0, -5.0], [-20.0, -20.0, -5.0], "ok"),
        ([-20.0, -20.0, -5.0], [-20.0, 20.0, -5.0], "ok"),
        ([20.0, -20.0, -5.0], [20.0, 20.0, -5.0], "fence"),
        ([20.0, -20.0, -5.0], [20.0, -12.0, -5.0], "fence"),
        ([-20.0, 0.0, -5.0], [0.0, 0.0, -5.0], "fence"),
    ] {
        assert_eq!(way_code(&fence, from, to), expected, "{from:?} to {to:?}");
    }
}

#[test]
fn what_stands_ahead_and_what_is_not_known_blocks() {
    for (free, dist, expected) in [
        (Ok(2.0), 1.0, "ok"),
        (Ok(1.5), 1.0, "ok"),
        (Ok(1.49), 1.0, "blocked"),
        (Ok(0.0), 0.1, "blocked"),
        (Err("stale".to_string()), 0.1, "no_obstacle_data"),
    ] {
        let facts = Facts {
            free_ahead_m: free.clone(),
            ..flying()
        };
        let result = ahead(&facts, dist, AHEAD_MARGIN_M).map_or_else(|refusal| refusal.code, |_| "ok");
        assert_eq!(result, expected, "{free:?} {dist}");
    }
}

#[test]
fn budgets_end() {
    let limits = Limits::default();
    for (used, more, expected) in [
        (0.0, 360.0, true),
        (330.0, 30.0, true),
        (330.0, 31.0, false),
        (360.0, 1.0, false),
    ] {
        let facts = Facts {
            rotation_accum_deg: used,
            ..flying()
        };
        assert_eq!(
            rotation(&facts, &limits, more).is_ok(),
            expected,
            "{used} + {more} deg"
        );
    }
    for (used, more, expected) in [
        (0.0, 3.0, true),
        (2.0, 3.0, true),
        (2.5, 3.0, false),
        (5.0, 0.1, false),
    ] {
        let facts = Facts {
            forward_accum_m: used,
            ..flying()
        };
        assert_eq!(
            forward(&facts, &limits, more).is_ok(),
            expected,
            "{used} + {more} m"
        );
    }
}

#[test]
fn the_battery_has_to_bring_it_home_again() {
    let limits = Limits::default();
    for (pct, target, expected) in [
        (Some(90.0), [100.0, 0.0, -5.0], "ok"),
        (Some(26.0), [5.0, 0.0, -5.0], "ok"),
        (Some(26.0), [100.0, 0.0, -5.0], "battery_low"),
        (None, [5.0, 0.0, -5.0], "no_battery_data"),
    ] {
        let facts = Facts {
            battery_pct: pct,
            ..flying()
        };
        let result = battery_for(&facts, &limits, [0.0, 0.0, -5.0], target);
        assert_eq!(
            result.map_or_else(|refusal| refusal.code, |()| "ok"),
            expected,
            "{pct:?} {target:?}"
        );
    }
}

#[test]
fn limits_and_fences_that_cannot_be_are_refused_by_name() {
    let wrong = [
        Limits {
            max_alt_m: 500.0,
            ..Limits::default()
        },
        Limits {
            min_battery_pct: 0.0,
            ..Limits::default()
        },
        Limits {
            fence_margin_m: f64::NAN,
            ..Limits::default()
        },
        Limits {
            min_alt_m: 29.5,
            ..Limits::default()
        },
    ];
    for limits in wrong {
        assert!(
            limits.check().is_err_and(|text| text.contains("flight_limits.")),
            "{limits:?}"
        );
    }
    assert_eq!(Limits::default().check(), Ok(()));
    for fence in [
        Fence::RadiusM(2.0),
        Fence::RadiusM(f64::INFINITY),
        Fence::Polygon(vec![[47.0, 8.0]; 2]),
    ] {
        assert!(fence.check(&Limits::default()).is_err(), "{fence:?}");
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever way is allowed from inside, all of it stays inside with the margin, and in the band.
        #[test]
        fn an_allowed_way_never_leaves(
            to in prop::array::uniform3(-60.0..60.0f64),
            from in prop::array::uniform3(-16.0..16.0f64),
            part in 0.0..1.0f64,
        ) {
            let (fence, limits) = (Fence::RadiusM(20.0), Limits::default());
            let from = [from[0] * 0.7, from[1] * 0.7, -from[2].abs() - 0.6];
            prop_assume!(fence.inside(HOME, from) >= limits.fence_margin_m);
            if way(&flying(), &limits, &fence, from, to).is_ok() {
                let between: Ned = std::array::from_fn(|axis| from[axis] + (to[axis] - from[axis]) * part);
                prop_assert!(fence.inside(HOME, between) >= limits.fence_margin_m - 1e-9);
                prop_assert!((limits.min_alt_m - 1e-9..=limits.max_alt_m + 1e-9).contains(&-between[2]));
            }
        }
    }
}
