//! One mount as the toolbox of this program: its runs and their ends. Read [`MountToolbox::open`].

use std::collections::HashMap;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use config::MountConfig;
use ovos_toolbox_wire::{Content, Failure, FailureKind, Start, ToolList};
use parking_lot::{Mutex, MutexGuard};
use program::{Later, Link, Refusal, Reply, Run, Toolbox, json};
use protocol::{Opening, Raw, RunEnd};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::complaint::{EXIT_MACHINE, complain};
use crate::mount::{Call, Caller, Mount, NoResult};
use crate::reporter::Reporter;
use crate::result::CallOutput;

/// The part of `close_ms` that the end of a server may take.
const FOR_THE_SERVER: Duration = Duration::from_secs(6);

/// The bytes of a frame in addition to the result.
const FRAME: usize = 256;

/// One toolbox. Its calls and the end of its server are tasks of the program's runtime.
pub(crate) struct MountToolbox {
    id: String,
    caller: Caller,
    runtime: Handle,
    runs: Arc<Runs>,
    max_queued: usize,
    max_result_bytes: usize,
    /// Taken when the toolbox is closed.
    close: Mutex<Option<oneshot::Sender<Closed>>>,
}

/// Receives whether all runs had ended when the toolbox was closed.
type Closed = Box<dyn FnOnce(bool) + Send>;

/// The runs under way.
type Runs = watch::Sender<HashMap<u64, UnderWay>>;

/// A run under way. Whoever takes it out of the table ends it.
struct UnderWay {
    run: Run,
    cancelled: CancellationToken,
}

impl MountToolbox {
    /// Opens the toolbox. Its server starts in the background, so neither the start of the service nor calls of other toolboxes
    /// wait for it.
    ///
    /// # Errors
    /// The configuration is not one of a mount.
    pub(crate) fn open(id: &str, opening: &Opening, link: Link) -> Result<Self, Failure> {
        let config = serde_json::from_str::<MountConfig>(opening.config.text()).map_err(|error| {
            let why = format!(
                "this is not the configuration of a mount: {error}; see service.mounts in docs/mounts.md"
            );
            Failure::new("ConfigError", why)
        })?;
        // Everything of a mount runs on the program's first thread, because the kernel ends the servers when the thread that started
        // them ends.
        let runtime = Handle::current();
        let mount = Mount::open(id, config, Reporter::new(link));
        let (caller, runs) = (mount.caller(), Arc::new(Runs::default()));
        let (close, closing) = oneshot::channel();
        let close_limit = Duration::from_millis(opening.close_ms);
        runtime.spawn(run_mount(
            id.to_owned(),
            mount,
            runs.clone(),
            closing,
            close_limit,
        ));
        Ok(Self {
            id: id.to_owned(),
            caller,
            runtime,
            runs,
            max_queued: opening.max_queued,
            max_result_bytes: opening.max_result_bytes,
            close: Mutex::new(Some(close)),
        })
    }

    fn is_closed(&self) -> bool {
        self.closer().is_none()
    }

    fn closer(&self) -> MutexGuard<'_, Option<oneshot::Sender<Closed>>> {
        self.close.lock()
    }

    fn closed(&self) -> Failure {
        Failure::new(
            FailureKind::ToolboxClosed,
            format!("mount `{}` is closed", self.id),
        )
    }
}

impl Toolbox for MountToolbox {
    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        reply(if self.is_closed() {
            Err(Refusal::Closed(self.closed()))
        } else {
            Ok(Raw::of(&ToolList {
                tools: self.caller.tools().definitions.clone(),
            }))
        });
    }

    fn start(&self, run: Run, start: Raw<Start>) {
        if self.is_closed() {
            return run.end(RunEnd::Lost(Raw::of(&self.closed())), None);
        }
        let start = match json::read::<Start>(start.text()) {
            Ok(start) => start,
            Err(error) => {
                let why = format!("the start cannot be read: {error}");
                return run.fail(&Failure::new(FailureKind::ValueError, why));
            }
        };
        let under_way = self.runs.borrow().len();
        if under_way >= self.max_queued {
            let why = format!(
                "{under_way} calls of mount `{}` are in progress; try again later",
                self.id
            );
            return run.fail(&Failure::new(FailureKind::BusyError, why));
        }
        let (number, cancelled) = (run.number(), CancellationToken::new());
        let call = Call {
            steps: run.progress(),
            tool: start.action.name,
            args: start.action.params,
            wants_content: start.call.content_dir.is_some(),
            cancelled: cancelled.clone(),
        };
        self.runs
            .send_modify(|runs| _ = runs.insert(number, UnderWay { run, cancelled }));
        let called = self.runtime.spawn(self.caller.clone().call(call));
        let (runs, limit) = (self.runs.clone(), self.max_result_bytes);
        self.runtime.spawn(async move {
            let result = called.await.unwrap_or_else(|error| {
                let why = format!("the mounts program failed: {error}");
                Err(NoResult::Failed(Failure::new(FailureKind::InternalError, why)))
            });
            let mut taken = None;
            runs.send_modify(|runs| taken = runs.remove(&number));
            let Some(UnderWay { run, .. }) = taken else { return };
            match result {
                Ok(answered) => {
                    let (end, content) = output(answered, limit);
                    run.end(end, content);
                }
                Err(NoResult::Failed(failure)) => run.fail(&failure),
                Err(NoResult::Cancelled) => run.end(RunEnd::Cancelled, None),
            }
        });
    }

    /// No run ever waits here, so each has begun.
    fn cancel(&self, run: u64) -> Option<Later> {
        if let Some(under_way) = self.runs.borrow().get(&run) {
            under_way.cancelled.cancel();
        }
        None
    }

    fn leave(&self) {
        for under_way in self.runs.borrow().values() {
            under_way.cancelled.cancel();
        }
    }

    fn close(&self, closed: Closed) {
        if let Some(close) = self.closer().take() {
            // This fails only when the program ends.
            _ = close.send(closed);
        }
    }
}

/// Waits until the toolbox is closed, then ends its runs and its server. If the server is no longer kept connected before that,
/// the program ends with an error; the service then starts it again.
async fn run_mount(
    id: String,
    mut mount: Mount,
    runs: Arc<Runs>,
    closing: oneshot::Receiver<Closed>,
    close_limit: Duration,
) {
    let closed = tokio::select! {
        why = mount.given_up() => {
            complain(&why);
            exit(i32::from(EXIT_MACHINE));
        }
        Ok(closed) = closing => closed,
    };
    let left = close_limit.saturating_sub(FOR_THE_SERVER).max(close_limit / 4);
    let mut under_way = runs.subscribe();
    let in_time = timeout(left, under_way.wait_for(HashMap::is_empty)).await.is_ok();
    let mut lost = HashMap::new();
    runs.send_modify(|runs| lost = std::mem::take(runs));
    for (_, UnderWay { run, cancelled }) in lost {
        cancelled.cancel();
        let why = format!("mount `{id}` was closed while it ran");
        let failure = Failure::new(FailureKind::ToolboxClosed, why);
        run.end(RunEnd::Lost(Raw::of(&failure)), None);
    }
    mount.close().await;
    closed(in_time);
}

fn output(answered: CallOutput, limit: usize) -> (RunEnd, Option<Raw<Vec<Content>>>) {
    let output = Raw::of(&answered.output);
    let length = output.text().len();
    if length > limit.saturating_add(FRAME) {
        let why = format!("the result is {length} bytes; the limit is {limit} (max_result_bytes)");
        return (RunEnd::Error(Raw::of(&Failure::new("ResultTooLarge", why))), None);
    }
    let content = (!answered.content.is_empty()).then(|| Raw::of(&answered.content));
    (RunEnd::Output(output), content)
}
