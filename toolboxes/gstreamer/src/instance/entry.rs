//! One instance, shared between the table and its thread.
//!
//! Owns the state that both of them and the pipeline's own threads use; nothing here waits for an element. Read
//! [`Instance`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::watch;

use super::build::Built;
use super::command::{Command, Input};
use super::record::Declared;
use super::status::{Status, Summary};
use super::view::{Phase, Said, View};
use crate::config::Restart;

/// One instance; its thread has the receiving end.
pub(super) struct Instance {
    pub(super) order: u64,
    pub(super) declared: Mutex<Declared>,
    pub(super) view: Mutex<View>,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) inputs: SyncSender<Input>,
    /// An error, an end or a refusal that did not fit the queue.
    pub(super) urgent: Mutex<Option<Input>>,
    pub(super) halted: AtomicBool,
    /// Set while it is in a state other than NULL.
    pub(super) pipeline: Mutex<Option<gst::Pipeline>>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// Size of a thread's queue. Commands are few, and of the messages only errors and ends must not be lost, which have a
/// separate slot.
const MOST_WAITING: usize = 256;

impl Instance {
    /// Makes an instance, and the receiver for its thread.
    pub(super) fn new(order: u64, declared: Declared, built: Option<&Built>) -> (Arc<Self>, Receiver<Input>) {
        let (inputs, waiting) = sync_channel(MOST_WAITING);
        let mut view = View::new();
        if let Some(built) = built {
            view.devices = built.uses.devices.iter().cloned().collect();
            view.writes = built.uses.writes.iter().cloned().collect();
        }
        let instance = Arc::new(Self {
            order,
            declared: Mutex::new(declared),
            view: Mutex::new(view),
            phase: watch::Sender::new(Phase::Starting),
            inputs,
            urgent: Mutex::new(None),
            halted: AtomicBool::new(false),
            pipeline: Mutex::new(None),
            thread: Mutex::new(None),
        });
        (instance, waiting)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn declared(&self) -> Declared {
        self.declared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn id(&self) -> String {
        self.declared().instance_id
    }

    pub(super) fn name(&self) -> String {
        self.declared().name
    }

    pub(super) fn restart(&self) -> Restart {
        self.declared().restart
    }

    pub(super) fn pipeline_text(&self) -> String {
        self.declared().pipeline
    }

    pub(super) fn change_declared(&self, change: impl FnOnce(&mut Declared)) {
        change(&mut self.declared.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
        self.phase.send_replace(phase);
    }

    /// Marks it as halted; the thread checks that at its next turn. Does not wake the thread.
    pub(super) fn mark_halted(&self) {
        self.halted.store(true, Ordering::SeqCst);
    }

    /// Ends it at once; never blocks.
    pub(super) fn halt(&self) {
        self.mark_halted();
        // Wakes the thread; if the queue is full, the thread is awake.
        _ = self.inputs.try_send(Input::Command(Command::Stop {
            grace: Duration::ZERO,
        }));
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::SeqCst)
    }

    /// Posts an input from a thread of the pipeline; never blocks. Inputs that must not be lost have a separate slot.
    pub(super) fn post(&self, input: Input) {
        let input = match self.inputs.try_send(input) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => return,
            Err(TrySendError::Full(input)) => input,
        };
        let matters = match &input {
            Input::Refused(_) => true,
            Input::Message(message) => {
                matches!(message.type_(), gst::MessageType::Error | gst::MessageType::Eos)
            }
            Input::Command(_) => false,
        };
        if matters {
            let mut urgent = self.urgent.lock().unwrap_or_else(PoisonError::into_inner);
            urgent.get_or_insert(input);
        }
    }

    pub(super) fn take_urgent(&self) -> Option<Input> {
        self.urgent.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn clear_urgent(&self) {
        drop(self.take_urgent());
    }

    pub(super) fn remember_pipeline(&self, pipeline: &gst::Pipeline) {
        *self.pipeline.lock().unwrap_or_else(PoisonError::into_inner) = Some(pipeline.clone());
    }

    pub(super) fn forget_pipeline(&self) {
        *self.pipeline.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn summary(&self) -> Summary {
        let declared = self.declared();
        let view = self.lock();
        Summary {
            instance_id: declared.instance_id,
            name: declared.name,
            pipeline: declared.pipeline,
            state: view.phase,
            stuck: view.stuck().is_some(),
            uptime_s: rounded(view.started.elapsed()),
            restart: declared.restart,
            autostart: declared.autostart,
            restarts: view.restarts,
            devices: view.devices.clone(),
            files: view.writes.clone(),
            error: view.error.as_ref().map(Said::line),
            reason: view.reason.clone(),
        }
    }

    pub(super) fn status(&self) -> Status {
        let summary = self.summary();
        let view = self.lock();
        Status {
            summary,
            clockwork: view.clockwork.clone(),
            playing_s: view.playing_since.map(|since| rounded(since.elapsed())),
            files_finished: view.finished,
            last_error: view.error.clone(),
            messages: view.said.iter().cloned().collect(),
        }
    }
}

fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
