//! The toolbox: its runs and their ends. Read [`Ovos`].

use std::collections::HashMap;
use std::sync::Arc;

use config::BusConfig;
use ovos_toolbox_wire::{Failure, FailureKind, Object, Plan, Start, ToolList};
use parking_lot::Mutex;
use program::{Later, Reply, Run, Toolbox};
use protocol::{Functions, Raw, RunEnd};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::line::Line;
use crate::{stray, tools};

/// The toolbox. Its calls are tasks of a runtime of its own.
pub(crate) struct Ovos {
    runtime: Runtime,
    line: Line,
    /// Those under way.
    runs: Arc<Mutex<HashMap<u64, CancellationToken>>>,
    calls: TaskTracker,
    closing: CancellationToken,
    bus_shutdown: CancellationToken,
}

impl Ovos {
    /// Opens the toolbox. It connects to the bus in the background.
    ///
    /// # Errors
    /// The machine has no threads left.
    pub(crate) fn open(bus: &BusConfig) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(
                FailureKind::RuntimeError,
                format!("no thread could be started: {error}"),
            )
        })?;
        let bus_shutdown = CancellationToken::new();
        let entered = runtime.enter();
        let line = Line::start(bus, &TaskTracker::new(), bus_shutdown.clone());
        runtime.spawn(
            bus_shutdown
                .clone()
                .run_until_cancelled_owned(stray::returned(line.clone())),
        );
        drop(entered);
        Ok(Self {
            runtime,
            line,
            runs: Arc::default(),
            calls: TaskTracker::new(),
            closing: CancellationToken::new(),
            bus_shutdown,
        })
    }
}

impl Toolbox for Ovos {
    fn begin(&self, opened: Reply<Functions>) {
        opened(Ok(Functions {
            plan: true,
            ..Functions::default()
        }));
    }

    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        reply(Ok(Raw::of(&tools::list())));
    }

    fn plan(&self, tool: String, args: Raw<Object>, reply: Reply<Raw<Option<Plan>>>) {
        let args = serde_json::from_str(args.text())
            .map_err(|error| Failure::new(FailureKind::ValueError, error.to_string()));
        let plan = args.and_then(|args| tools::plan(&tool, args));
        reply(plan.map(|plan| Raw::of(&Some(plan))).map_err(Into::into));
    }

    fn start(&self, run: Run, start: Raw<Start>) {
        let start: Start = match serde_json::from_str(start.text()) {
            Ok(start) => start,
            Err(error) => return run.fail(&Failure::new(FailureKind::ValueError, error.to_string())),
        };
        let (number, cancelled) = (run.number(), self.closing.child_token());
        self.runs.lock().insert(number, cancelled.clone());
        let (runs, line) = (self.runs.clone(), self.line.clone());
        let call = self.calls.track_future(async move {
            // What is dropped takes back what it has begun.
            let done = cancelled
                .run_until_cancelled_owned(tools::work(line, start))
                .await;
            runs.lock().remove(&number);
            match done {
                Some(Ok(output)) => run.succeed(&output),
                Some(Err(failure)) => run.fail(&failure),
                None => run.end(RunEnd::Cancelled, None),
            }
        });
        self.runtime.spawn(call);
    }

    /// No run ever waits here, so each has begun.
    fn cancel(&self, run: u64) -> Option<Later> {
        if let Some(cancelled) = self.runs.lock().get(&run) {
            cancelled.cancel();
        }
        None
    }

    fn leave(&self) {
        self.closing.cancel();
    }

    fn close(&self, closed: Box<dyn FnOnce(bool) + Send>) {
        self.closing.cancel();
        self.calls.close();
        let (calls, bus_shutdown) = (self.calls.clone(), self.bus_shutdown.clone());
        self.runtime.spawn(async move {
            calls.wait().await;
            bus_shutdown.cancel();
            closed(true);
        });
    }
}
