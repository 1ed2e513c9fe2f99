//! Targets and the way to them: fence, band, obstacles, budgets, battery.

use super::*;

/// The verdict on a way so slow that it needs no room to stop.
fn way_code(fence: &Fence, from: Ned, to: Ned) -> &'static str {
    leg_code(fence, &Leg::new(from, to, Pace::even(0.0)))
}

fn leg_code(fence: &Fence, leg: &Leg) -> &'static str {
    way(&flying(), &Limits::default(), fence, leg).map_or_else(|refusal| refusal.code, |()| "ok")
}

/// Each row: start, target, verdict. The fence has a radius of 20 m around home, and its margin is 3 m.
#[test]
fn ways_stay_inside_the_fence_and_the_band() {
    let circle = Fence::RadiusM(20.0);
    let rows: &[(Ned, Ned, &str)] = &[
        ([0.0, 0.0, -5.0], [10.0, 0.0, -5.0], "ok"),
        ([0.0, 0.0, -5.0], [16.9, 0.0, -5.0], "ok"),
        ([0.0, 0.0, -5.0], [17.1, 0.0, -5.0], "fence"),
        ([0.0, 0.0, -5.0], [200.0, 0.0, -5.0], "fence"),
        ([0.0, 0.0, -5.0], [-12.1, 12.1, -5.0], "fence"),
        // A way that starts in the margin may lead further inside, but neither further out nor along the fence.
        ([18.0, 0.0, -5.0], [15.0, 0.0, -5.0], "ok"),
        ([18.0, 0.0, -5.0], [17.5, 0.0, -5.0], "ok"),
        ([18.0, 0.0, -5.0], [18.5, 0.0, -5.0], "fence"),
        ([22.0, 0.0, -5.0], [10.0, 0.0, -5.0], "ok"),
        // The altitude band.
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
    let leg = Leg::new([0.0; 3], [1.0, 0.0, -5.0], Pace::even(1.0));
    let refusal = way(&homeless, &Limits::default(), &circle, &leg).unwrap_err();
    assert_eq!(refusal.code, "no_home");
}

fn moves(velocity: Ned, acceleration: Ned) -> Pose {
    Pose {
        velocity,
        acceleration,
        ..flying().pose.unwrap()
    }
}

/// A vehicle that still speeds up from an earlier flight needs more room on a short leg. Each row: its velocity and
/// acceleration to the north, and the verdict on a leg of 1 m, 3 m before the margin.
#[test]
fn a_vehicle_that_speeds_up_is_not_sent_towards_the_fence() {
    for (mps, mps2, expected) in [
        (0.0, 0.0, "ok"),
        (0.9, 0.0, "ok"),
        (0.9, 3.0, "fence"),
        (1.2, 2.5, "fence"),
        (1.2, -2.0, "ok"),
        (-1.2, 3.0, "ok"),
    ] {
        let leg = Leg::new([13.0, 0.0, -5.0], [14.0, 0.0, -5.0], Pace::even(1.0));
        let leg = leg.moving(&moves([mps, 0.0, 0.0], [mps2, 0.0, 0.0]));
        assert_eq!(
            leg_code(&Fence::RadiusM(20.0), &leg),
            expected,
            "{mps} m/s, {mps2} m/s²"
        );
    }
}

/// Each row: start, target, pace, velocity at the start, verdict. The margin begins at 17 m.
#[test]
fn the_faster_a_way_the_more_room_it_needs_to_stop_in() {
    let circle = Fence::RadiusM(20.0);
    let (still, slow, px4) = ([0.0; 3], Pace::even(1.0), Pace::PX4);
    let fast = [4.0, 0.0, 0.0];
    let rows: &[(Ned, Ned, Pace, Ned, &str)] = &[
        ([0.0, 0.0, -5.0], [16.5, 0.0, -5.0], slow, still, "ok"),
        ([0.0, 0.0, -5.0], [16.7, 0.0, -5.0], slow, still, "fence"),
        ([0.0, 0.0, -5.0], [10.9, 0.0, -5.0], px4, still, "ok"),
        ([0.0, 0.0, -5.0], [11.1, 0.0, -5.0], px4, still, "fence"),
        // On a short way the vehicle never becomes that fast.
        ([15.0, 0.0, -5.0], [16.3, 0.0, -5.0], px4, still, "ok"),
        ([16.0, 0.0, -5.0], [16.9, 0.0, -5.0], px4, still, "fence"),
        // It does if it starts fast; a velocity on a way that leads away from the fence does not matter.
        ([15.0, 0.0, -5.0], [16.5, 0.0, -5.0], px4, fast, "fence"),
        ([15.0, 0.0, -5.0], [12.0, 0.0, -5.0], px4, fast, "ok"),
        // Up and down.
        ([0.0, 0.0, -5.0], [0.0, 0.0, -27.5], px4, still, "ok"),
        (
            [0.0, 0.0, -5.0],
            [0.0, 0.0, -27.6],
            px4,
            still,
            "altitude_ceiling",
        ),
        ([0.0, 0.0, -5.0], [0.0, 0.0, -29.5], slow, still, "ok"),
        ([0.0, 0.0, -29.0], [0.0, 0.0, -29.7], px4, still, "ok"),
        ([0.0, 0.0, -29.9], [5.0, 0.0, -29.9], px4, still, "ok"),
        ([0.0, 0.0, -5.0], [0.0, 0.0, -1.3], px4, still, "ok"),
        ([0.0, 0.0, -5.0], [0.0, 0.0, -1.0], px4, still, "altitude_floor"),
        ([0.0, 0.0, -2.0], [0.0, 0.0, -0.9], slow, still, "ok"),
        ([0.0, 0.0, -2.0], [0.0, 0.0, -0.7], slow, still, "altitude_floor"),
    ];
    for (from, to, pace, velocity, expected) in rows {
        let leg = Leg::new(*from, *to, *pace).moving(&moves(*velocity, [0.0; 3]));
        assert_eq!(leg_code(&circle, &leg), *expected, "{leg:?}");
    }
    // After a leg without a stop, a short leg may be as fast as a long one.
    let leg = Leg::new([15.0, 0.0, -5.0], [16.0, 0.0, -5.0], px4);
    assert_eq!(leg_code(&circle, &leg), "ok");
    assert_eq!(leg_code(&circle, &leg.after(30.0, 0.0)), "fence");
    // A waypoint that is flown through needs the whole stopping distance beyond it.
    let leg = Leg::new([0.0, 0.0, -5.0], [9.0, 0.0, -5.0], px4);
    assert_eq!(leg_code(&circle, &leg), "ok");
    assert_eq!(leg_code(&circle, &leg.through()), "fence");
}

/// Each row: the present height, and the lowest and highest height to which PX4's own flight may be sent in a band of
/// 0.5 to 30 m.
#[test]
fn heights_are_clamped_to_where_there_is_room_to_stop() {
    let limits = Limits::default();
    let mut adjusted: Vec<Adjustment> = Vec::new();
    for (now, lowest, highest) in [
        (5.0, 1.26, 27.53),
        (29.5, 1.26, 29.5),
        (35.0, 1.26, 30.0),
        (1.0, 1.0, 27.53),
        (0.0, 0.5, 27.53),
    ] {
        let found = band(&limits, Pace::PX4, now);
        assert!(
            (found.0 - lowest).abs() < 0.01 && (found.1 - highest).abs() < 0.01,
            "at {now}: {found:?}, expected {lowest} to {highest}"
        );
    }
    let takeoff = takeoff_band(row("takeoff").unwrap(), &limits);
    for (value, expected) in [(30.0, 29.24), (5.0, 5.0), (0.2, 1.0)] {
        let applied = takeoff.apply(value, &mut adjusted).unwrap();
        assert!(
            (applied - expected).abs() < 0.01,
            "{applied}, expected {expected}"
        );
    }
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

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every allowed way that starts inside, and its stopping distance, stay in the altitude band and inside the
        /// fence by its margin.
        #[test]
        fn an_allowed_way_never_leaves(
            to in prop::array::uniform3(-60.0..60.0f64),
            from in prop::array::uniform3(-16.0..16.0f64),
            part in 0.0..1.0f64,
            speed in 0.0..8.0f64,
        ) {
            let (fence, limits) = (Fence::RadiusM(20.0), Limits::default());
            let from = [from[0] * 0.7, from[1] * 0.7, -from[2].abs() - 0.6];
            prop_assume!(fence.inside(HOME, from) >= limits.fence_margin_m);
            let leg = Leg::new(from, to, Pace::even(speed));
            if way(&flying(), &limits, &fence, &leg).is_ok() {
                let to = leg.rests(limits.braking);
                let between: Ned = std::array::from_fn(|axis| from[axis] + (to[axis] - from[axis]) * part);
                prop_assert!(fence.inside(HOME, between) >= limits.fence_margin_m - 1e-9);
                prop_assert!((limits.min_alt_m - 1e-9..=limits.max_alt_m + 1e-9).contains(&-between[2]));
            }
        }
    }
}
