//! One instance, shared between the table and its thread.
//!
//! Owns the state that both of them use; nothing here waits for an element. Read [`Instance`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use ovos_toolbox_sdk::RoleProcess;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::watch;
use parking_lot::{Mutex, MutexGuard};

use super::process::{Input, Reply};
use super::record::Declared;
use super::status::{Status, Summary};
use super::view::View;
use crate::config::Restart;
use crate::order::Command;
use crate::report::{Message, Phase};
use crate::uses::Uses;

/// One instance; its thread has the receiving end.
pub(super) struct Instance {
    /// Counts the instances of this toolbox: no number comes twice, not even after a restart.
    pub(super) number: u64,
    pub(super) declared: Mutex<Declared>,
    pub(super) view: Mutex<View>,
    /// The phase of `view`, for those who wait for one.
    pub(super) phase: watch::Sender<Phase>,
    pub(super) inputs: SyncSender<Input>,
    pub(super) halted: AtomicBool,
    /// The process that plays it, while there is one.
    pub(super) process: Mutex<Option<Arc<RoleProcess>>>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Instance {
    /// Makes an instance, whose thread has the other end of `inputs`.
    pub(super) fn new(number: u64, declared: Declared, inputs: SyncSender<Input>) -> Arc<Self> {
        Arc::new(Self {
            number,
            declared: Mutex::new(declared),
            view: Mutex::new(View::new()),
            phase: watch::Sender::new(Phase::Starting),
            inputs,
            halted: AtomicBool::new(false),
            process: Mutex::new(None),
            thread: Mutex::new(None),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock()
    }

    pub(super) fn declared(&self) -> Declared {
        self.declared.lock().clone()
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

    /// Sets its phase, and tells those who wait for one.
    pub(super) fn set_phase(&self, phase: Phase) {
        self.lock().phase = phase;
        self.phase.send_replace(phase);
    }

    /// Notes what a pipeline uses.
    pub(super) fn note_uses(&self, uses: &Uses) {
        let mut view = self.lock();
        view.devices = uses.devices.iter().cloned().collect();
        view.writes = uses.writes.iter().cloned().collect();
    }

    /// Asks its thread to carry out a command. Never blocks.
    ///
    /// # Errors
    /// The queue of its thread is full, or the thread has ended.
    pub(super) fn ask(&self, command: Command, reply: Option<Reply>) -> Result<(), ToolError> {
        let sent = self.inputs.try_send(Input::Command(command, reply));
        sent.map_err(|_| ToolError::busy(format!("{} is overloaded or has ended", self.id())))
    }

    /// Ends it at once; never blocks.
    pub(super) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
        let stop = Command::Stop {
            grace: Duration::ZERO,
        };
        if self.ask(stop, None).is_err() {
            self.kill();
        }
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::SeqCst)
    }

    /// Kills its process. Never blocks.
    pub(super) fn kill(&self) {
        let process = self.process.lock();
        if let Some(process) = &*process {
            process.kill();
        }
    }

    /// Sets the process that plays it, from whose start on it counts as silent; `None` when the process has ended.
    pub(super) fn set_process(&self, process: Option<Arc<RoleProcess>>) {
        self.lock().last_word = process.as_ref().map(|_| std::time::Instant::now());
        *self.process.lock() = process;
    }

    pub(super) fn summary(&self) -> Summary {
        let declared = self.declared();
        let view = self.lock();
        Summary {
            instance_id: declared.instance_id,
            name: declared.name,
            pipeline: declared.pipeline,
            state: view.phase,
            stuck: view.is_stuck(),
            uptime_s: rounded(view.started.elapsed()),
            restart: declared.restart,
            autostart: declared.autostart,
            restarts: view.restarts,
            devices: view.devices.clone(),
            files: view.writes.clone(),
            error: view.error.as_ref().map(Message::line),
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
            messages: view.messages.iter().cloned().collect(),
        }
    }
}

/// A duration in seconds, rounded to milliseconds.
fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
