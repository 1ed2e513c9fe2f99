//! One open toolbox: its runtime, runs and tools, without pointers.
//!
//! Owns the order of operations: register before spawn, disarm before halt, cancel before close. All of it is safe code
//! that the boundary calls with text. Read [`Instance::start`] and [`Instance::close`].

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{CallIdentity, Effect, Failure, FailureKind, ToolDefinition};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tracing::dispatcher::Dispatch;

use crate::context::ActionInfo;
use crate::gate::Gate;
use crate::host::Requests;
use crate::run::{Completer, Run, Runs, supervise};
use crate::tool::parse;
use crate::{ActionHandler, Context, Halt, Host, Options, Tool, ToolError, Toolbox, log};

/// The host gives `open` and `close` 10 s each; these limits are shorter.
const OPEN: Duration = Duration::from_secs(9);
const RUNS_END: Duration = Duration::from_secs(2);
const LONGEST_CLOSE: Duration = Duration::from_secs(8);
const THREADS_END: Duration = Duration::from_secs(2);
const THREADS_END_AFTER_OPEN: Duration = Duration::from_millis(500);

/// An open toolbox.
pub(crate) struct Instance<T> {
    toolbox: Arc<T>,
    gate: Arc<Gate>,
    host: Host,
    runs: Arc<Runs>,
    requests: Arc<Requests>,
    tasks: TaskTracker,
    closing: CancellationToken,
    table: RwLock<Arc<Table<T>>>,
    newest_epoch: AtomicU64,
    options: Options,
    pub(crate) dispatch: Dispatch,
    runtime: Runtime,
}

struct Table<T> {
    tools: Vec<Tool<T>>,
    actions: Vec<ActionHandler<T>>,
}

/// A start message whose tool-specific parts are not parsed yet.
#[derive(Deserialize)]
struct StartText {
    call: CallIdentity,
    action: ActionText,
    #[serde(default)]
    inputs: HashMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
struct ActionText {
    id: String,
    name: String,
    #[serde(default)]
    subsystems: Vec<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    effect: Effect,
}

impl<T: Toolbox> Instance<T> {
    /// Builds the runtime and opens the toolbox on it.
    pub(crate) fn open(gate: Gate, config: &str) -> Result<Self, ToolError> {
        let gate = Arc::new(gate);
        let options = T::options();
        let dispatch = log::dispatch(Arc::clone(&gate), options.log_level);
        let on_threads = dispatch.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.workers.max(1))
            .thread_name(format!("toolbox-{}", T::manifest().id))
            .on_thread_start(move || log::enter_thread(&on_threads))
            .on_thread_stop(log::leave_thread)
            .enable_all()
            .build()?;
        let requests = Arc::new(Requests::default());
        let tasks = TaskTracker::new();
        let closing = CancellationToken::new();
        let host = Host::new(
            Arc::clone(&gate),
            Arc::clone(&requests),
            runtime.handle().clone(),
            tasks.clone(),
            closing.clone(),
        );
        let opened = match parse_config::<T>(config) {
            Ok(config) => on(&dispatch, || open_on::<T>(&runtime, host.clone(), config)),
            Err(error) => Err(error),
        };
        let toolbox = match opened {
            Ok(toolbox) => Arc::new(toolbox),
            Err(error) => {
                closing.cancel();
                end_runtime(runtime, &dispatch, async {}, THREADS_END_AFTER_OPEN);
                gate.shut();
                return Err(error);
            }
        };
        let table = RwLock::new(Arc::new(Table {
            tools: Vec::new(),
            actions: Vec::new(),
        }));
        let instance = Self {
            toolbox,
            gate,
            host,
            runs: Arc::default(),
            requests,
            tasks,
            closing,
            table,
            newest_epoch: AtomicU64::new(0),
            options,
            dispatch,
            runtime,
        };
        // An instance that cannot list its tools is closed like any other, because its runtime must not outlive this
        // call.
        let read = catch_unwind(AssertUnwindSafe(|| {
            on(&instance.dispatch, || instance.read_table())
        }));
        if let Err(payload) = read {
            instance.close();
            return Err(ToolError::panic(payload));
        }
        Ok(instance)
    }

    /// `{"tools": [...]}`, read again from the toolbox.
    pub(crate) fn tools(&self) -> Result<String, ToolError> {
        let table = self.read_table();
        let tools: Vec<&ToolDefinition> = table.tools.iter().map(Tool::definition).collect();
        Ok(serde_json::to_string(&json!({ "tools": tools }))?)
    }

    pub(crate) fn plan(&self, tool: &str, args: &str) -> Result<String, ToolError> {
        let table = self.table();
        let tool_of_it = find(&table.tools, tool)?;
        // What only reads is not confirmed.
        let sentences = match tool_of_it.definition().effect {
            Effect::Read => BTreeMap::new(),
            _ => self.toolbox.sentences(tool, &parse(args)?),
        };
        let plan = tool_of_it.make_plan(&self.toolbox, args, &sentences)?;
        plan.ok_or_else(|| {
            ToolError::with_status(status::UNKNOWN_TOOL, "NoPlan", format!("{tool} needs no plan"))
        })
    }

    /// `{"output": ...}`.
    pub(crate) fn conclude(&self, tool: &str, args: &str, report: &str) -> Result<String, ToolError> {
        let table = self.table();
        let output = find(&table.tools, tool)?.make_conclusion(&self.toolbox, args, report)?;
        output
            .map(|output| format!("{{\"output\":{output}}}"))
            .ok_or_else(|| {
                ToolError::with_status(
                    status::UNKNOWN_TOOL,
                    "NoConclude",
                    format!("{tool} has no conclude"),
                )
            })
    }

    /// Starts an action, or returns why it was not started.
    pub(crate) fn start(&self, id: u64, text: &str) -> Result<(), ToolError> {
        let start: StartText = serde_json::from_str(text).map_err(ToolError::bad_args)?;
        let StartText { call, action, inputs } = start;
        if self.closing.is_cancelled() {
            return Err(ToolError::busy("the toolbox is closing"));
        }
        self.check_epoch(call.stop_epoch, action.effect)?;
        let run = Arc::new(Run::new(
            id,
            self.closing.child_token(),
            action.effect,
            action.subsystems.clone(),
        ));
        let span =
            tracing::info_span!("action", call_id = %call.call_id, tool = %call.tool, action = %action.id);
        let table = self.table();
        let start = if action.name == call.tool {
            find(&table.tools, &call.tool).ok().and_then(Tool::start_fn)
        } else {
            None
        };
        let start = start
            .or_else(|| {
                table
                    .actions
                    .iter()
                    .find(|handler| handler.name() == action.name)
                    .map(ActionHandler::start_fn)
            })
            .ok_or_else(|| ToolError::unknown_tool(&action.name))?;
        let info = ActionInfo {
            id: action.id,
            name: action.name,
            subsystems: action.subsystems,
            effect: action.effect,
        };
        let context = Context::new(
            Arc::clone(&self.toolbox),
            self.host.clone(),
            Arc::clone(&run),
            call,
            info,
            inputs,
        );
        let job = start(context, action.params.as_deref().map_or("{}", RawValue::get))?;
        self.runs.insert(Arc::clone(&run));
        let completer = Completer {
            run,
            runs: Arc::clone(&self.runs),
            gate: Arc::clone(&self.gate),
            done: false,
        };
        let work = supervise(completer, job, self.options.cancel_grace).instrument(span);
        self.tasks.spawn_on(work, self.runtime.handle());
        Ok(())
    }

    pub(crate) fn cancel(&self, id: u64) {
        self.runs.cancel(id);
    }

    pub(crate) fn halt(&self, subsystems: &str, emergency: bool) -> Result<(), ToolError> {
        // A stop is never refused: if the text is unreadable, everything is stopped.
        let subsystems = serde_json::from_str(subsystems).unwrap_or_else(|_| vec!["all".to_string()]);
        let halt = Halt::new(subsystems, emergency);
        self.runs.halt(&halt);
        self.toolbox.halt(&halt)
    }

    pub(crate) fn resume(&self) -> Result<(), ToolError> {
        self.toolbox.resume()
    }

    pub(crate) fn message(&self, topic: &str, json: &str) -> Result<(), ToolError> {
        self.toolbox.message(topic, serde_json::from_str(json)?);
        Ok(())
    }

    pub(crate) fn on_response(&self, request: u64, status: Status, json: &str) {
        self.requests.answer(request, status, json);
    }

    pub(crate) fn may_close(&self) -> Result<(), ToolError> {
        self.toolbox
            .may_close()
            .map_err(|error| ToolError::with_status(status::BUSY, error.kind(), error.message()))
    }

    /// Ends every run and every thread; the host is not called afterwards.
    pub(crate) fn close(self) {
        let Self {
            toolbox,
            gate,
            host,
            runs,
            tasks,
            closing,
            dispatch,
            runtime,
            table,
            ..
        } = self;
        // Declared first and so dropped last, even when the toolbox's own Drop panics.
        let _shut = ShutAtEnd(gate);
        runs.cancel_all();
        closing.cancel();
        tasks.close();
        let goodbye = {
            let toolbox = Arc::clone(&toolbox);
            async move {
                if tokio::time::timeout(RUNS_END, tasks.wait()).await.is_err() {
                    tracing::warn!("runs are still active 2 s after their cancel");
                }
                let limit = T::options().close.min(LONGEST_CLOSE);
                if tokio::time::timeout(limit, toolbox.close()).await.is_err() {
                    tracing::warn!("close did not end within {} s", limit.as_secs_f32());
                }
            }
        };
        end_runtime(runtime, &dispatch, goodbye, THREADS_END);
        on(&dispatch, || drop((table, host, toolbox)));
    }

    /// Refuses a motion or a write whose epoch is older than the highest epoch seen so far. Actions of other effects
    /// are never refused: a late `land` is still useful.
    fn check_epoch(&self, epoch: u64, effect: Effect) -> Result<(), ToolError> {
        let newest = self.newest_epoch.fetch_max(epoch, Ordering::SeqCst);
        if epoch < newest && matches!(effect, Effect::Motion | Effect::Write) {
            return Err(ToolError::with_status(
                status::CANCELLED,
                FailureKind::CancelledError,
                "planned before the latest emergency stop",
            ));
        }
        Ok(())
    }

    fn table(&self) -> Arc<Table<T>> {
        Arc::clone(&self.table.read())
    }

    fn read_table(&self) -> Arc<Table<T>> {
        let table = Arc::new(Table {
            tools: self.toolbox.tools(),
            actions: self.toolbox.actions(),
        });
        *self.table.write() = Arc::clone(&table);
        table
    }
}

struct ShutAtEnd(Arc<Gate>);

impl Drop for ShutAtEnd {
    fn drop(&mut self) {
        self.0.shut();
    }
}

/// Runs `work` with the instance's tracing subscriber.
pub(crate) fn on<R>(dispatch: &Dispatch, work: impl FnOnce() -> R) -> R {
    tracing::dispatcher::with_default(dispatch, work)
}

pub(crate) fn parse_config<T: Toolbox>(config: &str) -> Result<T::Config, ToolError> {
    serde_json::from_str(if config.is_empty() { "{}" } else { config })
        .map_err(|error| ToolError::bad_args(format!("configuration: {error}")))
}

fn find<'a, T: Send + Sync + 'static>(tools: &'a [Tool<T>], name: &str) -> Result<&'a Tool<T>, ToolError> {
    tools
        .iter()
        .find(|tool| tool.definition().name == name)
        .ok_or_else(|| ToolError::unknown_tool(name))
}

/// Opens the toolbox in a task, not with `block_on`: the caller may be a test inside another tokio runtime.
fn open_on<T: Toolbox>(runtime: &Runtime, host: Host, config: T::Config) -> Result<T, ToolError> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let task = runtime.spawn(async move {
        let open = AssertUnwindSafe(async move { T::open(host, config).await });
        let opened = tokio::time::timeout(OPEN, open.catch_unwind()).await;
        // Sending fails when the caller has stopped waiting; the instance is dropped then.
        let _ = sender.send(opened);
    });
    // The wait is longer than `OPEN`, for a future that blocks its thread and so escapes the timeout.
    match receiver.recv_timeout(OPEN + Duration::from_millis(250)) {
        Ok(Ok(Ok(opened))) => opened,
        Ok(Ok(Err(payload))) => Err(ToolError::panic(payload)),
        Ok(Err(_)) => Err(ToolError::new(
            FailureKind::TimeoutError,
            "open did not finish within 9 s",
        )),
        Err(_) => {
            task.abort();
            Err(ToolError::new(
                FailureKind::TimeoutError,
                "open is blocking its thread; its limit is 9 s",
            ))
        }
    }
}

/// Runs the last task and joins the runtime's threads, in a separate thread, because a thread inside another tokio
/// runtime may not do that.
fn end_runtime(
    runtime: Runtime,
    dispatch: &Dispatch,
    last: impl Future<Output = ()> + Send,
    threads_end: Duration,
) {
    std::thread::scope(|scope| {
        let ended = scope
            .spawn(|| {
                on(dispatch, || {
                    // A panic in `last` unwinds to the join below and drops the runtime.
                    runtime.block_on(last);
                    runtime.shutdown_timeout(threads_end);
                });
            })
            .join();
        if let Err(payload) = ended {
            on(dispatch, || {
                tracing::error!("close: {}", ToolError::panic(payload))
            });
        }
    });
}

/// Logs a failure that has no caller to return to.
pub(crate) fn log_failure(dispatch: &Dispatch, what: &str, failure: &Failure) {
    on(dispatch, || tracing::error!("{what}: {failure}"));
}
