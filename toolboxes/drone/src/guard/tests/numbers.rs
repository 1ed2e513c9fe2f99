//! Arguments, limits and fences: which values are clamped, and which are rejected.

use super::*;

/// Each row: the tool, the argument, its value, and the result: a number, or the code of the refusal.
#[test]
fn numbers_are_clamped_where_that_is_safe_and_rejected_where_it_is_not() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let rows: &[(&str, &str, f64, Result<f64, &str>)] = &[
        ("takeoff", "alt_m", 5.0, Ok(5.0)),
        ("takeoff", "alt_m", 1.0, Ok(1.0)),
        ("takeoff", "alt_m", 0.2, Ok(1.0)),
        ("takeoff", "alt_m", -4.0, Err("out_of_range")),
        ("takeoff", "alt_m", 31.0, Ok(30.0)),
        ("takeoff", "alt_m", 1e300, Ok(30.0)),
        ("takeoff", "alt_m", NAN, Err("not_finite")),
        ("takeoff", "alt_m", INF, Err("not_finite")),
        ("set_yaw", "deg", 180.0, Ok(180.0)),
        ("set_yaw", "deg", NAN, Err("not_finite")),
        ("turn_cw", "deg", 45.0, Ok(45.0)),
        ("turn_cw", "deg", 0.0, Ok(1.0)),
        ("turn_cw", "deg", 360.0, Ok(90.0)),
        ("turn_ccw", "deg", -30.0, Err("out_of_range")),
        ("turn_ccw", "deg", -INF, Err("not_finite")),
        ("move_forward", "cm", 100.0, Ok(100.0)),
        ("move_forward", "cm", 9.0, Ok(10.0)),
        ("move_forward", "cm", 301.0, Ok(300.0)),
        ("move_left", "cm", 1000.0, Ok(300.0)),
        ("move_right", "cm", -50.0, Err("out_of_range")),
        ("move_up", "cm", 500.0, Ok(300.0)),
        ("move_down", "cm", 0.0, Ok(10.0)),
        ("move_down", "cm", NAN, Err("not_finite")),
        ("hold", "ms", 0.0, Ok(0.0)),
        ("hold", "ms", -1.0, Ok(0.0)),
        ("hold", "ms", 60_000.0, Ok(5000.0)),
        ("goto_gps", "lat", 91.0, Err("out_of_range")),
        ("goto_gps", "lon", -180.1, Err("out_of_range")),
        ("goto_gps", "yaw_deg", NAN, Err("not_finite")),
        ("goto_local", "north_m", INF, Err("not_finite")),
        ("goto_local", "down_m", NAN, Err("not_finite")),
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
        let mut adjusted: Vec<Adjustment> = Vec::new();
        let result = row(tool)
            .unwrap()
            .number(arg, *value, &mut adjusted)
            .map_err(|refusal| refusal.code);
        assert_eq!(result, *expected, "{tool} {arg} {value}");
        let reported = adjusted
            .iter()
            .any(|one| one.arg() == *arg && one.numbers()["used"] == *expected.as_ref().unwrap_or(&0.0));
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
            check_position(lat, lon).map_or_else(|refusal| refusal.code, |()| "ok"),
            expected,
            "{lat} {lon}"
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
