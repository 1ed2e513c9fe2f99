//! The answer of a call: `ok`, the reason, the clamped arguments and a short state.
//!
//! Defines the shape that all tools share and the output schemas. Read [`Reply`].

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::serde_json::Map;

use crate::guard::{Adjustment, Facts, Refusal};

/// The answer of a tool before it becomes JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) ok: bool,
    pub(crate) code: Option<&'static str>,
    pub(crate) msg: String,
    pub(crate) clamped: Vec<Adjustment>,
    pub(crate) fields: Map<String, Value>,
}

/// The result of a tool's function: `?` ends it with a refusal.
pub(crate) type Outcome = Result<Reply, Refusal>;

impl Reply {
    /// The tool did what was asked, and telemetry confirms it.
    pub(crate) fn done(msg: impl Into<String>) -> Self {
        Self {
            ok: true,
            msg: msg.into(),
            ..Self::default()
        }
    }

    /// The tool did not do what was asked.
    pub(crate) fn failed(code: &'static str, msg: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            msg: msg.into(),
            ..Self::default()
        }
    }

    /// Adds a field that only this tool has.
    pub(crate) fn with(mut self, key: &str, value: impl Serialize) -> Self {
        // Tools add only numbers, strings and booleans, which always serialize.
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.fields.insert(key.to_string(), value);
        self
    }

    pub(crate) fn clamped(mut self, adjusted: Vec<Adjustment>) -> Self {
        self.clamped = adjusted;
        self
    }

    /// The JSON sent to the caller.
    pub(crate) fn json(&self, state: Option<Value>, simulated: bool) -> Value {
        let mut answer = Map::new();
        answer.insert("ok".to_string(), self.ok.into());
        answer.extend(self.fields.clone());
        answer.insert("msg".to_string(), self.msg.clone().into());
        if let Some(code) = self.code {
            answer.insert("code".to_string(), code.into());
        }
        if !self.clamped.is_empty() {
            let clamped = self
                .clamped
                .iter()
                .map(|one| (one.arg().to_string(), one.numbers()));
            answer.insert("clamped".to_string(), Value::Object(clamped.collect()));
        }
        if let Some(state) = state {
            answer.insert("state".to_string(), state);
        }
        answer.insert("simulated".to_string(), simulated.into());
        Value::Object(answer)
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::failed(refusal.code, refusal.msg)
    }
}

/// The message of a success, or the refusal.
impl From<Result<String, Refusal>> for Reply {
    fn from(done: Result<String, Refusal>) -> Self {
        done.map_or_else(Self::from, Self::done)
    }
}

/// The short state that every answer carries.
pub(crate) fn state(vehicle: &str, facts: &Facts) -> Value {
    let round = |value: f64| (value * 100.0).round() / 100.0;
    json!({
        "vehicle": vehicle,
        "alt_m": facts.pose.map(|pose| round(pose.alt_m)),
        "mode": facts.mode,
        "armed": facts.armed,
        "in_air": facts.in_air,
    })
}

/// Shapes of the answers; only schemars reads them.
pub(crate) mod shapes {
    #![allow(dead_code, reason = "only their schemas are used")]

    use super::*;
    use crate::guard::Mode;

    /// A number that was clamped.
    #[derive(Serialize, JsonSchema)]
    pub(crate) struct Clamped {
        /// What was asked for.
        asked: f64,
        /// What was done instead.
        used: f64,
    }

    /// The vehicle when the answer was given.
    #[derive(Serialize, JsonSchema)]
    pub(crate) struct State {
        /// Which vehicle.
        vehicle: String,
        /// Metres above home; null when it is not known.
        alt_m: Option<f64>,
        /// PX4's flight mode.
        mode: Option<Mode>,
        /// Whether the motors are armed.
        armed: Option<bool>,
        /// Whether it flies.
        in_air: Option<bool>,
    }

    /// Where the vehicle is.
    #[derive(Serialize, JsonSchema)]
    #[schemars(rename = "Place")]
    pub(crate) struct Position {
        /// Degrees, as goto_gps takes them.
        lat: f64,
        lon: f64,
        /// Metres above home, as goto_gps takes them.
        alt_m: f64,
        /// Compass heading, 0 to 360 degrees; 90 is east.
        heading_deg: f64,
        speed_mps: f64,
        /// Metres in the local frame, as goto_local takes them.
        north_m: f64,
        east_m: f64,
        down_m: f64,
    }

    /// Where home is.
    #[derive(Serialize, JsonSchema)]
    #[schemars(rename = "HomePlace")]
    pub(crate) struct HomePosition {
        /// Degrees.
        lat: f64,
        lon: f64,
        /// Metres in the local frame.
        north_m: f64,
        east_m: f64,
        down_m: f64,
        /// Height above sea level, metres. All heights that tools take are above home.
        amsl_m: f64,
    }

    /// The fence, in metres north and east in the local frame: a circle or corners.
    #[derive(Serialize, JsonSchema)]
    pub(crate) struct FencePlace {
        centre_m: Option<[f64; 2]>,
        radius_m: Option<f64>,
        corners_m: Option<Vec<[f64; 2]>>,
    }

    macro_rules! answers {
        ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
            $(#[$doc])*
            #[derive(Serialize, JsonSchema)]
            pub(crate) struct $name {
                /// Whether it was done; never true unless telemetry shows it.
                ok: bool,
                $($(#[$field_doc])* $field: $kind,)*
                /// What happened, for people and models.
                msg: String,
                /// Why it was not done, in one word.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                code: Option<String>,
                /// Arguments that were outside their range, by name.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                clamped: Option<std::collections::BTreeMap<String, Clamped>>,
                /// The vehicle when the answer was given.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                state: Option<State>,
                /// Whether this is a simulation.
                simulated: bool,
            }
        )*};
    }

    answers! {
        Plain {}
        Visible {
            /// Whether it is seen.
            visible: bool,
            /// How sure, 0 to 1.
            conf: f64,
        }
        Pose {
            /// From the left edge of the picture, 0 to 1; missing when the object is not seen.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            x: Option<f64>,
            /// From the top edge, 0 to 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            y: Option<f64>,
            /// Depth in metres, when it is known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            z_m: Option<f64>,
            /// Distance in metres, when it is known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            dist_m: Option<f64>,
            /// How sure, 0 to 1.
            conf: f64,
        }
        Free {
            /// Whether nothing is within the range; false when it is not known.
            free: bool,
            /// Metres to the nearest thing ahead; 0 when it is not known.
            min_dist_m: f64,
        }
        Count {
            /// How many are seen.
            count: u64,
        }
        Approach {
            /// Whether the distance asked for was reached.
            reached: bool,
            /// Metres to the object at the end.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            final_dist_m: Option<f64>,
            /// Steps made.
            steps: u64,
        }
        Scan {
            /// Whether the object was found.
            found: bool,
            /// Turns made.
            steps: u64,
        }
        Orient {
            /// Whether the object is in the middle of the picture.
            centered: bool,
            /// Turns made.
            steps: u64,
        }
        Replan {
            /// Names the new plan.
            plan_id: String,
            /// What could be tried next.
            branches: Vec<String>,
        }
        Health {
            /// The firmware, such as `1.17.0`; null while the vehicle has not reported it.
            px4_version: Option<String>,
            /// GPS and home position.
            gps_ok: bool,
            /// Local position.
            ekf_ok: bool,
            /// Gyrometer and accelerometer.
            imu_ok: bool,
            magnetometer_ok: bool,
            /// Charge, 0 to 100; null when it is not known.
            battery_pct: Option<f64>,
            /// Whether the vehicle is heard.
            link_ok: bool,
            /// Height of home above sea level, metres; null when it is not known.
            home_amsl_m: Option<f64>,
            /// PX4's flight mode.
            flight_mode: String,
            /// Whether the vehicle would arm.
            armable: bool,
            /// Why it would not, in the vehicle's words; empty where it does not say.
            why_not_armable: Vec<String>,
            /// What the vehicle said last.
            status_text: Vec<String>,
        }
        BatteryStatus {
            /// Charge, 0 to 100; null when it is not known.
            pct: Option<f64>,
            voltage_v: Option<f64>,
            /// The same as `remaining_min`: minutes, not metres.
            remaining_m: Option<f64>,
            /// Minutes left, estimated by the vehicle; null when it does not say.
            remaining_min: Option<f64>,
        }
        FlightState {
            /// Where it is now; null when that is not known.
            position: Option<Position>,
            /// Where heights and the return are counted from; null when it is not known.
            home: Option<HomePosition>,
            /// What it may not leave; null when it is not known where that is.
            fence: Option<FencePlace>,
            /// What the last flight or search was asked to do, such as `find red cup`.
            goal: Option<String>,
            /// What was seen last.
            last_detection: Option<Value>,
            /// Degrees turned since take-off or replan.
            rotation_accum_deg: f64,
            /// Metres moved forward since take-off or replan.
            forward_accum_m: f64,
            /// Degrees turned in the whole flight.
            flight_rotation_deg: f64,
            /// Metres moved forward in the whole flight.
            flight_forward_m: f64,
            plan_id: Option<String>,
            replans: u64,
            safety: Value,
            limits: Value,
        }
    }
}
