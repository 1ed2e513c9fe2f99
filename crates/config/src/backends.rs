//! What a toolbox has reported about the machines that it drives: whether they are simulated.

use std::collections::BTreeMap;

use serde_json::Value;

/// Whether the machines of one generation of a toolbox are simulated, as its `backend` events say. A machine counts as hardware
/// unless an event said `true`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backends {
    /// The value of the last event without a unit. It applies to every unit without a value of its own.
    whole: Option<bool>,
    units: BTreeMap<String, bool>,
}

impl Backends {
    /// Records the data of a `backend` event.
    pub fn hear(&mut self, event: &Value) {
        let simulated = event.get("simulated") == Some(&Value::Bool(true));
        match event.get("unit").and_then(Value::as_str) {
            Some(unit) => _ = self.units.insert(unit.to_owned(), simulated),
            None => self.whole = Some(simulated),
        }
    }

    /// Whether every call is simulated (`true`) or none is (`false`); `None` if it depends on the units of the call.
    #[must_use]
    pub fn of_every_call(&self) -> Option<bool> {
        let whole = self.whole.unwrap_or(false);
        self.units.values().all(|unit| *unit == whole).then_some(whole)
    }

    /// Whether a call that uses these subsystems is simulated. It is if every unit that the subsystems name is. Without
    /// subsystems, or if one names no unit, every unit of the toolbox has to be simulated.
    #[must_use]
    pub fn simulates(&self, subsystems: &[String]) -> bool {
        let whole = self.whole.unwrap_or(false);
        let everything = whole && self.units.values().all(|unit| *unit);
        let simulated = |subsystem: &String| match subsystem.split_once('/') {
            Some((unit, _)) => self.units.get(unit).copied().unwrap_or(whole),
            None => everything,
        };
        if subsystems.is_empty() {
            everything
        } else {
            subsystems.iter().all(simulated)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_not_said_true_is_hardware() {
        let (sim, real) = (json!({"simulated": true}), json!({"state": "connected"}));
        let unit = |name: &str, simulated: bool| json!({"unit": name, "simulated": simulated});
        // The columns: events; whether every call is simulated; then whether a call is simulated that uses no subsystem, one
        // without a unit, a/arm, a/arm and b/arm.
        let rows = [
            (vec![], Some(false), [false; 4]),
            (vec![sim.clone()], Some(true), [true; 4]),
            (vec![sim.clone(), real.clone()], Some(false), [false; 4]),
            (vec![json!({"simulated": "true"})], Some(false), [false; 4]),
            (vec![json!(null)], Some(false), [false; 4]),
            (vec![unit("a", true)], None, [false, false, true, false]),
            (
                vec![unit("a", true), unit("b", true)],
                None,
                [false, false, true, true],
            ),
            (
                vec![unit("a", true), unit("b", false)],
                None,
                [false, false, true, false],
            ),
            (vec![unit("a", true), unit("a", false)], Some(false), [false; 4]),
            (vec![sim, unit("b", false)], None, [false, false, true, false]),
        ];
        for (events, of_every_call, simulated) in rows {
            let mut backends = Backends::default();
            events.iter().for_each(|event| backends.hear(event));
            assert_eq!(backends.of_every_call(), of_every_call, "{events:?}");
            let calls: [&[&str]; 4] = [&[], &["arm"], &["a/arm"], &["a/arm", "b/arm"]];
            let found = calls.map(|call| {
                let call: Vec<String> = call.iter().map(|&name| name.to_owned()).collect();
                backends.simulates(&call)
            });
            assert_eq!(found, simulated, "{events:?}");
        }
    }
}
