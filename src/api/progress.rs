//! `ovos.tools.invoke.progress`: how far a call is, for callers that ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::{Outbox, Request, frame};
use crate::registry::Tool;
use bus::Message;
use client::payload::{ProgressKind, ProgressMessage};
use engine::{CallObserver, CallProgress};

const TOPIC: &str = "ovos.tools.invoke.progress";

/// Sends the progress of one call until it is closed.
pub(super) struct Progress(Arc<Shared>);

struct Shared {
    outbox: Arc<dyn Outbox>,
    head: Message,
    call_id: String,
    name: String,
    toolbox_id: String,
    received: Instant,
    seq: AtomicU64,
    /// Held while a message is sent, so that none is on its way when the answer goes out.
    open: Mutex<bool>,
}

impl Progress {
    pub(super) fn new(outbox: Arc<dyn Outbox>, request: &Request, tool: &Tool, call_id: &str) -> Self {
        Self(Arc::new(Shared {
            outbox,
            head: request.head.clone(),
            call_id: call_id.to_owned(),
            name: tool.name().to_owned(),
            toolbox_id: tool.toolbox_id.clone(),
            received: request.received,
            seq: AtomicU64::new(0),
            open: Mutex::new(true),
        }))
    }

    pub(super) fn observer(&self) -> CallObserver {
        let shared = self.0.clone();
        Arc::new(move |progress| shared.send(progress))
    }

    pub(super) fn close(&self) {
        *self.0.open.lock() = false;
    }
}

impl Shared {
    fn send(&self, progress: CallProgress<'_>) {
        let open = self.open.lock();
        if !*open {
            return;
        }
        match frame(&self.head, TOPIC, &self.message(progress)) {
            Ok(frame) => self.outbox.notify(frame),
            Err(error) => tracing::error!(%error, "a progress message cannot be written as JSON"),
        }
    }

    fn message(&self, progress: CallProgress<'_>) -> ProgressMessage {
        let mut message = ProgressMessage {
            call_id: self.call_id.clone(),
            name: self.name.clone(),
            toolbox_id: self.toolbox_id.clone(),
            seq: self.seq.fetch_add(1, Ordering::Relaxed) + 1,
            kind: ProgressKind::Queued,
            wave: 0,
            waves: 0,
            action: None,
            outcome: None,
            fraction: None,
            message: None,
            data: None,
            elapsed_ms: u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        match progress {
            CallProgress::Queued { ahead } => {
                message.message = Some(format!("{ahead} waiting calls are ahead"))
            }
            CallProgress::Wave { wave, waves } => {
                (message.kind, message.wave, message.waves) = (ProgressKind::Wave, wave, waves);
            }
            CallProgress::ActionStarted { action, wave, waves } => {
                (message.kind, message.wave, message.waves) = (ProgressKind::ActionStarted, wave, waves);
                message.action = Some(action.to_owned());
            }
            CallProgress::ActionEnded {
                action,
                outcome,
                wave,
                waves,
            } => {
                (message.kind, message.wave, message.waves) = (ProgressKind::ActionEnded, wave, waves);
                (message.action, message.outcome) = (Some(action.to_owned()), Some(outcome));
            }
            CallProgress::Update {
                action,
                progress,
                wave,
                waves,
            } => {
                (message.kind, message.wave, message.waves) = (ProgressKind::Update, wave, waves);
                message.action = Some(action.to_owned());
                message.fraction = progress.fraction;
                message.message.clone_from(&progress.message);
                message.data.clone_from(&progress.data);
            }
        }
        message
    }
}
