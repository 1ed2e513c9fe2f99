//! The approach to an object: short steps, a fresh detection before each, and a measured end.
//!
//! A hovering vehicle drifts around its setpoint by half a metre and more. Therefore each detection places the object
//! on the map, and each step moves the setpoint rather than starting from the present position. Read [`Course::run`].

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;

use super::policy::{HALF_VIEW_DEG, LOST, TURNS, detect, height_hint};
use super::{motion, perception};
use crate::answer::{Outcome, Reply};
use crate::geo::{from_body, wrap_deg};
use crate::guard::{self, Refusal, Row, refuse, whole};
use crate::vehicle::{Call, Flying, Target};

/// Greatest number of steps.
const STEPS: u64 = 20;
/// Greatest number of consecutive steps that do not arrive.
const HELD_BACK: u32 = 2;
/// Time limit of an approach, vehicle time; the timeout of the tool is longer.
const ENOUGH: Duration = Duration::from_secs(120);
/// How long to wait for an object that is out of the picture, vehicle time: near it, a hovering vehicle drifts until
/// the object leaves the picture and is back within 8 to 16 s.
const BACK_WITHIN: Duration = Duration::from_secs(16);
/// Greatest error of the heading without a turn before the next step, degrees.
const COURSE_DEG: f64 = 10.0;
/// The shortest step, metres.
const SHORTEST_M: f64 = 0.1;
/// Duration of the final measurement, vehicle time. It ends after `STEADY_AFTER` when the distance varies by less than
/// `STEADY_M`.
const MEASURED: Duration = Duration::from_secs(12);
const STEADY_AFTER: Duration = Duration::from_secs(3);
const STEADY_M: f64 = 0.1;
/// Fewest detections that make a measurement.
const LOOKS: usize = 5;
/// Greatest number of measurements; each corrects the object's position.
const MEASUREMENTS: u32 = 3;
/// Tolerance of the requested distance, metres.
const REACHED_M: f64 = 0.25;
/// A detection farther than this from the object's position is another object, metres.
const OTHER_M: f64 = 1.0;
/// Weight of the newest detection in the object's position.
const NEWEST: f64 = 0.5;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproachArgs {
    /// Such as `red cup`.
    object: String,
    /// Metres to keep from it, 0.3 to 3.
    stop_dist_m: f64,
    /// Centimetres per step, 10 to 300.
    #[serde(default = "default_step_cm", deserialize_with = "whole")]
    #[schemars(with = "i64")]
    step_cm: f64,
}

fn default_step_cm() -> f64 {
    50.0
}

pub(crate) async fn approach(call: &Call, row: &Row, args: ApproachArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let object = perception::name("object", &args.object)?;
    let stop_m = row.number("stop_dist_m", args.stop_dist_m, &mut adjusted)?;
    let step_m = row.number("step_cm", args.step_cm, &mut adjusted)? / 100.0;
    call.vehicle
        .change_flight(|flight| flight.goal = Some(format!("approach {object} to {stop_m} m")));
    let mut course = Course {
        call,
        object,
        stop_m,
        step_m,
        steps: 0,
        last: None,
        last_y: 0.5,
        place: None,
    };
    let ended = course.run().await;
    let reply = match ended {
        Ok(dist) => Reply::done(format!("{object} is {dist:.2} m away")).with("reached", true),
        Err(refusal) => Reply::from(refusal).with("reached", false),
    };
    let reply = reply.with("steps", course.steps).clamped(adjusted);
    Ok(match course.last {
        Some(dist) => reply.with("final_dist_m", (dist * 1000.0).round() / 1000.0),
        None => reply,
    })
}

/// State of an approach.
struct Course<'a> {
    call: &'a Call,
    object: &'a str,
    stop_m: f64,
    step_m: f64,
    steps: u64,
    /// The distance last measured or detected, metres.
    last: Option<f64>,
    /// Where it was in the picture, from the top edge.
    last_y: f64,
    /// The object's position, north and east.
    place: Option<[f64; 2]>,
}

/// The rest of the approach.
struct Way {
    /// Compass heading from the setpoint to the object.
    bearing_deg: f64,
    /// Metres from the setpoint to the stopping point.
    left_m: f64,
}

impl Course<'_> {
    /// Runs the approach; returns the distance measured at the end.
    async fn run(&mut self) -> Result<f64, Refusal> {
        let (call, began) = (self.call, Instant::now());
        let (mut turns, mut held_back, mut measured) = (0, 0, 0);
        let mut whole_m = None;
        loop {
            let seen = self.see().await?;
            let way = self.way()?;
            let whole_m = *whole_m.get_or_insert(way.left_m.max(0.01));
            let facts = call.vehicle.facts();
            let budget_m = guard::forward_left(&facts, &call.vehicle.config.flight_limits);
            let to_go_m = way.left_m.min(budget_m);
            let over = self.steps >= STEPS || call.vehicle.clock.since(began) > ENOUGH;
            if over || way.left_m < SHORTEST_M || to_go_m < SHORTEST_M {
                let dist = self.measure().await?;
                measured += 1;
                let off = dist - self.stop_m;
                // An approach that starts too close does not move back.
                if off.abs() <= REACHED_M || off < 0.0 && self.steps == 0 {
                    return Ok(dist);
                }
                if way.left_m >= SHORTEST_M && to_go_m < SHORTEST_M {
                    let spent = guard::forward(&facts, &call.vehicle.config.flight_limits, way.left_m);
                    call.judged("forward", spent)?;
                }
                if over || measured == MEASUREMENTS {
                    return refuse(
                        "not_reached",
                        format!(
                            "{} is still {dist:.2} m away after {} steps, the target was {} m",
                            self.object, self.steps, self.stop_m
                        ),
                    );
                }
                continue;
            }
            let off_course = wrap_deg(way.bearing_deg - Flying::new(call).pose()?.yaw_deg);
            if off_course.abs() > COURSE_DEG {
                // A step straight ahead would miss the object. A turn is no step and has its own limit.
                if turns == TURNS {
                    return refuse(
                        "not_centered",
                        format!("{} is at x {:.2} after {TURNS} turns", self.object, seen.x),
                    );
                }
                motion::turn(call, off_course).await?;
                turns += 1;
                continue;
            }
            call.progress(
                1.0 - way.left_m.min(whole_m) / whole_m,
                &format!("{} is {:.2} m away", self.object, seen.dist_m),
            );
            // The object itself is ahead, at the requested distance.
            let margin_m = guard::AHEAD_MARGIN_M.min(self.stop_m * 0.8);
            let step_m = to_go_m.min(self.step_m);
            match motion::step_ahead(call, way.bearing_deg, step_m, margin_m).await {
                Ok(()) => held_back = 0,
                // The next detection shows where the drift has left the vehicle.
                Err(refusal) if refusal.code == "not_reached" && held_back < HELD_BACK => held_back += 1,
                Err(refusal) => return Err(refusal),
            }
            self.steps += 1;
        }
    }

    /// The next detection of the object. Waits for an object that was detected before and has left the picture.
    async fn see(&mut self) -> Result<Sight, Refusal> {
        let call = self.call;
        let began = Instant::now();
        let mut lost = 0;
        loop {
            if let Some(sight) = self.glance().await? {
                return Ok(sight);
            }
            lost += 1;
            let gone = call.vehicle.clock.since(began);
            match self.last {
                None if lost >= LOST => {
                    return refuse(
                        "not_found",
                        format!("{} is not in the picture: call scan", self.object),
                    );
                }
                Some(dist) if lost >= LOST && gone > BACK_WITHIN => {
                    let hint = height_hint(self.last_y, Some(dist));
                    return refuse(
                        "not_found",
                        format!(
                            "{} has not been in the picture for {:.0} s; it was {dist:.2} m away{}",
                            self.object,
                            gone.as_secs_f64(),
                            hint.map_or(String::new(), |hint| format!("; {hint}"))
                        ),
                    );
                }
                _ => {}
            }
        }
    }

    /// Looks at the next picture and updates the object's position.
    async fn glance(&mut self) -> Result<Option<Sight>, Refusal> {
        let (call, object) = (self.call, self.object);
        let flying = Flying::new(call);
        let hovers = flying.pose()?;
        flying.allowed(Target {
            ned: flying.place()?,
            yaw_deg: hovers.yaw_deg,
        })?;
        let Some(seen) = detect(call, object, Instant::now()).await? else {
            return Ok(None);
        };
        let Some(dist_m) = seen.distance() else {
            return refuse("no_depth", format!("how far {object} is, is not known"));
        };
        let pose = flying.pose()?;
        let bearing_deg = pose.yaw_deg + (seen.x - 0.5) * 2.0 * HALF_VIEW_DEG;
        let [north, east] = from_body(dist_m, 0.0, bearing_deg);
        let found = [pose.ned[0] + north, pose.ned[1] + east];
        self.place = Some(match self.place {
            Some(place) if (found[0] - place[0]).hypot(found[1] - place[1]) < OTHER_M => {
                std::array::from_fn(|axis| place[axis] + NEWEST * (found[axis] - place[axis]))
            }
            _ => found,
        });
        (self.last, self.last_y) = (Some(dist_m), seen.y);
        Ok(Some(Sight { x: seen.x, dist_m }))
    }

    /// From the setpoint to the stopping point.
    fn way(&self) -> Result<Way, Refusal> {
        let from = Flying::new(self.call).place()?;
        let place = self.place.unwrap_or([from[0], from[1]]);
        let (north, east) = (place[0] - from[0], place[1] - from[1]);
        Ok(Way {
            bearing_deg: east.atan2(north).to_degrees(),
            left_m: north.hypot(east) - self.stop_m,
        })
    }

    /// The mean distance of several detections while the vehicle hovers, metres.
    async fn measure(&mut self) -> Result<f64, Refusal> {
        let (clock, began) = (self.call.vehicle.clock, Instant::now());
        let mut seen: Vec<f64> = Vec::new();
        loop {
            seen.push(self.see().await?.dist_m);
            let passed = clock.since(began);
            let nearest = seen.iter().copied().fold(f64::INFINITY, f64::min);
            let farthest = seen.iter().copied().fold(0.0, f64::max);
            let steady = passed > STEADY_AFTER && farthest - nearest < STEADY_M;
            if seen.len() >= LOOKS && (steady || passed > MEASURED) {
                let dist = seen.iter().sum::<f64>() / seen.len() as f64;
                self.last = Some(dist);
                return Ok(dist);
            }
        }
    }
}

/// One detection of the object.
struct Sight {
    x: f64,
    dist_m: f64,
}
