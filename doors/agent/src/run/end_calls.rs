//! The calls that toolboxes want at the end of a run that moved them, such as the landing of a vehicle in the air.

use std::sync::Arc;

use client::payload::AgentEndCall;
use door::ListedTool;
use futures_util::future::join_all;
use ovos_toolbox_wire::Object;
use serde_json::Value;

use super::ledger::Run;
use crate::batch::Claim;
use crate::end::End;
use crate::hands::{CallResult, waves};
use crate::news::News;
use crate::record::Status;

/// A call that a toolbox wants.
struct WantedCall {
    tool: Arc<ListedTool>,
    arguments: Object,
    waves: Vec<Vec<String>>,
}

impl Run<'_> {
    /// Makes these calls. After an end by people or an emergency stop no call begins, even if that end comes only now; `end`
    /// becomes that end.
    pub(super) async fn afterwards(&mut self, end: &mut End) -> Vec<AgentEndCall> {
        if end.is_of_people() || self.moved.is_empty() {
            return Vec::new();
        }
        let (wanted, mut end_calls) = self.find_calls().await;
        if wanted.is_empty() {
            return end_calls;
        }
        if let Some(by) = self.hands.watch.check().await.filter(End::is_of_people) {
            *end = by;
            return end_calls;
        }
        self.hands.ending = true;
        (self.hands.audience)(&News::Ending { end });
        end_calls.extend(join_all(wanted.iter().map(|wanted| self.carry_out(wanted))).await);
        if let Some(by) = self.hands.interrupt.raised().filter(End::is_of_people) {
            *end = by;
        }
        end_calls
    }

    /// Returns the calls for everything that the run moved, and those whose plan is refused.
    async fn find_calls(&self) -> (Vec<WantedCall>, Vec<AgentEndCall>) {
        let (mut wanted, mut refused) = (Vec::new(), Vec::new());
        for tool in self.belt.agent_ends() {
            if !self.moved.iter().any(|moved| moved.toolbox_id == tool.toolbox_id) {
                continue;
            }
            for arguments in &tool.agent_end {
                let plan = match self.hands.plan(tool, arguments).await {
                    Ok(plan) => plan,
                    Err(why) => {
                        refused.push(self.report(
                            tool,
                            arguments,
                            &CallResult::of_text(Status::Refused, &why.text),
                        ));
                        continue;
                    }
                };
                let waves = waves(&plan);
                let held = Claim {
                    toolbox_id: tool.toolbox_id.clone(),
                    effect: tool.effect,
                    subsystems: plan.subsystems,
                };
                if self.moved.iter().any(|moved| moved.shares(&held)) {
                    wanted.push(WantedCall {
                        tool: Arc::clone(tool),
                        arguments: arguments.clone(),
                        waves,
                    });
                }
            }
        }
        (wanted, refused)
    }

    async fn carry_out(&self, wanted: &WantedCall) -> AgentEndCall {
        let WantedCall {
            tool,
            arguments,
            waves,
        } = wanted;
        (self.hands.audience)(&News::Call {
            name: &tool.name,
            arguments: &Value::Object(arguments.clone()),
            waves,
        });
        let result = self.hands.make(tool, arguments).await;
        self.report(tool, arguments, &result)
    }

    fn report(&self, tool: &ListedTool, arguments: &Object, result: &CallResult) -> AgentEndCall {
        (self.hands.audience)(&News::CallEnded {
            name: &tool.name,
            status: result.status,
            text: &result.text,
            ms: result.ms,
        });
        AgentEndCall {
            toolbox_id: tool.toolbox_id.clone(),
            name: tool.name.clone(),
            arguments: arguments.clone(),
            call_id: result.call_id.clone(),
            ok: result.status == Status::Completed,
            text: result.text.clone(),
            ms: result.ms,
        }
    }
}
