//! A seeded random caller: about half of its requests make sense.

#![allow(dead_code, reason = "each test uses a part")]

use std::time::Duration;

use ovos_toolbox_sdk::serde_json::{Map, Value, json};

/// Every tool and the kind of number that makes sense for each argument.
const TOOLS: &[(&str, &[(&str, Kind)])] = &[
    ("arm", &[]),
    ("disarm", &[]),
    ("takeoff", &[("alt_m", Kind::Height)]),
    ("land", &[]),
    ("rtl", &[]),
    ("set_yaw", &[("deg", Kind::Angle)]),
    ("turn_cw", &[("deg", Kind::Turn)]),
    ("turn_ccw", &[("deg", Kind::Turn)]),
    ("move_forward", &[("cm", Kind::Centimetres)]),
    ("move_left", &[("cm", Kind::Centimetres)]),
    ("move_right", &[("cm", Kind::Centimetres)]),
    ("move_up", &[("cm", Kind::Centimetres)]),
    ("move_down", &[("cm", Kind::Centimetres)]),
    ("hold", &[("ms", Kind::Milliseconds)]),
    (
        "goto_gps",
        &[
            ("lat", Kind::Latitude),
            ("lon", Kind::Longitude),
            ("alt_m", Kind::Height),
            ("yaw_deg", Kind::Angle),
        ],
    ),
    (
        "goto_local",
        &[
            ("north_m", Kind::Metres),
            ("east_m", Kind::Metres),
            ("down_m", Kind::Down),
            ("yaw_deg", Kind::Angle),
        ],
    ),
    (
        "follow_path",
        &[("waypoints", Kind::Path), ("cruise_mps", Kind::Speed)],
    ),
    (
        "is_visible",
        &[("object", Kind::Object), ("conf_min", Kind::Share)],
    ),
    ("object_pose", &[("object", Kind::Object)]),
    ("scene_free_ahead", &[("range_m", Kind::Speed)]),
    ("count_objects", &[("label", Kind::Object)]),
    (
        "safe_approach_until",
        &[("object", Kind::Object), ("stop_dist_m", Kind::Speed)],
    ),
    (
        "scan",
        &[
            ("object", Kind::Object),
            ("step_deg", Kind::Turn),
            ("max_steps", Kind::Speed),
        ],
    ),
    ("orient_to_object", &[("object", Kind::Object)]),
    (
        "track_object",
        &[("object", Kind::Object), ("horizon_s", Kind::Speed)],
    ),
    ("replan", &[("reason", Kind::Object)]),
    ("vehicle_health", &[]),
    ("battery_status", &[]),
    ("vehicle_state", &[]),
    ("log", &[("level", Kind::Object), ("text", Kind::Object)]),
    ("capture_photo", &[]),
    ("start_video", &[]),
    ("stop_video", &[]),
    ("emergency_brake", &[]),
];

const AIRBORNE: &[&str] = &[
    "goto_local",
    "goto_local",
    "goto_gps",
    "follow_path",
    "move_forward",
    "move_left",
    "move_right",
    "move_up",
    "move_down",
    "turn_cw",
    "turn_ccw",
    "set_yaw",
    "scan",
    "orient_to_object",
    "safe_approach_until",
    "track_object",
    "replan",
    "hold",
];

const HOME: (f64, f64) = (47.397_742, 8.545_594);
const DEGREES_PER_METRE: f64 = 1.0 / 111_195.0;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Height,
    Angle,
    Turn,
    Centimetres,
    Milliseconds,
    Latitude,
    Longitude,
    Metres,
    Down,
    Path,
    Speed,
    Object,
    Share,
}

/// The random caller.
pub(crate) struct Caller {
    pub(crate) seed: u64,
    random: fastrand::Rng,
}

impl Caller {
    /// A caller whose requests depend only on the seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// The next tool and its arguments.
    pub(crate) fn next(&mut self, in_air: bool, armed: bool) -> (&'static str, Value) {
        let wise = self.random.f64() < 0.6;
        let tool = match (wise, in_air, armed) {
            (true, false, false) => "arm",
            (true, false, true) => "takeoff",
            (true, true, _) => self.pick(AIRBORNE),
            (false, ..) => TOOLS[self.random.usize(..TOOLS.len())].0,
        };
        let (_, arguments) = TOOLS
            .iter()
            .find(|(name, _)| *name == tool)
            .expect("a known tool");
        let sane = self.random.f64() < 0.75;
        let mut args = Map::new();
        for (name, kind) in *arguments {
            let value = if sane || self.random.bool() {
                self.sensible(*kind)
            } else {
                self.anything(2)
            };
            // Sometimes a required argument is missing.
            if sane && *name != "yaw_deg" || self.random.f64() < 0.8 {
                args.insert((*name).to_owned(), value);
            }
        }
        if !sane && self.random.f64() < 0.2 {
            let key = self.pick(&["vehicle", "force", "cm", "__proto__", ""]);
            let value = self.anything(2);
            args.insert(key.to_owned(), value);
        }
        (tool, Value::Object(args))
    }

    /// When and how to stop the call, if at all.
    pub(crate) fn interruption(&mut self) -> Option<(Duration, bool)> {
        (self.random.f64() < 0.08).then(|| {
            let after = Duration::from_secs_f64(self.random.f64() * 12.0);
            (after, self.random.bool())
        })
    }

    /// Whether to check for a while that nothing moves.
    pub(crate) fn rests(&mut self) -> bool {
        self.random.f64() < 0.02
    }

    /// The pause between two calls.
    pub(crate) fn pause(&mut self) -> Duration {
        Duration::from_millis(self.random.u64(..300))
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.usize(..from.len())]
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + self.random.f64() * (most - least)
    }

    /// A value of the right kind, most of them possible; distances reach well beyond the fence.
    fn sensible(&mut self, kind: Kind) -> Value {
        match kind {
            // Heights above ten metres cost the most time: a few are enough to meet the ceiling.
            Kind::Height if self.random.f64() < 0.85 => json!(self.between(0.5, 8.0)),
            Kind::Height => json!(self.between(8.0, 33.0)),
            Kind::Angle => json!(self.between(-180.0, 180.0)),
            Kind::Turn => json!(self.random.u32(1..=95)),
            Kind::Centimetres => json!(self.random.u32(5..=320)),
            Kind::Milliseconds => json!(self.random.u32(..6000)),
            Kind::Latitude => json!(HOME.0 + self.between(-32.0, 32.0) * DEGREES_PER_METRE),
            Kind::Longitude => json!(HOME.1 + self.between(-32.0, 32.0) * DEGREES_PER_METRE / 0.677),
            Kind::Metres => json!(self.between(-28.0, 28.0)),
            Kind::Down if self.random.f64() < 0.85 => json!(self.between(-8.0, 0.0)),
            Kind::Down => json!(self.between(-32.0, -8.0)),
            Kind::Path => {
                let count = self.random.usize(1..5);
                let point = |caller: &mut Self| {
                    json!({
                        "lat": caller.sensible(Kind::Latitude),
                        "lon": caller.sensible(Kind::Longitude),
                        "alt_m": caller.sensible(Kind::Height),
                    })
                };
                Value::Array((0..count).map(|_| point(self)).collect())
            }
            Kind::Speed => json!(self.random.u32(1..12)),
            Kind::Object => json!(self.pick(&["red cup", "chair", "person", "tree", "INFO", "unicorn"])),
            Kind::Share => json!(self.random.f64()),
        }
    }

    /// Anything JSON can say.
    fn anything(&mut self, depth: usize) -> Value {
        let numbers = [
            0.0,
            -0.0,
            -1.0,
            1e-300,
            1e308,
            -1e308,
            9e15,
            0.5,
            180.000_001,
            91.0,
            -181.0,
            1e6,
            -30.0,
            361.0,
        ];
        match self.random.u32(..if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.random.bool()),
            2 => json!(numbers[self.random.usize(..numbers.len())]),
            3 => json!(self.random.i64(..)),
            4 => json!(self.pick(&["", "NaN", "Infinity", "-1", "5", "\u{0}", "💥", "red cup", "true"])),
            5 => json!("x".repeat(self.random.usize(..5000))),
            6 => Value::Array(
                (0..self.random.usize(..4))
                    .map(|_| self.anything(depth - 1))
                    .collect(),
            ),
            _ => {
                let mut object = Map::new();
                for key in ["lat", "alt_m", "min"] {
                    let value = self.anything(depth - 1);
                    object.insert(key.to_owned(), value);
                }
                Value::Object(object)
            }
        }
    }
}

/// Whether what was answered with `ok` is so, by the simulator's own truth.
pub(crate) fn happened(tool: &str, args: &Value, answer: &Value, truth: &Value) -> bool {
    let number = |key: &str| {
        let applied = answer["clamped"][key]["used"].as_f64();
        applied.or_else(|| args[key].as_f64()).unwrap_or(f64::INFINITY)
    };
    let at = |axis: usize| truth["position"][axis].as_f64().expect("a position");
    let away = |north: f64, east: f64| (at(0) - north).hypot(at(1) - east);
    let home = |axis: usize| truth["launch"][axis].as_f64().expect("a place");
    let landed = truth["landed"] == "on_ground" && truth["armed"] == false;
    let floor = 0.25;
    match tool {
        "arm" => truth["armed"] == true,
        "disarm" => truth["armed"] == false,
        "land" => landed,
        "rtl" => landed && away(home(0), home(1)) < 2.0,
        "takeoff" => -at(2) > number("alt_m") - 0.7,
        "start_video" => truth["recording"] == true,
        "stop_video" => truth["recording"] == false,
        "capture_photo" => truth["photos"].as_i64().is_some_and(|photos| photos > 0),
        "hold" => truth["mode"] == "hold" || truth["mode"] == "offboard",
        "move_up" | "move_down" => -at(2) > floor,
        "goto_local" => {
            away(number("north_m"), number("east_m")) < 0.6 && (at(2) - number("down_m")).abs() < 0.6
        }
        "goto_gps" => {
            let north = (number("lat") - HOME.0) / DEGREES_PER_METRE;
            let east = (number("lon") - HOME.1) / DEGREES_PER_METRE * HOME.0.to_radians().cos();
            away(north, east) < 1.5
        }
        _ => true,
    }
}

/// Tools whose answer needs no `ok`.
pub(crate) const READS: &[&str] = &[
    "is_visible",
    "object_pose",
    "scene_free_ahead",
    "count_objects",
    "vehicle_health",
    "battery_status",
    "vehicle_state",
];

/// Arguments for a failure's text, cut where they are long.
pub(crate) fn shown(args: &Value) -> String {
    args.to_string().chars().take(300).collect()
}
