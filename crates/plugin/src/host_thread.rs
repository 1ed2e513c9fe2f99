//! The thread that makes a toolbox's serialised calls, one at a time, from its open to its close. Read [`HostThread`].

use std::cell::Cell;
use std::io::Write as _;
use std::sync::Arc;
use std::thread;

use ovos_toolbox_wire::{Failure, FailureKind};
use parking_lot::Mutex;
use program::Reply;
use protocol::Functions;

use crate::callbacks;
use crate::control::json_of;
use crate::host_queue::Job;
use crate::load::Library;
use crate::plugin::Plugin;
use crate::table::Instance;
use crate::watchdog::ToolboxFunction;

/// The state of the host thread.
pub(crate) struct HostThread {
    plugin: Arc<Plugin>,
    library: Arc<Library>,
    /// Called at the end.
    closed: Option<Box<dyn FnOnce() + Send>>,
    /// True from the beginning of [`HostThread::run`] until it returns.
    running: Cell<bool>,
}

impl HostThread {
    pub(crate) fn new(plugin: Arc<Plugin>, library: Arc<Library>, closed: Box<dyn FnOnce() + Send>) -> Self {
        Self {
            plugin,
            library,
            closed: Some(closed),
            running: Cell::new(false),
        }
    }

    /// Starts the thread; `opened` gets the result of opening the toolbox.
    pub(crate) fn spawn(self, opened: Reply<Functions>) {
        let id = self.plugin.id().to_owned();
        // If the thread cannot be started, the closure is lost, so the reply is passed through a slot.
        let slot = Arc::new(Mutex::new(Some(opened)));
        let taken = slot.clone();
        let spawned = thread::Builder::new().name(format!("tb-{id}")).spawn(move || {
            if let Some(opened) = taken.lock().take() {
                self.run(opened);
            }
        });
        if let Err(error) = spawned
            && let Some(opened) = slot.lock().take()
        {
            let text = format!("no thread for toolbox `{id}`: {error}");
            opened(Err(Failure::new(FailureKind::ToolboxError, text).into()));
        }
    }

    fn run(self, opened: Reply<Functions>) {
        self.running.set(true);
        match self.open() {
            Ok(instance) => {
                opened(Ok(self.library.functions()));
                self.serve(&instance);
                self.close(&instance);
            }
            Err(failure) => opened(Err(failure.into())),
        }
        self.running.set(false);
    }

    fn serve(&self, instance: &Arc<Instance>) {
        loop {
            match self.plugin.queue.next() {
                Job::Start { run, json } => self.start(instance, run, &json),
                Job::Ask { calling, question } => self.during(calling, || question(Ok(instance))),
                Job::Response {
                    request,
                    status,
                    json,
                } => {
                    self.during(ToolboxFunction::Response, || {
                        instance.on_response(request, status, &json)
                    });
                }
                Job::Message { topic, json } => {
                    self.during(ToolboxFunction::Message, || instance.message(&topic, &json));
                }
                Job::Close => return,
            }
        }
    }

    fn open(&self) -> Result<Arc<Instance>, Failure> {
        let (id, opening) = (self.plugin.id(), &self.plugin.opening);
        let host = callbacks::table_for(&self.plugin);
        let opened = self.during(ToolboxFunction::Open, || {
            let limit = opening.max_result_bytes;
            self.library.table.open(host, opening.config.text(), limit)
        });
        let instance = Arc::new(opened?);
        if let Err(error) = self.plugin.control.run(Arc::clone(&instance), id) {
            self.close(&instance);
            return Err(Failure::new(
                FailureKind::ToolboxError,
                format!("no control thread for toolbox `{id}`: {error}"),
            ));
        }
        Ok(instance)
    }

    fn start(&self, instance: &Instance, run: u64, json: &str) {
        if !self.plugin.runs.begin(run) {
            return;
        }
        let accepted = self.during(ToolboxFunction::Start, || instance.start(run, json));
        let again = self.plugin.runs.returned(run, accepted);
        // A cancel or halt that came during `start` may have been too early for the toolbox to relate it to this run,
        // so it is repeated. This thread repeats it, and not the control thread, so that it is done before the next
        // start begins.
        for halt in again.halts {
            let subsystems = json_of(&halt.subsystems);
            let result =
                self.plugin
                    .control
                    .halt_again(&subsystems, halt.emergency, |subsystems, emergency| {
                        self.during(ToolboxFunction::Halt, || instance.halt(subsystems, emergency))
                    });
            if let Err(failure) = result {
                tracing::error!(toolbox = self.plugin.id(), %failure, "halt after a start failed");
            }
        }
        if again.cancel {
            self.during(ToolboxFunction::Cancel, || instance.cancel(run));
        }
    }

    fn during<T>(&self, calling: ToolboxFunction, call: impl FnOnce() -> T) -> T {
        self.plugin.meter.during(calling, call)
    }

    fn close(&self, instance: &Instance) {
        let alone = self.plugin.control.close();
        self.during(ToolboxFunction::Close, || instance.close(alone));
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        if self.running.get() && !std::thread::panicking() {
            // Unwinding without a Rust panic: a C++ exception has left the toolbox. Rust would end the process a few
            // frames from here, but the process has to end before the close is reported.
            let _ = std::io::stderr().write_all(b"an uncaught C++ exception left the toolbox\n");
            std::process::abort();
        }
        // Also if the thread panics: otherwise a caller would wait for ever.
        self.plugin.begin_close();
        let text = format!("toolbox `{}` was closed while it ran", self.plugin.id());
        self.plugin
            .runs
            .lose(&Failure::new(FailureKind::ToolboxClosed, text));
        if let Some(closed) = self.closed.take() {
            closed();
        }
    }
}
