//! The state object that the model sees at each step, made from results of tools. Pure.

use std::collections::BTreeMap;

use config::AgentBudgets;
use serde_json::{Map, Value, json};

use crate::budget::{Battery, Charge, Usage, rounded};

/// The knowledge about the world: the state object of the drone document. Values that decide about budgets come only from the
/// state tools of the configuration, and apply only to machines of the tool's own toolbox.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    goal: String,
    last_detection: Value,
    safety: Map<String, Value>,
    /// The machines by toolbox and vehicle.
    machines: BTreeMap<(String, String), Machine>,
    /// The vehicle of each toolbox that is meant if a call names none.
    default: BTreeMap<String, String>,
}

/// What a machine reports about itself.
#[derive(Clone, Debug, Default, PartialEq)]
struct Machine {
    /// Turning and forward distance as the machine counts them for its flight; they restart with each flight.
    totals: Option<Charge>,
    /// Whether the last call of the state tool was answered.
    fresh: bool,
    battery: Battery,
    /// The tool that reports the battery.
    battery_by: String,
    taken_over: bool,
}

/// The keys of results that belong in `safety` of the state object.
const SAFETY: [&str; 7] = [
    "battery_pct",
    "gps_ok",
    "ekf_ok",
    "free_ahead",
    "link_ok",
    "pilot_override",
    "flight_mode",
];

impl State {
    pub(crate) fn new(goal: &str) -> Self {
        Self {
            goal: goal.to_owned(),
            last_detection: Value::Null,
            safety: Map::new(),
            machines: BTreeMap::new(),
            default: BTreeMap::new(),
        }
    }

    /// Keeps from the result of a call what the model sees at each step: the detected objects.
    pub(crate) fn see(&mut self, arguments: &Value, result: &Value) {
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
    }

    /// Records the result of a state tool; `None` if the tool failed. Returns how much its vehicle turned and moved forward since
    /// the last call.
    pub(crate) fn observe(&mut self, toolbox_id: &str, tool: &str, result: Option<&Value>) -> Charge {
        let Some(result) = result else {
            let machines = self.machines.iter_mut().filter(|((of, _), _)| of == toolbox_id);
            for (_, machine) in machines {
                machine.fresh = false;
                if machine.battery_by == tool && machine.battery != Battery::NeverKnown {
                    machine.battery = Battery::Lost;
                }
            }
            return Charge::default();
        };
        self.see(&json!({}), result);
        let mut safety = Map::new();
        for from in [result.get("safety").unwrap_or(&Value::Null), result] {
            let entries = SAFETY.iter().filter_map(|key| Some((*key, from.get(*key)?)));
            safety.extend(entries.map(|(key, value)| (key.to_owned(), value.clone())));
        }
        for (of, theirs, ours) in [
            ("battery_status", "pct", "battery_pct"),
            ("scene_free_ahead", "free", "free_ahead"),
        ] {
            if let Some(value) = result.get(theirs).filter(|_| tool.contains(of)) {
                safety.insert(ours.to_owned(), value.clone());
            }
        }
        safety.retain(|_, value| !value.is_object() && !value.is_array());
        let vehicle = result
            .get("vehicle")
            .or_else(|| result.get("state")?.get("vehicle"));
        let vehicle = vehicle.and_then(Value::as_str).unwrap_or_default().to_owned();
        self.default.insert(toolbox_id.to_owned(), vehicle.clone());
        let machine = self.machines.entry((toolbox_id.to_owned(), vehicle)).or_default();
        let grown = machine.update(tool, result, &safety);
        self.safety.append(&mut safety);
        grown
    }

    /// Returns the machine that a call is for.
    fn machine(&self, toolbox_id: &str, arguments: &Value) -> Option<&Machine> {
        let vehicle = match arguments.get("vehicle") {
            None | Some(Value::Null) => self.default.get(toolbox_id)?,
            Some(named) => named.as_str()?,
        };
        self.machines.get(&(toolbox_id.to_owned(), vehicle.to_owned()))
    }

    /// Whether the machine that a call is for counts its turning and distance itself. Then the arguments of the call are not
    /// charged.
    pub(crate) fn is_measured(&self, toolbox_id: &str, arguments: &Value) -> bool {
        let machine = self.machine(toolbox_id, arguments);
        machine.is_some_and(|machine| machine.fresh && machine.totals.is_some())
    }

    /// Returns the battery of the machine that a call is for.
    pub(crate) fn battery(&self, toolbox_id: &str, arguments: &Value) -> Battery {
        let machine = self.machine(toolbox_id, arguments);
        machine.map_or(Battery::NeverKnown, |machine| machine.battery)
    }

    /// Returns the toolboxes with a machine that a person has taken over.
    pub(crate) fn taken_over(&self) -> impl Iterator<Item = &str> {
        let taken = self.machines.iter().filter(|(_, machine)| machine.taken_over);
        taken.map(|((toolbox_id, _), _)| toolbox_id.as_str())
    }

    /// Returns the state object for the model. `blank` are fields that the model does not see.
    pub(crate) fn object(&self, used: &Usage, budgets: &AgentBudgets, blank: &[String]) -> Value {
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

impl Machine {
    fn update(&mut self, tool: &str, result: &Value, safety: &Map<String, Value>) -> Charge {
        if let Some(value) = safety.get("battery_pct") {
            self.battery = match (value.as_f64(), self.battery) {
                (Some(pct), _) => Battery::Pct(pct),
                (None, Battery::NeverKnown) => Battery::NeverKnown,
                (None, _) => Battery::Lost,
            };
            tool.clone_into(&mut self.battery_by);
        }
        if let Some(value) = safety.get("pilot_override") {
            // A drone reports who flies it.
            self.taken_over = !matches!(value, Value::Null | Value::Bool(false));
        }
        let number = |key: &str| result.get(key).and_then(Value::as_f64);
        let (Some(deg), Some(forward_m)) = (number("flight_rotation_deg"), number("flight_forward_m")) else {
            return Charge::default();
        };
        self.fresh = true;
        // Motion before the run is not charged to it.
        let Some(before) = self.totals.replace(Charge { deg, forward_m }) else {
            return Charge::default();
        };
        // A smaller value than before means that a new flight has begun.
        let since = |now: f64, before: f64| if now + 1e-6 < before { now } else { now - before };
        Charge {
            deg: since(deg, before.deg),
            forward_m: since(forward_m, before.forward_m),
        }
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

    fn flight(deg: f64, forward_m: f64) -> Value {
        json!({"vehicle": "quad", "flight_rotation_deg": deg, "flight_forward_m": forward_m})
    }

    #[test]
    fn turning_and_distance_are_charged_as_the_vehicle_counts_them() {
        let mut state = State::new("find the cup");
        let mut see = |deg: f64, forward_m: f64| {
            let grown = state.observe("drone", "vehicle_state", Some(&flight(deg, forward_m)));
            (grown.deg, grown.forward_m)
        };
        // An earlier run made this motion.
        assert_eq!(see(100.0, 2.0), (0.0, 0.0));
        assert_eq!(see(130.0, 2.5), (30.0, 0.5));
        assert_eq!(see(130.0, 2.5), (0.0, 0.0));
        // A new flight begins.
        assert_eq!(see(20.0, 0.0), (20.0, 0.0));
    }

    #[test]
    fn a_vehicle_that_counts_does_so_for_calls_to_itself_alone() {
        let mut state = State::new("g");
        state.observe("drone", "vehicle_state", Some(&flight(0.0, 0.0)));
        for (toolbox_id, arguments, measured) in [
            ("drone", json!({}), true),
            ("drone", json!({"vehicle": "quad"}), true),
            ("drone", json!({"vehicle": "hexa"}), false),
            ("drone", json!({"vehicle": 7}), false),
            ("robot", json!({}), false),
            ("robot", json!({"vehicle": "quad"}), false),
        ] {
            let found = state.is_measured(toolbox_id, &arguments);
            assert_eq!(found, measured, "{toolbox_id} {arguments}");
        }
        state.observe("drone", "vehicle_state", None);
        assert!(!state.is_measured("drone", &json!({})), "the look failed");
    }

    #[test]
    fn a_battery_that_was_known_and_is_not_any_more_is_lost() {
        let pct = |value: Value| json!({"vehicle": "quad", "safety": {"battery_pct": value}});
        let mut state = State::new("g");
        for (result, expected) in [
            (Some(pct(Value::Null)), Battery::NeverKnown),
            (Some(pct(json!(80))), Battery::Pct(80.0)),
            (Some(json!({"vehicle": "quad"})), Battery::Pct(80.0)),
            (Some(pct(Value::Null)), Battery::Lost),
            (Some(pct(json!(70))), Battery::Pct(70.0)),
            (None, Battery::Lost),
        ] {
            state.observe("drone", "vehicle_state", result.as_ref());
            assert_eq!(state.battery("drone", &json!({})), expected, "{result:?}");
            assert_eq!(state.battery("robot", &json!({})), Battery::NeverKnown);
        }
    }

    #[test]
    fn what_any_tool_returns_changes_nothing_that_budgets_see() {
        let mut state = State::new("g");
        let low =
            json!({"vehicle": "quad", "battery_pct": 10, "flight_rotation_deg": 1, "flight_forward_m": 1});
        state.observe("drone", "vehicle_state", Some(&low));
        let before = state.clone();
        let lie = json!({"vehicle": "quad", "battery_pct": 99, "pct": 99, "flight_rotation_deg": 0, "flight_forward_m": 0,
            "safety": {"battery_pct": 99, "free_ahead": true, "pilot_override": false}});
        state.see(&json!({}), &lie);
        assert_eq!(state, before);
        state.observe("other", "vehicle_state", Some(&lie));
        assert_eq!(state.battery("drone", &json!({})), Battery::Pct(10.0));
    }

    #[test]
    fn a_person_who_has_the_machine_is_seen_however_the_toolbox_says_so() {
        for (pilot_override, taken) in [
            (json!(true), true),
            (json!("POSCTL"), true),
            (json!(false), false),
            (Value::Null, false),
        ] {
            let mut state = State::new("g");
            let result = json!({"safety": {"pilot_override": pilot_override}});
            state.observe("drone", "vehicle_state", Some(&result));
            assert_eq!(
                state.taken_over().next(),
                taken.then_some("drone"),
                "{pilot_override}"
            );
        }
    }

    #[test]
    fn the_state_object_is_that_of_the_drone_document() {
        let mut state = State::new("goto red cup");
        state.see(
            &json!({"object": "red cup"}),
            &json!({"ok": true, "x": 0.58, "y": 0.52, "dist_m": 1.4, "conf": 0.81}),
        );
        for (tool, result) in [
            ("battery_status", json!({"ok": true, "pct": 62})),
            ("vehicle_health", json!({"gps_ok": true, "ekf_ok": true})),
            ("scene_free_ahead", json!({"free": true, "min_dist_m": 9.0})),
        ] {
            state.observe("drone", tool, Some(&result));
        }
        let object = state.object(&Usage::default(), &AgentBudgets::default(), &[]);
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
            &Usage::default(),
            &AgentBudgets::default(),
            &["last_detection".to_owned()],
        );
        assert_eq!(blank["last_detection"], Value::Null);
        assert_eq!(state.battery("drone", &json!({})), Battery::Pct(62.0));
    }
}
