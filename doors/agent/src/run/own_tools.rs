//! Calls of the agent's own tools, and of all tools that stop something.

use door::find::FIND_TOOLS;
use door::{Answer, StopTool, stop};
use ovos_toolbox_wire::Object;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ledger::Run;
use crate::answer::ModelCall;
use crate::budget::millis;
use crate::end::End;
use crate::hands::planned;
use crate::news::News;
use crate::record::{self, Status};
use crate::toolbelt::{Own, Target};

/// How often an emergency stop is sent if it is not confirmed.
const STOPS: u32 = 3;

/// Returns the tool that a call is for, also through `call_tool`.
fn target_tool(asked: &ModelCall) -> &str {
    asked.inner.as_deref().unwrap_or(&asked.name)
}

impl Run<'_> {
    /// Returns the position of the first call that stops something.
    pub(super) fn first_stop(&self, calls: &[ModelCall]) -> Option<usize> {
        calls.iter().position(|call| self.belt.is_stop(target_tool(call)))
    }

    /// Carries out a stop. An emergency stop ends the run; after `stop_moving` the model continues.
    pub(super) async fn stop(&mut self, asked: &ModelCall, line: &mut record::Call) -> Option<End> {
        let name = target_tool(asked);
        let arguments = json!({});
        self.used.call(name, &arguments);
        (self.hands.audience)(&News::Call {
            name,
            arguments: &arguments,
            waves: &[],
        });
        let began = Instant::now();
        let (text, failed, latches) = match self.belt.target(name) {
            Some(Target::Own(Own::Stop(tool))) => {
                let stopped = self.stopped(*tool).await;
                (stopped.text, stopped.failed, *tool == StopTool::EmergencyStop)
            }
            Some(Target::Tool(tool)) => {
                // The arguments do not matter: validation never prevents a stop.
                let is_inner = asked.inner.is_some();
                let arguments = asked.arguments.clone().ok().filter(|_| !is_inner);
                let result = self.hands.make(tool, &arguments.unwrap_or_default()).await;
                if !result.succeeded() {
                    let stopped = self.stopped(StopTool::EmergencyStop).await;
                    (format!("{} {}", result.text, stopped.text), stopped.failed, true)
                } else {
                    (result.text, false, true)
                }
            }
            _ => return None,
        };
        line.ms = millis(began.elapsed());
        line.status = if failed { Status::Failed } else { Status::Completed };
        line.observation = json!(text);
        self.used.count_outcome(failed);
        (self.hands.audience)(&News::CallEnded {
            name,
            status: line.status,
            text: &text,
            ms: line.ms,
        });
        latches.then(|| End::Latched(format!("the model called {name}: {text}")))
    }

    /// Stops, and repeats the stop if it is not confirmed.
    async fn stopped(&self, tool: StopTool) -> Answer {
        let mut stopped = stop(tool, self.hands.door).await;
        for _ in 1..STOPS {
            if !stopped.failed || tool != StopTool::EmergencyStop {
                break;
            }
            stopped = stop(tool, self.hands.door).await;
        }
        stopped
    }

    /// Carries out a call of one of the agent's own tools.
    pub(super) async fn run_own_tool(
        &mut self,
        own: Own,
        arguments: &Object,
        calls: usize,
        line: &mut record::Call,
    ) -> Option<End> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        match own {
            Own::Finish => {
                let reached = arguments.get("reached").and_then(Value::as_bool);
                let summary = text("summary").trim().to_owned();
                let Some(reached) = reached.filter(|_| calls == 1) else {
                    let why = if calls == 1 {
                        "ValueError: finish needs `reached`, true or false"
                    } else {
                        "not done: call finish by itself, after you have read the results"
                    };
                    self.refuse(line, why);
                    return None;
                };
                line.status = Status::Completed;
                line.observation = json!("the run ends");
                Some(if reached {
                    End::Done(summary)
                } else {
                    End::GaveUp(summary)
                })
            }
            Own::FindTools => {
                self.used.call(FIND_TOOLS, &Value::Object(arguments.clone()));
                match self.belt.find(arguments, self.hands.settings.door.result_bytes) {
                    Ok(found) => {
                        line.status = Status::Completed;
                        line.observation = json!(found.to_string());
                        self.used.count_outcome(false);
                    }
                    Err(why) => self.refuse(line, &format!("ValueError: {why}")),
                }
                None
            }
            Own::PreviewPlan => {
                self.used.call("preview_plan", &Value::Object(arguments.clone()));
                let name = text("name");
                let Some(Target::Tool(tool)) = self.belt.target(name).cloned() else {
                    self.refuse(line, &format!("UnknownTool: {}.", self.belt.unknown(name)));
                    return None;
                };
                let inner = match arguments.get("arguments") {
                    Some(Value::Object(object)) => object.clone(),
                    _ => Object::new(),
                };
                match self.hands.plan(&tool, &inner).await {
                    Ok(plan) => {
                        line.status = Status::Completed;
                        line.observation = json!(planned(&plan).to_string());
                        self.used.count_outcome(false);
                    }
                    Err(why) => self.refuse(line, &why.text),
                }
                None
            }
            // The callers have handled both.
            Own::CallTool | Own::Stop(_) => None,
        }
    }
}
