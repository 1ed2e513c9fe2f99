//! The settings of one run: its goal, its tools and its limits.

use std::path::PathBuf;
use std::time::Duration;

use config::{AgentBudgets, AgentDoor, CallStyle, ToolFilter};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The settings of a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) run_id: String,
    pub(crate) goal: String,
    pub(crate) door: AgentDoor,
    /// The filters of the model's tools in this run: each filter has to permit a tool.
    pub(crate) filters: Vec<ToolFilter>,
    /// Fields of results and of the state object that the model does not see.
    pub(crate) blank: Vec<String>,
    /// Whether only `read` tools are run.
    pub(crate) dry_run: bool,
    pub(crate) record: Option<PathBuf>,
}

/// Budgets of one run that replace those of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BudgetOverrides {
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

impl BudgetOverrides {
    pub(crate) fn of(budgets: &AgentBudgets) -> Self {
        Self {
            steps: Some(budgets.steps),
            calls: Some(budgets.calls),
            time: Some(budgets.time),
            tokens: Some(budgets.tokens),
            failures: Some(budgets.failures),
            repeats: Some(budgets.repeats),
            rotation_deg: Some(budgets.rotation_deg),
            forward_m: Some(budgets.forward_m),
            battery_pct: Some(budgets.battery_pct),
        }
    }

    /// Applies the budgets to a run that a person at the terminal starts. The person may set any value.
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

    /// Applies the budgets to a run that a bus client starts: values from the bus can only lower the limits of the configuration.
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

    /// Whether calls are written as lines of text.
    pub(crate) fn as_text(&self) -> bool {
        self.door.calls == CallStyle::Text
    }

    /// Applies the switches of a record. Tools that this run does not have remain excluded, whatever the record says.
    pub(crate) fn switch(&mut self, ablations: &Value) {
        fn take<T: DeserializeOwned>(ablations: &Value, key: &str, into: &mut T) {
            let value = ablations.get(key).cloned();
            if let Some(value) = value.and_then(|value| serde_json::from_value(value).ok()) {
                *into = value;
            }
        }
        let mut filters: Vec<ToolFilter> = Vec::new();
        take(ablations, "tools", &mut filters);
        self.filters.append(&mut filters);
        take(ablations, "blanked", &mut self.blank);
        let door = &mut self.door;
        take(ablations, "calls", &mut door.calls);
        take(ablations, "plan_preview", &mut door.plan_preview);
        take(ablations, "vision", &mut door.vision);
        take(ablations, "instructions", &mut door.instructions);
        take(ablations, "tools_budget_bytes", &mut door.tools_budget_bytes);
        take(ablations, "result_bytes", &mut door.result_bytes);
        take(ablations, "history_bytes", &mut door.history_bytes);
    }

    /// Returns the switches for the record: the settings that decide what the model sees and how it answers. `state_tools` are
    /// only informative: they guard budgets, so a record cannot choose them.
    pub(crate) fn ablations(&self) -> Value {
        let door = &self.door;
        json!({
            "calls": door.calls,
            "tools": self.filters,
            "blanked": self.blank,
            "plan_preview": door.plan_preview,
            "vision": door.vision,
            "instructions": door.instructions,
            "tools_budget_bytes": door.tools_budget_bytes,
            "result_bytes": door.result_bytes,
            "history_bytes": door.history_bytes,
            "state_tools": door.state_tools,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_narrows_budgets_and_never_widens_them() {
        let wide = BudgetOverrides {
            steps: Some(9_999),
            time: Some(Duration::from_secs(1)),
            rotation_deg: Some(1e6),
            forward_m: Some(1.0),
            battery_pct: Some(0.0),
            ..BudgetOverrides::default()
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

    fn settings() -> Settings {
        Settings {
            run_id: "r".to_owned(),
            goal: "g".to_owned(),
            door: AgentDoor::default(),
            filters: Vec::new(),
            blank: Vec::new(),
            dry_run: false,
            record: None,
        }
    }

    #[test]
    fn a_replay_has_the_switches_of_its_record_and_no_tool_that_this_run_does_not_have() {
        let deny = |name: &str| ToolFilter {
            allow: None,
            deny: vec![name.to_owned()],
        };
        for style in [CallStyle::Native, CallStyle::Text] {
            let mut recorded = settings();
            recorded.door.calls = style;
            recorded.door.result_bytes = 300;
            recorded.door.vision = true;
            recorded.filters = vec![deny("arm")];
            recorded.blank = vec!["dist_m".to_owned()];
            let mut replayed = settings();
            replayed.door.calls = CallStyle::Text;
            replayed.filters = vec![deny("takeoff")];
            replayed.switch(&recorded.ablations());
            assert_eq!(replayed.door, recorded.door);
            assert_eq!(replayed.blank, recorded.blank);
            for (tool, permitted) in [("arm", false), ("takeoff", false), ("wave", true)] {
                let all = replayed.filters.iter().all(|filter| filter.permits(tool));
                assert_eq!(all, permitted, "{tool}");
            }
        }
    }
}
