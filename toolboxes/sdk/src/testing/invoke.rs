//! Runs planned tools without an engine: the actions of a plan one after the other, in the order of their dependencies.

use std::time::Instant;

use ovos_toolbox_abi::status;
use ovos_toolbox_wire::{Action, ActionReport, CallOutcome, Conclusion, Failure, Object, Outcome, Report};
use serde_json::Value;

use super::harness::Harness;

impl Harness {
    /// Runs a tool like the service, but one action after the other: plan, actions in the order of their dependencies,
    /// conclude. The first failure skips the rest. Without a conclusion of the toolbox the result is
    /// [`Report::conclusion`], as in the service.
    ///
    /// # Errors
    /// The plan was refused, or the tool's answer is an error.
    ///
    /// # Panics
    /// The plan has a cycle or an unknown dependency, or an action did not complete.
    pub fn invoke(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        let Some(actions) = self
            .plan(tool, args.clone())
            .map_err(|refused| *refused.failure)?
        else {
            return self.call(tool, args);
        };
        let report = self.run_actions(tool, &actions);
        let concluded = self.conclude(tool, args, &report)?;
        match concluded.unwrap_or_else(|| report.conclusion()) {
            Conclusion::Output(output) => Ok(output),
            Conclusion::Error(failure) => Err(failure),
        }
    }

    fn run_actions(&self, tool: &str, actions: &[Action]) -> Report {
        let began_at = Instant::now();
        let ids = identify(actions);
        let mut done: Vec<Option<ActionReport>> = vec![None; actions.len()];
        let mut failed = false;
        while let Some(next) = (0..actions.len()).find(|&index| {
            done[index].is_none()
                && dependencies(actions, &ids, index)
                    .iter()
                    .all(|&before| done[before].is_some())
        }) {
            let before = dependencies(actions, &ids, next);
            let wave = 1 + before
                .iter()
                .filter_map(|&index| done[index].as_ref())
                .map(|line| line.wave)
                .max()
                .unwrap_or(0);
            let inputs: Object = before
                .iter()
                .filter_map(|&index| Some((ids[index].clone(), done[index].as_ref()?.output.clone()?)))
                .collect();
            let start = Instant::now();
            let ended = (!failed).then(|| {
                let action = Action {
                    id: Some(ids[next].clone()),
                    ..actions[next].clone()
                };
                match self.start_action(tool, action, Value::Object(inputs)) {
                    Ok(run) => {
                        let ended = run.wait();
                        (ended.status, ended.result())
                    }
                    Err(refused) => (refused.status, Err(*refused.failure)),
                }
            });
            let (outcome, output, error) = match ended {
                None => (Outcome::Skipped, None, None),
                Some((_, Ok(output))) => (Outcome::Completed, Some(output), None),
                Some((status::CANCELLED, Err(failure))) => (Outcome::Cancelled, None, Some(failure)),
                Some((_, Err(failure))) => (Outcome::Failed, None, Some(failure)),
            };
            failed |= outcome != Outcome::Completed;
            done[next] = Some(ActionReport {
                id: ids[next].clone(),
                name: actions[next].name.clone(),
                subsystems: actions[next].subsystems.clone(),
                wave,
                outcome,
                duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
                output,
                error,
            });
        }
        assert!(done.iter().all(Option::is_some), "the plan has a cycle");
        let actions: Vec<ActionReport> = done.into_iter().flatten().collect();
        Report {
            outcome: CallOutcome::of(&actions),
            duration_ms: u64::try_from(began_at.elapsed().as_millis()).unwrap_or(u64::MAX),
            actions,
        }
    }
}

/// The ids that the service would assign.
fn identify(actions: &[Action]) -> Vec<String> {
    let repeats = |name: &str| actions.iter().filter(|action| action.name == name).count() > 1;
    actions
        .iter()
        .map(|action| match (&action.id, action.subsystems.first()) {
            (Some(id), _) => id.clone(),
            (None, Some(subsystem)) if repeats(&action.name) => format!("{}:{subsystem}", action.name),
            (None, _) => action.name.clone(),
        })
        .collect()
}

fn dependencies(actions: &[Action], ids: &[String], of: usize) -> Vec<usize> {
    let mut found = Vec::new();
    for wanted in &actions[of].dependencies {
        let matching: Vec<usize> = (0..actions.len())
            .filter(|&index| ids[index] == *wanted || actions[index].name == *wanted)
            .collect();
        assert!(
            !matching.is_empty(),
            "{} depends on {wanted}, which is not in the plan",
            ids[of]
        );
        found.extend(matching);
    }
    found
}
