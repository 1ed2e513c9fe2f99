//! Emergency stops that other machines ask for, and the resumes that lift them. Read [`Desk::stop`].

use std::sync::Arc;
use std::time::Duration;

use zenoh::query::Query;

use engine::{Cause, Halt, StopTarget, Toolbox as _};
use ovos_toolbox_wire::{Effect, Failure, FailureKind};
use protocol::Answer;

use super::desk::Desk;
use super::orders::StopOrder;
use crate::clock;
use crate::messages::{ResumeAnswer, Right, StopAnswer, StopView};

/// How long a halt may take until its asker is told that it was not confirmed.
const HALT: Duration = Duration::from_millis(200);

impl Desk {
    /// An emergency stop: never refused. It is a stop of its own, so that no resume that is older than it lifts it. Only one that
    /// follows the stop that holds the toolbox halts it once more and changes nothing else: two machines that hear of each other's
    /// stops would stop each other for ever.
    pub(super) fn stop(self: &Arc<Self>, peer: &str, toolbox: String, order: StopOrder, query: Query) {
        let StopOrder { id, reason, mirrors } = order;
        match self.stops.lock().take(&id) {
            None => {}
            // One that is under way is answered by the repetition after its end.
            Some(None) => return,
            Some(Some(done)) => return self.reply(peer, &query, &Answer::Ok(done)),
        }
        let serving = self.toolboxes.serving(&toolbox).ok();
        let holder = self.held_by(&toolbox).filter(|holder| {
            mirrors.as_ref() == Some(&holder.stop_id) && !self.toolboxes.engine.is_resuming(&toolbox)
        });
        let (this, peer) = (self.clone(), peer.to_owned());
        if let (Some(holder), Some((copy, _))) = (holder, serving) {
            let (clock, epoch) = (clock::now_ms(), self.toolboxes.engine.stop_epoch(&toolbox));
            let halted = copy.toolbox.halt(Halt {
                subsystems: vec!["all".to_owned()],
                emergency: true,
                stop_epoch: epoch,
            });
            for call in self.toolboxes.engine.calls() {
                if call.toolbox_id == toolbox {
                    tracing::info!(
                        call_id = call.call_id,
                        toolbox,
                        tool = call.tool,
                        reason,
                        "a run is ended"
                    );
                    let (stop_id, reason) = (holder.stop_id.clone(), reason.clone());
                    call.end(Cause::EmergencyStop { stop_id, reason });
                }
            }
            self.spawn(async move {
                let unreached = match tokio::time::timeout(HALT, halted).await {
                    Ok(Ok(())) => None,
                    Ok(Err(why)) => Some(why.to_string()),
                    Err(_) => Some(format!(
                        "its halt was not answered within {} ms",
                        HALT.as_millis()
                    )),
                };
                let done = StopAnswer {
                    stop_id: holder.stop_id,
                    clock,
                    epoch,
                    unreached,
                };
                this.stopped(&peer, &id, done, &query);
            });
            return;
        }
        let target = StopTarget::Toolboxes(vec![toolbox.clone()]);
        let stopped = self.toolboxes.stop(&target, &reason);
        // It is latched by now.
        let (epoch, clock) = (self.toolboxes.engine.stop_epoch(&toolbox), clock::now_ms());
        self.spawn(async move {
            let stopped = stopped.await;
            let own = stopped.iter().find(|stopped| stopped.toolbox_id == toolbox);
            let done = own.or(stopped.first()).map(|stopped| StopAnswer {
                stop_id: stopped.stop_id.clone(),
                clock,
                epoch,
                unreached: stopped.unreached.clone(),
            });
            let done = done.unwrap_or_else(|| StopAnswer {
                stop_id: String::new(),
                clock,
                epoch,
                unreached: Some("this host serves no toolboxes: check --plugins there".to_owned()),
            });
            this.stopped(&peer, &id, done, &query);
        });
    }

    fn stopped(&self, peer: &str, id: &str, done: StopAnswer, query: &Query) {
        self.stops.lock().answered(id, &done);
        self.reply(peer, query, &Answer::Ok(done));
    }

    /// The stop that holds a toolbox: that of everything first, because only its id lifts it.
    pub(super) fn held_by(&self, toolbox: &str) -> Option<StopView> {
        let engine = &self.toolboxes.engine;
        let holder = engine.latch("all").or_else(|| engine.latch(toolbox))?;
        Some(StopView {
            stop_id: holder.stop_id,
            reason: holder.reason,
        })
    }

    /// Lifts a stop for an operator, and answers with the toolbox's count of stops, where it is one toolbox.
    pub(super) fn lift<F>(
        self: &Arc<Self>,
        peer: &str,
        right: Right,
        query: Query,
        lifted: impl FnOnce(Arc<Self>, String) -> F,
    ) where
        F: Future<Output = Result<Option<u64>, String>> + Send + 'static,
    {
        if right != Right::Resume {
            let why = "only an operator lifts an emergency stop";
            return self.refuse(peer, &query, FailureKind::PermissionError, why);
        }
        let lifted = lifted(self.clone(), peer.to_owned());
        let (this, peer) = (self.clone(), peer.to_owned());
        self.spawn(async move {
            let done = lifted.await.map(|epoch| ResumeAnswer {
                clock: clock::now_ms(),
                epoch,
            });
            let done = done.map_err(|why| Failure::new(FailureKind::EmergencyStop, why));
            this.send(&peer, &query, &Answer::from(done));
        });
    }

    /// Lifts the stop that holds a toolbox, if it is the newest that the asker knows.
    pub(super) async fn resume(
        &self,
        peer: &str,
        toolbox: &str,
        stop_id: Option<String>,
    ) -> Result<(), String> {
        let engine = &self.toolboxes.engine;
        self.permit_resume(peer, toolbox)?;
        if let Some(all) = engine.latch("all") {
            return Err(format!(
                "host `{host}` is stopped as a whole ({}); who may resume it there lifts that for all who use it, with `ovos-tools \
                 fabric resume-all {host} ADDRESS {}`",
                all.reason,
                all.stop_id,
                host = self.identity.name
            ));
        }
        let Some(holder) = self.held_by(toolbox) else {
            return Ok(());
        };
        let Some(stop_id) = stop_id else {
            return Err(format!("stop {} came meanwhile; ask again", holder.stop_id));
        };
        let resumed = engine.resume(toolbox, &stop_id, &operator(peer)).await;
        self.toolboxes.keep();
        resumed.map_err(|error| error.to_string())
    }

    /// As in the service, a resume is decided on as a tool `resume` of the toolbox.
    fn permit_resume(&self, peer: &str, toolbox: &str) -> Result<(), String> {
        let permitted = self.permit(peer, (toolbox, "resume"), Effect::Resume, &[]);
        permitted.map_err(|failure| failure.message)
    }

    /// Lifts a stop wherever it holds on this host.
    pub(super) async fn resume_all(&self, peer: &str, stop_id: &str) -> Result<(), String> {
        for toolbox in self.toolboxes.ids() {
            self.permit_resume(peer, &toolbox)?;
        }
        let resumed = self.toolboxes.engine.resume_all(stop_id, &operator(peer)).await;
        self.toolboxes.keep();
        let resumed = resumed.map_err(|error| error.to_string())?;
        let refused: Vec<String> = resumed
            .into_iter()
            .filter_map(|resumed| Some(resumed.refused?.to_string()))
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        Err(refused.join("; "))
    }
}

/// Who lifted a stop, as it is recorded.
fn operator(peer: &str) -> String {
    format!("{peer} (operator)")
}
