//! What one run is to do and how far it may go.

use std::path::PathBuf;
use std::time::Duration;

use config::{AgentBudgets, AgentDoor, CallStyle, ToolFilter};
use serde_json::{Value, json};

/// The settings of a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) run_id: String,
    pub(crate) goal: String,
    pub(crate) door: AgentDoor,
    /// Tools that the model does not have in this run.
    pub(crate) filter: ToolFilter,
    /// Fields of results and of the state object that the model does not see.
    pub(crate) blank: Vec<String>,
    /// Nothing but `read` tools is run.
    pub(crate) dry_run: bool,
    pub(crate) record: Option<PathBuf>,
}

/// Budgets that one run has instead of those of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Narrower {
    pub(crate) steps: Option<u32>,
    pub(crate) calls: Option<u32>,
    pub(crate) time: Option<Duration>,
    pub(crate) tokens: Option<u64>,
    pub(crate) failures: Option<u32>,
    pub(crate) repeats: Option<u32>,
    pub(crate) rotation_deg: Option<f64>,
    pub(crate) forward_m: Option<f64>,
    pub(crate) battery_pct: Option<f64>,
}

impl Narrower {
    /// The budgets of a run that a person at the terminal starts, who may set any.
    pub(crate) fn set(self, budgets: &mut AgentBudgets) {
        let Self {
            steps,
            calls,
            time,
            tokens,
            failures,
            repeats,
            rotation_deg,
            forward_m,
            battery_pct,
        } = self;
        replace(&mut budgets.steps, steps);
        replace(&mut budgets.calls, calls);
        replace(&mut budgets.time, time);
        replace(&mut budgets.tokens, tokens);
        replace(&mut budgets.failures, failures);
        replace(&mut budgets.repeats, repeats);
        replace(&mut budgets.rotation_deg, rotation_deg);
        replace(&mut budgets.forward_m, forward_m);
        replace(&mut budgets.battery_pct, battery_pct);
    }

    /// The budgets of a run that a bus client starts: nothing that the bus says widens what the configuration allows.
    pub(crate) fn narrow(self, budgets: &mut AgentBudgets) {
        let own = budgets.clone();
        self.set(budgets);
        budgets.steps = budgets.steps.min(own.steps);
        budgets.calls = budgets.calls.min(own.calls);
        budgets.time = budgets.time.min(own.time);
        budgets.tokens = budgets.tokens.min(own.tokens);
        budgets.failures = budgets.failures.min(own.failures);
        budgets.repeats = budgets.repeats.min(own.repeats);
        budgets.rotation_deg = budgets.rotation_deg.min(own.rotation_deg);
        budgets.forward_m = budgets.forward_m.min(own.forward_m);
        budgets.battery_pct = budgets.battery_pct.max(own.battery_pct);
    }
}

fn replace<T>(budget: &mut T, with: Option<T>) {
    if let Some(with) = with {
        *budget = with;
    }
}

impl Settings {
    pub(crate) fn budgets(&self) -> &AgentBudgets {
        &self.door.budgets
    }

    /// Whether calls are lines of text.
    pub(crate) fn as_text(&self) -> bool {
        self.door.calls == CallStyle::Text
    }

    /// Takes the switches of a record.
    pub(crate) fn switch(&mut self, ablations: &Value) {
        let texts =
            |key: &str| -> Option<Vec<String>> { serde_json::from_value(ablations.get(key)?.clone()).ok() };
        let is_on = |key: &str| ablations.get(key).and_then(Value::as_bool);
        self.filter.allow = texts("tools_allowed");
        self.filter.deny = texts("tools_removed").unwrap_or_default();
        self.blank = texts("blanked").unwrap_or_default();
        self.door.plan_preview = is_on("plan_preview").unwrap_or(self.door.plan_preview);
        if ablations["calls"] == "text" {
            self.door.calls = CallStyle::Text;
        }
    }

    /// For the record: what differs from a full run.
    pub(crate) fn ablations(&self) -> Value {
        json!({
            "calls": self.door.calls,
            "tools_allowed": self.filter.allow,
            "tools_removed": self.filter.deny,
            "blanked": self.blank,
            "plan_preview": self.door.plan_preview,
            "vision": self.door.vision,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_narrows_budgets_and_never_widens_them() {
        let wide = Narrower {
            steps: Some(9_999),
            time: Some(Duration::from_secs(1)),
            rotation_deg: Some(1e6),
            forward_m: Some(1.0),
            battery_pct: Some(0.0),
            ..Narrower::default()
        };
        let own = AgentBudgets::default();
        let mut narrowed = own.clone();
        wide.narrow(&mut narrowed);
        assert_eq!(
            narrowed,
            AgentBudgets {
                time: Duration::from_secs(1),
                forward_m: 1.0,
                ..own.clone()
            }
        );
        let mut set = own.clone();
        wide.set(&mut set);
        assert_eq!((set.steps, set.battery_pct), (9_999, 0.0));
    }
}
