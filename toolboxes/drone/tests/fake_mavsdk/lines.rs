//! Flights as close to the fence, the ceiling and the floor as the guards allow each tool, stopped at instants
//! throughout. The vehicle never crosses a limit. On virtual time.
use std::time::Duration;

use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::World;

use crate::paused::{Paused, fly};

/// Radius of the fence around home, and the margin kept inside it, metres.
const RADIUS_M: f64 = 45.0;
const KEPT_M: f64 = 3.0;
const FLOOR_M: f64 = 0.5;
const CEILING_M: f64 = 30.0;
/// Telemetry has a resolution of centimetres.
const SLACK_M: f64 = 0.02;
/// Stops per flight, evenly distributed.
const STOPS: u32 = 8;

fn lat(north: f64) -> f64 {
    47.397_742 + (north / 6_371_000.0).to_degrees()
}

fn gps(north: f64, alt: f64) -> Value {
    json!({"lat": lat(north), "lon": 8.545_594, "alt_m": alt})
}

/// A flight towards a limit.
struct Push {
    tool: &'static str,
    /// Its start: metres north, and height.
    from: (f64, f64),
    /// Its arguments for a requested value, which starts at `most` and decreases by 0.1 m per refusal.
    args: fn(f64) -> Value,
    most: f64,
}

const PUSHES: &[Push] = &[
    Push {
        tool: "goto_gps",
        from: (0.0, 5.0),
        args: |north| gps(north, 5.0),
        most: 42.0,
    },
    Push {
        tool: "goto_local",
        from: (20.0, 5.0),
        args: |north| json!({"north_m": north, "east_m": 0, "down_m": -5}),
        most: 42.0,
    },
    Push {
        tool: "follow_path",
        from: (0.0, 5.0),
        args: |north| json!({"waypoints": [gps(10.0, 5.0), gps(north, 5.0)], "cruise_mps": 8}),
        most: 42.0,
    },
    Push {
        tool: "follow_path",
        from: (0.0, 5.0),
        args: |north| json!({"waypoints": [gps(north, 5.0), gps(0.0, 5.0)], "cruise_mps": 0.5}),
        most: 42.0,
    },
    Push {
        tool: "move_forward",
        from: (38.0, 5.0),
        args: |cm| json!({"cm": (cm * 100.0).round()}),
        most: 3.0,
    },
    Push {
        tool: "goto_gps",
        from: (0.0, 5.0),
        args: |alt| gps(0.0, alt),
        most: 30.0,
    },
    Push {
        tool: "goto_local",
        from: (0.0, 20.0),
        args: |up| json!({"north_m": 0, "east_m": 0, "down_m": -up}),
        most: 30.0,
    },
    Push {
        tool: "follow_path",
        from: (0.0, 5.0),
        args: |alt| json!({"waypoints": [gps(0.0, alt)]}),
        most: 30.0,
    },
    Push {
        tool: "move_up",
        from: (0.0, 26.5),
        args: |cm| json!({"cm": (cm * 100.0).round()}),
        most: 3.0,
    },
    Push {
        tool: "goto_gps",
        from: (0.0, 10.0),
        args: |low| gps(0.0, 3.0 - low),
        most: 3.0,
    },
    Push {
        tool: "goto_local",
        from: (0.0, 10.0),
        args: |low| json!({"north_m": 0, "east_m": 0, "down_m": low - 2.0}),
        most: 2.0,
    },
    Push {
        tool: "move_down",
        from: (0.0, 3.6),
        args: |cm| json!({"cm": (cm * 100.0).round()}),
        most: 3.0,
    },
];

async fn begin(paused: &Paused, from: (f64, f64)) {
    paused.fleet.resume().expect("no other party flies");
    let args = json!({"north_m": from.0, "east_m": 0, "down_m": -from.1, "yaw_deg": 0});
    paused.ok("goto_local", args).await;
    paused.ok("replan", json!({"reason": "again"})).await;
    paused.fake.lock().vehicle.reset_excursions();
}

/// The closest approach to the limits: metres inside the kept margin, below the ceiling, above the floor.
fn left(paused: &Paused) -> [f64; 3] {
    let seen = paused.fake.lock().vehicle.excursions();
    let above = seen.lowest_m.map_or(f64::INFINITY, |lowest| lowest - FLOOR_M);
    [RADIUS_M - KEPT_M - seen.radius_m, CEILING_M - seen.up_m, above]
}

fn judge(paused: &Paused, what: &str) {
    let left = left(paused);
    assert!(
        left.iter().all(|metres| *metres >= -SLACK_M),
        "{what}: beyond a line: {left:?}\n{}",
        paused.story()
    );
}

async fn push(paused: &Paused, push: &Push) {
    begin(paused, push.from).await;
    let mut most = push.most;
    let (answer, took) = loop {
        let began = paused.time();
        let answer = paused.fleet.call(push.tool, (push.args)(most)).await;
        if !["fence", "altitude_ceiling", "altitude_floor"]
            .contains(&answer["code"].as_str().unwrap_or_default())
        {
            break (answer, paused.time() - began);
        }
        most -= 0.1;
        assert!(
            most > push.most - 20.0,
            "{}: it never agreed: {answer}",
            push.tool
        );
    };
    let args = (push.args)(most);
    let what = format!("{} {args}", push.tool);
    assert_eq!(answer["ok"], true, "{what}: {answer}\n{}", paused.story());
    judge(paused, &what);
    let arrived = left(paused);
    let mut nearest = [f64::INFINITY; 3];
    for stop in 0..STOPS {
        begin(paused, push.from).await;
        // One while it accelerates, the others mostly in the second half, which comes close to the limits.
        let part = if stop == 0 {
            0.1
        } else {
            0.4 + 0.6 * f64::from(stop) / f64::from(STOPS)
        };
        let after = took * part;
        let emergency = stop % 2 == 0;
        {
            let call = paused.fleet.call(push.tool, args.clone());
            // The stop follows whether or not the call has ended.
            let _ = tokio::time::timeout(Duration::from_secs_f64(after), call).await;
        }
        paused.fleet.halt(emergency).await.expect("it is heard");
        paused.pass(12.0).await;
        judge(
            paused,
            &format!("{what}, stopped after {after:.2} s (emergency {emergency})"),
        );
        let now = left(paused);
        nearest = std::array::from_fn(|line| nearest[line].min(now[line]));
    }
    eprintln!("{what}: {arrived:.2?} m left on arrival, {nearest:.2?} m at the worst stop");
}

fn pushes(range: std::ops::Range<usize>) {
    let config = json!({"fence": {"radius_m": RADIUS_M},
        "flight_limits": {"max_replans": 10_000, "max_forward_m": 100.0}});
    let world = World {
        things: Vec::new(),
        ..World::default()
    };
    fly(config, world, |paused| async move {
        paused.take_off(5.0).await;
        for one in &PUSHES[range] {
            push(&paused, one).await;
        }
    });
}

#[test]
fn no_stop_carries_it_over_the_fence() {
    pushes(0..5);
}

#[test]
fn no_stop_carries_it_over_the_ceiling() {
    pushes(5..9);
}

#[test]
fn no_stop_carries_it_below_the_floor() {
    pushes(9..PUSHES.len());
}

#[test]
fn no_stop_of_a_takeoff_carries_it_over_the_ceiling() {
    for after in [14.0, 20.0, 21.0, 22.0, 22.5, 23.0, 24.0, 60.0] {
        let world = World {
            things: Vec::new(),
            ..World::default()
        };
        fly(json!({}), world, |paused| async move {
            paused.ok("arm", json!({})).await;
            {
                let call = paused.fleet.call("takeoff", json!({"alt_m": 30}));
                if let Ok(answer) = tokio::time::timeout(Duration::from_secs_f64(after), call).await {
                    assert_eq!(answer["ok"], true, "{answer}");
                    assert_eq!(
                        answer["clamped"]["alt_m"],
                        json!({"asked": 30.0, "used": 30.0 - 0.758_522_727_272_727_2}),
                        "{answer}"
                    );
                }
            }
            paused.fleet.halt(true).await.expect("it is heard");
            paused.pass(12.0).await;
            judge(&paused, &format!("takeoff stopped after {after} s"));
        });
    }
}
