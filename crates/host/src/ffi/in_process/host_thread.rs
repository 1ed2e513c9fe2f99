//! The thread that makes a toolbox's serialised calls, one at a time, from its open to its close. Read [`HostThread`].

use std::cell::Cell;
use std::io::Write as _;
use std::sync::Arc;

use ovos_toolbox_wire::Failure;
use tokio::sync::{oneshot, watch};

use super::to_json;
use crate::ffi::callbacks;
use crate::ffi::control::Control;
use crate::ffi::core::Core;
use crate::ffi::host_queue::Job;
use crate::ffi::load::Library;
use crate::ffi::table::Instance;
use crate::ffi::watchdog::{Calling, Meter};

/// What the host thread owns.
pub(super) struct HostThread {
    pub(super) core: Arc<Core>,
    pub(super) control: Arc<Control>,
    pub(super) library: Arc<Library>,
    pub(super) meter: Arc<Meter>,
    pub(super) closed: watch::Sender<bool>,
    /// Between the beginning of [`HostThread::run`] and its return.
    pub(super) running: Cell<bool>,
}

impl HostThread {
    pub(super) fn run(self, config: &str, opened: oneshot::Sender<Result<(), Failure>>) {
        self.running.set(true);
        self.serve(config, opened);
        self.running.set(false);
    }

    fn serve(&self, config: &str, opened: oneshot::Sender<Result<(), Failure>>) {
        let instance = match self.open(config) {
            Ok(instance) => instance,
            Err(failure) => {
                let _ = opened.send(Err(failure));
                return;
            }
        };
        if opened.send(Ok(())).is_err() {
            // The opener has given up, so no handle exists whose drop would close the queue.
            self.core.queue.close();
        }
        loop {
            match self.core.queue.next() {
                Job::Start { run, json } => self.start(&instance, run, &json),
                Job::Ask { calling, question } => self.meter.during(calling, || question(&instance)),
                Job::Response {
                    request,
                    status,
                    json,
                } => {
                    self.meter
                        .during(Calling::Response, || instance.on_response(request, status, &json));
                }
                Job::Message { topic, json } => {
                    self.meter
                        .during(Calling::Message, || instance.message(&topic, &json));
                }
                Job::Close => break,
            }
        }
        self.close(&instance);
    }

    fn open(&self, config: &str) -> Result<Arc<Instance>, Failure> {
        let id = &self.core.origin.toolbox_id;
        let host = callbacks::table_for(&self.core);
        let opened = self
            .meter
            .during(Calling::Open, || self.library.table.open(&host, config));
        let instance = Arc::new(opened?);
        if let Err(error) = self.control.run(Arc::clone(&instance), id) {
            self.close(&instance);
            return Err(Failure::new(
                "ToolboxError",
                format!("no control thread for toolbox `{id}`: {error}"),
            ));
        }
        Ok(instance)
    }

    fn start(&self, instance: &Instance, run: u64, json: &str) {
        if !self.core.runs.begin(run) {
            return;
        }
        let accepted = self.meter.during(Calling::Start, || instance.start(run, json));
        let again = self.core.runs.returned(run, accepted);
        // What came during `start` may have been too early for the toolbox to relate to this run. Done here rather
        // than on the control thread, so that it is over before the next start begins.
        for halt in again.halts {
            let subsystems = to_json(&halt.subsystems).unwrap_or_else(|_| r#"["all"]"#.to_owned());
            let said = self
                .control
                .halt_again(&subsystems, halt.emergency, |subsystems, emergency| {
                    self.meter
                        .during(Calling::Halt, || instance.halt(subsystems, emergency))
                });
            if let Err(failure) = said {
                tracing::error!(toolbox = &*self.core.origin.toolbox_id, %failure, "halt after a start failed");
            }
        }
        if again.cancel {
            self.meter.during(Calling::Cancel, || instance.cancel(run));
        }
    }

    fn close(&self, instance: &Instance) {
        let alone = self.control.close();
        self.meter.during(Calling::Close, || instance.close(alone));
        self.lose();
        self.closed.send_replace(true);
    }

    fn lose(&self) {
        let id = &self.core.origin.toolbox_id;
        self.core.runs.lose(&Failure::new(
            "ToolboxClosed",
            format!("toolbox `{id}` was closed while it ran"),
        ));
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        if self.running.get() && !std::thread::panicking() {
            // Unwinding without a panic of Rust's: an exception of C++ has left the toolbox. Rust ends the process for it
            // a few frames from here; it has to happen before the close is reported.
            let _ = std::io::stderr().write_all(b"a C++ exception left the toolbox\n");
            std::process::abort();
        }
        // Also when the thread panics: a waiter would wait for ever.
        self.core.queue.close();
        self.lose();
    }
}
