//! `ovos.tools.stop`, `ovos.tools.resume`, `ovos.stop`, and tools of effect `stop` and `resume`.
//!
//! A stop is never refused: a request that cannot be understood stops more, not less.

use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::{
    ActionReport, CallOutcome, Conclusion, Effect, FailureKind, Object, Outcome, Report,
};
use serde_json::{Value, json};

use super::error::WireError;
use super::keys::{required_text, steps_of};
use super::request::Request;
use super::resolve::{python_text, stops, tools_of, unavailable};
use super::state::Api;
use super::topic::{Topic, Urgent};
use crate::registry::Tool;
use bus::{Envelope, Message};
use client::payload::{OffToolbox, StopResponse, StoppedToolbox};
use engine::{ResumeError, StopResult, StopTarget, Verdict};

/// A stop request that is longer than this, in bytes, stops everything before it is read, because reading megabytes
/// takes longer than stopping.
const LARGEST: usize = 64 << 10;

/// The name in a resume that lifts a stop from every toolbox that it holds.
pub(super) const EVERYTHING: &str = "all";

/// The name under which rules decide on `ovos.tools.resume`, as on a tool of each toolbox that the stop holds.
const RESUME: &str = "resume";

/// The entry of a resume's answer for one toolbox.
fn resume_entry(toolbox_id: &str, error: Option<String>) -> StoppedToolbox {
    StoppedToolbox {
        toolbox_id: toolbox_id.to_owned(),
        ok: error.is_none(),
        stop_id: None,
        error,
    }
}

/// The entry of a stop's answer for one toolbox.
fn stop_entry(stopped: StopResult) -> StoppedToolbox {
    let StopResult {
        toolbox_id,
        stop_id,
        unreached,
    } = stopped;
    let error = unreached.map(|why| WireError::new(FailureKind::ToolboxUnavailable, why).text);
    StoppedToolbox {
        toolbox_id,
        ok: error.is_none(),
        stop_id: Some(stop_id),
        error,
    }
}

/// Adds to an entry the error that the stop holds but is not recorded, so that a restart of the service would lose it.
fn mark_unrecorded(toolbox: &mut StoppedToolbox, why: &str) {
    toolbox.ok = false;
    let text = WireError::new(
        FailureKind::StateError,
        format!(
            "it is in emergency stop, but the stop could not be saved, so a restart of the service would lift it: {why}; free space in or \
             fix service.state_dir, then stop again"
        ),
    );
    toolbox.error = Some(match toolbox.error.take() {
        Some(error) => format!("{error}; {}", text.text),
        None => text.text,
    });
}

impl Api {
    /// Serves a stop request that was received at `received`, whatever its frame contains beside its type.
    ///
    /// # Cancel safety
    /// The stop has been carried out when this first yields; only its answer would be lost.
    pub async fn urgent(self: &Arc<Self>, urgent: Urgent, text: &str, received: Instant) {
        let large = text.len() > LARGEST;
        let (head, data) = if large { (None, Object::new()) } else { read(text) };
        match urgent {
            Urgent::UserStop => {
                let session = head.as_ref().and_then(Message::session_id);
                let ended = self.engine.user_stop_at(session, received);
                tracing::info!(session, ended, "the user said stop");
            }
            Urgent::EmergencyStop => {
                let target = match data.get("toolbox_id") {
                    Some(Value::String(id)) => StopTarget::Toolboxes(vec![id.clone()]),
                    _ => StopTarget::All,
                };
                let reason = format!("ovos.tools.stop from {}", asker(head.as_ref()));
                let answer = StopResponse {
                    toolboxes: self.stop(&target, &reason).await,
                };
                let (head, data) = if large {
                    let text = text.to_owned();
                    let read = tokio::task::spawn_blocking(move || read(&text));
                    read.await.unwrap_or_default()
                } else {
                    (head, data)
                };
                if let Some(head) = head {
                    self.answer(&Request::of_stop(head, data, received), &answer)
                        .await;
                }
            }
        }
    }

    /// Whether a request calls a tool of effect `stop`, which must not wait behind other requests. Parses as little
    /// of the request as possible.
    #[must_use]
    pub fn calls_stop(&self, topic: &Topic, text: &str) -> bool {
        let snapshot = self.registry.snapshot();
        if text.len() > LARGEST
            || !matches!(topic, Topic::Invoke | Topic::Run | Topic::Call { .. })
            || !snapshot.may_stop(text)
        {
            return false;
        }
        let Ok(envelope) = Envelope::parse(text) else {
            return false;
        };
        let Ok(head) = envelope.head() else { return false };
        let data = envelope.data_map().unwrap_or_else(|_| envelope.plain_data());
        let received = Instant::now();
        let request = Request::new(head, data, received);
        let tools = match topic {
            Topic::Call { toolbox_id } => {
                let of_topic = toolbox_id.as_deref();
                let named = of_topic.or_else(|| request.data.get("toolbox_id")?.as_str());
                let name = request.data.get("name").map_or_else(String::new, python_text);
                named.map_or_else(Vec::new, |id| tools_of(&snapshot, id, &name))
            }
            Topic::Run => self.stops_among(&request.data),
            _ => self.resolve(&request.data).unwrap_or_default(),
        };
        tools.last().is_some_and(|tool| tool.effect() == Effect::Stop)
    }

    /// The tools of effect `stop` that the steps of a run name, whatever else is wrong with the run.
    pub(super) fn stops_among(&self, data: &Object) -> Vec<Arc<Tool>> {
        let snapshot = self.registry.snapshot();
        let mut found: Vec<Arc<Tool>> = Vec::new();
        for step in steps_of(data) {
            let name = step.get("name").and_then(Value::as_str).unwrap_or_default();
            // Most names are not the name of a stop; only names of stops are looked up in full.
            if stops(&snapshot, name).is_empty() {
                continue;
            }
            let tools = self.resolve(step).unwrap_or_default();
            for tool in tools.into_iter().filter(|tool| tool.effect() == Effect::Stop) {
                if !found.iter().any(|other| other.toolbox_id == tool.toolbox_id) {
                    found.push(tool);
                }
            }
        }
        found
    }

    /// Stops toolboxes and returns what was stopped.
    ///
    /// # Cancel safety
    /// The stop has been carried out when this first yields.
    pub async fn stop(&self, target: &StopTarget, reason: &str) -> Vec<StoppedToolbox> {
        let confirmed = self.engine.stop(target, reason);
        // Recorded at the same time, not after the toolboxes have confirmed: a service that dies meanwhile is latched
        // after its restart.
        let (stopped, remembered) = futures_util::join!(confirmed, self.toolboxes.latches_changed());
        let mut stopped: Vec<_> = stopped.into_iter().map(stop_entry).collect();
        stopped.extend(self.unreached(target));
        if let Err(why) = remembered {
            stopped
                .iter_mut()
                .for_each(|toolbox| mark_unrecorded(toolbox, &why));
        }
        stopped
    }

    /// The entries of toolboxes that no stop reaches, because it is not known what they drive.
    fn unreached(&self, target: &StopTarget) -> Vec<StoppedToolbox> {
        let off = self.toolboxes.off();
        let unknown = off.iter().filter(|off| off.enable.is_none());
        let meant = unknown.filter(|off| match target {
            StopTarget::All => true,
            StopTarget::Toolboxes(ids) => ids.contains(&off.toolbox_id),
        });
        let entry = |off: &OffToolbox| StoppedToolbox {
            toolbox_id: off.toolbox_id.clone(),
            ok: false,
            stop_id: None,
            error: Some(
                WireError::new(
                    FailureKind::ToolboxUnavailable,
                    format!("not reached: {}", off.reason),
                )
                .text,
            ),
        };
        meant.map(entry).collect()
    }

    pub(super) async fn resume(&self, request: &Request) -> StopResponse {
        let text = |key| required_text(&request.data, key);
        match (text("toolbox_id"), text("stop_id")) {
            (Ok(toolbox_id), Ok(stop_id)) => {
                let by = format!("ovos.tools.resume from {}", asker(Some(&request.head)));
                match self.permit_resume(request, &toolbox_id, Some(&stop_id), RESUME) {
                    Ok(()) => self.lift_stop(&toolbox_id, &stop_id, &by).await,
                    Err(error) => StopResponse {
                        toolboxes: vec![resume_entry(&toolbox_id, Some(error.text))],
                    },
                }
            }
            (Err(error), _) | (_, Err(error)) => {
                let toolbox_id = request.data.get("toolbox_id").and_then(Value::as_str);
                let toolboxes = vec![resume_entry(toolbox_id.unwrap_or_default(), Some(error.text))];
                StopResponse { toolboxes }
            }
        }
    }

    /// Lifts a stop, as an operator asks for it; `by` names the operator for the events and the facts.
    ///
    /// # Cancel safety
    /// The stop may be lifted without an answer.
    pub async fn lift_stop(&self, toolbox_id: &str, stop_id: &str, by: &str) -> StopResponse {
        let lifted = if toolbox_id == EVERYTHING {
            self.lift_all(stop_id, by).await
        } else {
            let lifted = self.lift(toolbox_id, stop_id, by).await;
            lifted.map(|()| vec![resume_entry(toolbox_id, None)])
        };
        let toolboxes = lifted.unwrap_or_else(|error| vec![resume_entry(toolbox_id, Some(error.text))]);
        StopResponse { toolboxes }
    }

    async fn lift(&self, toolbox_id: &str, stop_id: &str, by: &str) -> Result<(), WireError> {
        let lifted = self.engine.resume(toolbox_id, stop_id, by).await;
        lifted.map_err(|error| not_resumed(&error))?;
        // If this fails, it is logged, and a restarted service has the toolbox latched, which is safe.
        _ = self.toolboxes.latches_changed().await;
        Ok(())
    }

    /// Lifts a stop everywhere. The first entry is about the stop as a whole, each other one about a toolbox that it
    /// held.
    async fn lift_all(&self, stop_id: &str, by: &str) -> Result<Vec<StoppedToolbox>, WireError> {
        let lifted = self.engine.resume_all(stop_id, by).await;
        let resumed = lifted.map_err(|error| not_resumed(&error))?;
        _ = self.toolboxes.latches_changed().await;
        let stays = resumed.iter().filter(|toolbox| toolbox.refused.is_some());
        let stays: Vec<&str> = stays.map(|toolbox| toolbox.toolbox_id.as_str()).collect();
        let error = (!stays.is_empty()).then(|| {
            let text = format!(
                "not resumed: {} is still stopped; its line says why",
                stays.join(", ")
            );
            WireError::new(FailureKind::EmergencyStop, text).text
        });
        let mut lines = vec![resume_entry(EVERYTHING, error)];
        lines.extend(resumed.iter().map(|toolbox| {
            let error = toolbox.refused.as_ref().map(|error| not_resumed(error).text);
            resume_entry(&toolbox.toolbox_id, error)
        }));
        Ok(lines)
    }

    /// Runs a tool of effect `stop`: stops the toolboxes that own it, whatever the arguments are.
    pub(super) async fn run_stop(&self, request: &Request, tools: &[Arc<Tool>]) -> Value {
        let ids = tools.iter().map(|tool| tool.toolbox_id.clone()).collect();
        let name = tools.first().map_or("stop", |tool| tool.name());
        let stopped = self
            .stop(
                &StopTarget::Toolboxes(ids),
                &format!("tool `{name}` from {}", asker(Some(&request.head))),
            )
            .await;
        let ok = stopped.iter().all(|toolbox| toolbox.ok);
        let stop_id = stopped.first().and_then(|toolbox| toolbox.stop_id.clone());
        let output = json!({
            "success": ok,
            "message": if ok { "Emergency stop activated" } else { "Emergency stop activated, but not confirmed by all" },
            "stop_id": stop_id,
            "toolboxes": stopped,
        });
        match tools {
            [tool] => self.concluded(tool, output).await,
            _ => output,
        }
    }

    /// Runs a tool of effect `resume`: for operators, and only if the configuration allows it.
    pub(super) async fn run_resume(
        &self,
        request: &Request,
        tool: &Arc<Tool>,
        args: Option<&Value>,
    ) -> Result<Value, WireError> {
        let (name, toolbox_id) = (tool.name(), tool.toolbox_id.as_str());
        if !self.settings.operator_tools {
            return Err(WireError::new(
                FailureKind::PermissionError,
                format!(
                    "'{name}' is for an operator: use `ovos-tools resume`, or set service.operator_tools to true"
                ),
            ));
        }
        let holder = self.engine.latch(toolbox_id);
        let wanted = args.and_then(|args| args.get("stop_id")?.as_str());
        let stop_id = wanted.map(str::to_owned).or(holder.map(|stop| stop.stop_id));
        self.permit_resume(request, toolbox_id, stop_id.as_deref(), name)?;
        let Some(stop_id) = stop_id else {
            let output = json!({"success": true, "message": "It was not in emergency stop state"});
            return Ok(self.concluded(tool, output).await);
        };
        let by = format!("tool `{name}` from {}", asker(Some(&request.head)));
        self.lift(toolbox_id, &stop_id, &by).await?;
        let output = json!({"success": true, "message": "Emergency stop lifted", "stop_id": stop_id});
        Ok(self.concluded(tool, output).await)
    }

    /// The toolbox's own answer for a stop or resume that the service carried out.
    async fn concluded(&self, tool: &Arc<Tool>, output: Value) -> Value {
        let report = Report {
            outcome: CallOutcome::Completed,
            duration_ms: 0,
            actions: vec![ActionReport {
                id: tool.name().to_owned(),
                name: tool.name().to_owned(),
                subsystems: vec!["all".to_owned()],
                wave: 1,
                outcome: Outcome::Completed,
                duration_ms: 0,
                output: Some(output.clone()),
                error: None,
            }],
        };
        debug_assert!(matches!(tool.effect(), Effect::Stop | Effect::Resume));
        let Some(lease) = self.engine.lease(&tool.toolbox_id, tool.generation) else {
            return output;
        };
        match self
            .engine
            .conclude(&lease, tool.name(), &Object::new(), &report)
            .await
        {
            Verdict::Toolbox(Conclusion::Output(answer)) | Verdict::Engine(Conclusion::Output(answer)) => {
                answer
            }
            Verdict::Toolbox(Conclusion::Error(failure)) | Verdict::Engine(Conclusion::Error(failure)) => {
                let error = unavailable(&tool.toolbox_id, &failure.to_string());
                tracing::warn!(
                    toolbox = tool.toolbox_id,
                    error = error.text,
                    "no conclusion for a stop"
                );
                output
            }
        }
    }
}

/// Who sent a request, as far as it says so.
fn asker(head: Option<&Message>) -> &str {
    head.and_then(|head| head.context.get("source")?.as_str())
        .unwrap_or("a bus client")
}

fn not_resumed(error: &ResumeError) -> WireError {
    WireError::new(FailureKind::EmergencyStop, format!("not resumed: {error}"))
}

/// The readable parts of a stop request.
fn read(text: &str) -> (Option<Message>, Object) {
    let Ok(envelope) = Envelope::parse(text) else {
        return (None, Object::new());
    };
    (envelope.head().ok(), envelope.data_map().unwrap_or_default())
}
