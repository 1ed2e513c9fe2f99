//! The state object that the model sees at each step, made from results of tools. Pure.

use config::AgentBudgets;
use serde_json::{Map, Value, json};

use crate::budget::{Used, rounded};

/// What is known of the world: the state object of the drone document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    goal: String,
    last_detection: Value,
    safety: Map<String, Value>,
    /// Turning and forward distance of the flight as it was seen last, by vehicle.
    totals: Vec<(String, Totals)>,
}

/// Totals that a vehicle counts itself. They begin anew with each flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    deg: f64,
    forward_m: f64,
}

/// How much a vehicle's totals grew.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Grown {
    pub(crate) deg: f64,
    pub(crate) forward_m: f64,
}

/// The keys of results that belong to `safety`, and how the state object calls them.
const SAFETY: [(&str, &str); 7] = [
    ("battery_pct", "battery_pct"),
    ("gps_ok", "gps_ok"),
    ("ekf_ok", "ekf_ok"),
    ("free_ahead", "free_ahead"),
    ("link_ok", "link_ok"),
    ("pilot_override", "pilot_override"),
    ("flight_mode", "flight_mode"),
];

impl State {
    pub(crate) fn new(goal: &str) -> Self {
        Self {
            goal: goal.to_owned(),
            last_detection: Value::Null,
            safety: Map::new(),
            totals: Vec::new(),
        }
    }

    /// Takes from a result what the state object has. Returns how much the vehicle turned and moved forward since it was seen
    /// last.
    pub(crate) fn see(&mut self, tool: &str, arguments: &Value, result: &Value) -> Grown {
        if let Some(safety) = result.get("safety") {
            self.safety(safety);
        }
        self.safety(result);
        if tool.contains("battery_status") {
            self.put("battery_pct", result.get("pct"));
        }
        if tool.contains("scene_free_ahead") {
            self.put("free_ahead", result.get("free"));
        }
        let seen = |key: &str| result.get(key).filter(|value| !value.is_null()).cloned();
        if let Some(detection) = seen("last_detection") {
            self.last_detection = detection;
        } else if let (Some(x), Some(y)) = (seen("x"), seen("y"))
            && let Some(object) = arguments.get("object")
            && result.get("conf").is_some()
        {
            self.last_detection = json!({
                "object": object, "x": x, "y": y, "dist_m": seen("dist_m"), "conf": seen("conf"),
            });
        }
        self.totals_of(result)
    }

    fn safety(&mut self, from: &Value) {
        for (theirs, ours) in SAFETY {
            self.put(ours, from.get(theirs));
        }
    }

    fn put(&mut self, key: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_object() && !value.is_array()) {
            self.safety.insert(key.to_owned(), value.clone());
        }
    }

    fn totals_of(&mut self, result: &Value) -> Grown {
        let number = |key: &str| result.get(key).and_then(Value::as_f64);
        let (Some(deg), Some(forward_m)) = (number("flight_rotation_deg"), number("flight_forward_m")) else {
            return Grown::default();
        };
        let vehicle = result
            .get("vehicle")
            .or_else(|| result.get("state")?.get("vehicle"));
        let vehicle = vehicle.and_then(Value::as_str).unwrap_or_default().to_owned();
        let now = Totals { deg, forward_m };
        let before = match self.totals.iter_mut().find(|(known, _)| *known == vehicle) {
            Some((_, totals)) => std::mem::replace(totals, now),
            None => {
                // What was flown before the run is not charged to it.
                self.totals.push((vehicle, now));
                return Grown::default();
            }
        };
        // Smaller than before: a new flight has begun since.
        let since = |now: f64, before: f64| if now + 1e-6 < before { now } else { now - before };
        Grown {
            deg: since(deg, before.deg),
            forward_m: since(forward_m, before.forward_m),
        }
    }

    /// Whether a vehicle counts its turning and distance itself, so that arguments need not be believed.
    pub(crate) fn is_measured(&self) -> bool {
        !self.totals.is_empty()
    }

    pub(crate) fn battery_pct(&self) -> Option<f64> {
        self.safety.get("battery_pct").and_then(Value::as_f64)
    }

    pub(crate) fn taken_over(&self) -> bool {
        self.safety.get("pilot_override") == Some(&Value::Bool(true))
    }

    /// As the model sees it. `blank` are fields that it does not see.
    pub(crate) fn object(&self, used: &Used, budgets: &AgentBudgets, blank: &[String]) -> Value {
        let mut object = json!({
            "goal": self.goal,
            "last_detection": self.last_detection,
            "rotation_accum_deg": rounded(used.rotation_deg),
            "forward_accum_m": rounded(used.forward_m),
            "safety": self.safety,
            "limits": {
                "max_rotation_deg": budgets.rotation_deg,
                "max_forward_m": budgets.forward_m,
                "min_battery_pct": budgets.battery_pct,
                "steps_left": budgets.steps.saturating_sub(used.steps),
                "calls_left": budgets.calls.saturating_sub(used.calls),
            },
        });
        blanked(&mut object, blank);
        object
    }
}

/// Removes fields by name, at any depth.
pub(crate) fn blanked(value: &mut Value, blank: &[String]) {
    match value {
        _ if blank.is_empty() => {}
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                if blank.iter().any(|name| name == key) {
                    *inner = Value::Null;
                } else {
                    blanked(inner, blank);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| blanked(item, blank)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_and_distance_are_charged_as_the_vehicle_counts_them() {
        let mut state = State::new("find the cup");
        let mut see = |deg: f64, forward_m: f64| {
            let result = json!({"flight_rotation_deg": deg, "flight_forward_m": forward_m});
            let grown = state.see("vehicle_state", &json!({}), &result);
            (grown.deg, grown.forward_m)
        };
        // An earlier run flew these.
        assert_eq!(see(100.0, 2.0), (0.0, 0.0));
        assert_eq!(see(130.0, 2.5), (30.0, 0.5));
        assert_eq!(see(130.0, 2.5), (0.0, 0.0));
        // A new flight.
        assert_eq!(see(20.0, 0.0), (20.0, 0.0));
    }

    #[test]
    fn the_state_object_is_that_of_the_drone_document() {
        let mut state = State::new("goto red cup");
        state.see(
            "object_pose",
            &json!({"object": "red cup"}),
            &json!({"ok": true, "x": 0.58, "y": 0.52, "dist_m": 1.4, "conf": 0.81}),
        );
        state.see("battery_status", &json!({}), &json!({"ok": true, "pct": 62}));
        state.see(
            "vehicle_health",
            &json!({}),
            &json!({"gps_ok": true, "ekf_ok": true}),
        );
        state.see(
            "scene_free_ahead",
            &json!({}),
            &json!({"free": true, "min_dist_m": 9.0}),
        );
        let object = state.object(&Used::default(), &AgentBudgets::default(), &[]);
        assert_eq!(
            object["last_detection"],
            json!({"object": "red cup", "x": 0.58, "y": 0.52, "dist_m": 1.4, "conf": 0.81})
        );
        assert_eq!(
            object["safety"],
            json!({"battery_pct": 62, "gps_ok": true, "ekf_ok": true, "free_ahead": true})
        );
        assert_eq!(object["limits"]["max_rotation_deg"], 360.0);
        let blank = state.object(
            &Used::default(),
            &AgentBudgets::default(),
            &["last_detection".to_owned()],
        );
        assert_eq!(blank["last_detection"], Value::Null);
        assert_eq!(state.battery_pct(), Some(62.0));
    }
}
