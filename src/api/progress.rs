//! `ovos.tools.invoke.progress`: the progress of a call, for clients that ask for it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::answer::frame;
use super::outbox::Outbox;
use super::request::{InRun, Request};
use bus::Message;
use client::payload::{ProgressKind, ProgressMessage};
use engine::{Call, Fact, Step};

const TOPIC: &str = "ovos.tools.invoke.progress";

/// Sends the progress of one call, from that call's own queue.
pub(super) struct Progress {
    steps: mpsc::Receiver<Step>,
    outbox: Arc<dyn Outbox>,
    head: Message,
    received: Instant,
    step: Option<InRun>,
}

impl Progress {
    pub(super) fn new(outbox: Arc<dyn Outbox>, request: &Request, steps: mpsc::Receiver<Step>) -> Self {
        Self {
            steps,
            outbox,
            head: request.head.clone(),
            received: request
                .step
                .as_ref()
                .map_or(request.received, |step| step.received),
            step: request.step.clone(),
        }
    }

    /// Runs a call and sends its steps meanwhile. All steps have been sent when this returns.
    ///
    /// # Cancel safety
    /// As safe as `call`. The caller pins `call`, because otherwise the future of every call would hold it twice.
    pub(super) async fn during<T>(&mut self, mut call: Pin<&mut impl Future<Output = T>>) -> T {
        loop {
            tokio::select! {
                biased;
                end = &mut call => {
                    while let Ok(step) = self.steps.try_recv() {
                        self.send(&step);
                    }
                    return end;
                }
                Some(step) = self.steps.recv() => self.send(&step),
            }
        }
    }

    fn send(&self, step: &Step) {
        let elapsed = step.at.saturating_duration_since(self.received);
        let Some(mut message) = message(step, elapsed) else {
            return;
        };
        if let Some(InRun { run_id, id, .. }) = &self.step {
            message.call_id.clone_from(run_id);
            message.step = Some(id.clone());
        }
        match frame(&self.head, None, TOPIC, &message) {
            Ok(frame) => self.outbox.notify(frame),
            Err(error) => tracing::error!(%error, "a progress message cannot be written as JSON"),
        }
    }
}

/// The message about a step of a call; `None` if the step is no progress.
fn message(step: &Step, elapsed: Duration) -> Option<ProgressMessage> {
    let of = |call: &Call, kind, wave: usize, waves: usize| ProgressMessage {
        call_id: call.call_id.clone(),
        step: None,
        name: call.tool.clone(),
        toolbox_id: call.toolbox_id.clone(),
        seq: step.seq,
        kind,
        wave,
        waves,
        action: None,
        outcome: None,
        fraction: None,
        message: None,
        data: None,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    };
    Some(match &*step.fact {
        Fact::Waiting { call, ahead } => ProgressMessage {
            message: Some(format!("{ahead} waiting calls are ahead")),
            ..of(call, ProgressKind::Queued, 0, 0)
        },
        Fact::Wave { call, wave, waves } => of(call, ProgressKind::Wave, *wave, *waves),
        Fact::ActionStarted {
            call,
            action,
            wave,
            waves,
        } => ProgressMessage {
            action: Some(action.clone()),
            ..of(call, ProgressKind::ActionStarted, *wave, *waves)
        },
        Fact::ActionEnded {
            call,
            action,
            outcome,
            wave,
            waves,
            duration_ms: _,
        } => ProgressMessage {
            action: Some(action.clone()),
            outcome: Some(*outcome),
            ..of(call, ProgressKind::ActionEnded, *wave, *waves)
        },
        Fact::Update {
            call,
            action,
            progress,
            wave,
            waves,
        } => ProgressMessage {
            action: Some(action.clone()),
            fraction: progress.fraction,
            message: progress.message.clone(),
            data: progress.data.clone(),
            ..of(call, ProgressKind::Update, *wave, *waves)
        },
        _ => return None,
    })
}
