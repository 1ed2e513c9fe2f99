//! One toolbox from the service's point of view: its orders, its runs and their ends. Read [`Served::order`].

use std::collections::HashMap;
use std::time::Duration;

use config::MountConfig;
use ovos_toolbox_wire::{Failure, FailureKind, Start, ToolList};
use protocol::{Answer, Functions, Notice, Opening, Order, Raw, RunEnd};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ledger::Ledger;
use crate::mount::{Call, Mount, NoResult};
use crate::result::CallOutput;
use crate::voice::Voice;

/// The part of `close_ms` that the end of a server may take.
const FOR_THE_SERVER: Duration = Duration::from_secs(6);

/// The bytes of a frame in addition to the result.
const FRAME: usize = 256;

/// The end of a run.
pub(crate) struct FinishedRun {
    pub(crate) run: u64,
    result: Result<CallOutput, NoResult>,
}

/// One toolbox.
pub(crate) struct Served {
    id: String,
    voice: Voice,
    /// `None` if the toolbox could not be opened, or is closed.
    mount: Option<Mount>,
    ledger: Ledger,
    runs: HashMap<u64, CancellationToken>,
    ends: UnboundedSender<FinishedRun>,
    max_queued: usize,
    max_result_bytes: usize,
    close: Duration,
    closing: Option<(u64, Instant)>,
}

impl Served {
    /// Opens the toolbox and reports that. Its server starts in the background, so neither the start of the service nor calls of
    /// other toolboxes wait for it.
    pub(crate) fn open(
        id: &str,
        opening: &Opening,
        voice: Voice,
        ends: UnboundedSender<FinishedRun>,
    ) -> Self {
        let config = serde_json::from_str::<MountConfig>(opening.config.text());
        let (mount, answer) = match config {
            Ok(config) => {
                let mount = Mount::open(id, config, voice.clone());
                (Some(mount), Answer::Ok(Functions::default()))
            }
            Err(error) => {
                let why = format!(
                    "this is not the configuration of a mount: {error}; see service.mounts in docs/mounts.md"
                );
                (None, Answer::Error(Raw::of(&Failure::new("ConfigError", why))))
            }
        };
        voice.say(&Notice::Opened {
            seq: opening.seq,
            answer,
        });
        let mut ledger = Ledger::default();
        ledger.stopped(opening.stop_epoch);
        Self {
            id: id.to_owned(),
            voice,
            mount,
            ledger,
            runs: HashMap::new(),
            ends,
            max_queued: opening.max_queued,
            max_result_bytes: opening.max_result_bytes,
            close: Duration::from_millis(opening.close_ms),
            closing: None,
        }
    }

    /// Carries out an order.
    pub(crate) fn order(&mut self, order: Order) {
        match order {
            Order::Tools { seq } => self.tools(seq),
            Order::Start { run, progress, start } => self.start(run, progress, &start),
            Order::Cancel { run, starts } => match self.runs.get(&run) {
                Some(cancelled) => cancelled.cancel(),
                None => self.ledger.cancelled(run, starts),
            },
            // A run under way continues, and no run ever waits here.
            Order::GiveUp { run, starts } => {
                if !self.runs.contains_key(&run) {
                    self.ledger.cancelled(run, starts);
                }
            }
            Order::Epoch { stop_epoch } => self.ledger.stopped(stop_epoch),
            Order::MayClose { seq } => self.voice.say(&Notice::Closable {
                seq,
                answer: Answer::Ok(Raw::of(&())),
            }),
            Order::Plan { seq, .. } => self.voice.say(&Notice::Planned {
                seq,
                answer: Answer::Ok(Raw::of(&None)),
            }),
            Order::Conclude { seq, .. } => self.voice.say(&Notice::Concluded {
                seq,
                answer: Answer::Ok(Raw::of(&None)),
            }),
            Order::Close { seq } => {
                let left = self.close.saturating_sub(FOR_THE_SERVER).max(self.close / 4);
                self.closing = Some((seq, Instant::now() + left));
            }
            // The control lane serves these orders, or a mount does not need them.
            Order::Open(_)
            | Order::Message { .. }
            | Order::Response { .. }
            | Order::Halt { .. }
            | Order::Resume { .. }
            | Order::Beat { .. }
            | Order::Unknown => {}
        }
    }

    fn tools(&self, seq: u64) {
        let answer = match &self.mount {
            Some(mount) => Answer::Ok(Raw::of(&ToolList {
                tools: mount.tools().definitions.clone(),
            })),
            None => Answer::Lost(Raw::of(&self.is_closed())),
        };
        self.voice.say(&Notice::Tools { seq, answer });
    }

    fn start(&mut self, run: u64, wants_progress: bool, start: &Raw<Start>) {
        let begins = self.ledger.begins(run);
        let read = serde_json::from_str::<Start>(start.text());
        let end = match (read, &self.mount) {
            (Ok(start), _) if self.ledger.is_stale(start.call.stop_epoch) => {
                self.voice.dropped_stale_start();
                RunEnd::Cancelled
            }
            _ if !begins => RunEnd::Cancelled,
            (_, None) => RunEnd::Lost(Raw::of(&self.is_closed())),
            _ if self.closing.is_some() => RunEnd::Lost(Raw::of(&self.is_closed())),
            (Err(error), _) => {
                let why = format!("the start cannot be read: {error}");
                RunEnd::Error(Raw::of(&Failure::new(FailureKind::ValueError, why)))
            }
            _ if self.runs.len() >= self.max_queued => {
                let why = format!(
                    "{} calls of mount `{}` are under way; try again later",
                    self.runs.len(),
                    self.id
                );
                RunEnd::Error(Raw::of(&Failure::new(FailureKind::BusyError, why)))
            }
            (Ok(start), Some(mount)) => {
                let cancelled = CancellationToken::new();
                self.runs.insert(run, cancelled.clone());
                let call = Call {
                    run,
                    tool: start.action.name,
                    args: start.action.params,
                    wants_progress,
                    wants_content: start.call.content_dir.is_some(),
                    cancelled,
                };
                let called = tokio::spawn(mount.caller().call(call));
                let ends = self.ends.clone();
                tokio::spawn(async move {
                    let result = called.await.unwrap_or_else(|error| {
                        let why = format!("the mounts program failed: {error}");
                        Err(NoResult::Failed(Failure::new(FailureKind::InternalError, why)))
                    });
                    // This fails only when the program ends.
                    _ = ends.send(FinishedRun { run, result });
                });
                return;
            }
        };
        self.voice.ended(&Notice::Ended {
            run,
            end,
            content: None,
        });
    }

    /// Reports how a run ended.
    pub(crate) fn ended(&mut self, ended: FinishedRun) {
        let FinishedRun { run, result } = ended;
        if self.runs.remove(&run).is_none() {
            return;
        }
        let (end, content) = match result {
            Ok(answered) => self.output(answered),
            Err(NoResult::Failed(failure)) => (RunEnd::Error(Raw::of(&failure)), None),
            Err(NoResult::Cancelled) => (RunEnd::Cancelled, None),
        };
        self.voice.ended(&Notice::Ended { run, end, content });
    }

    fn output(&self, answered: CallOutput) -> (RunEnd, Option<Raw<Vec<ovos_toolbox_wire::Content>>>) {
        let output = Raw::of(&answered.output);
        let length = output.text().len();
        if length > self.max_result_bytes.saturating_add(FRAME) {
            let limit = self.max_result_bytes;
            let why =
                format!("the result has {length} bytes; at most {limit} are allowed (max_result_bytes)");
            return (RunEnd::Error(Raw::of(&Failure::new("ResultTooLarge", why))), None);
        }
        let content = (!answered.content.is_empty()).then(|| Raw::of(&answered.content));
        (RunEnd::Output(output), content)
    }

    fn is_closed(&self) -> Failure {
        Failure::new(
            FailureKind::ToolboxClosed,
            format!("mount `{}` is closed", self.id),
        )
    }

    /// The time at which the runs under way are given up, if the toolbox is closing.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.closing.map(|(_, deadline)| deadline)
    }

    /// Returns when the server is no longer kept connected although the service did not close the toolbox, with the reason.
    pub(crate) async fn given_up(&mut self) -> String {
        match &mut self.mount {
            Some(mount) => mount.given_up().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the toolbox can be closed now: nothing runs any longer, or the time limit is over.
    pub(crate) fn may_end(&self) -> bool {
        let over = |(_, deadline)| self.runs.is_empty() || Instant::now() >= deadline;
        self.closing.is_some_and(over)
    }

    /// Ends the remaining runs and the server. Returns the last notice.
    pub(crate) async fn end(mut self) -> Notice {
        let in_time = self.runs.is_empty();
        for (run, cancelled) in std::mem::take(&mut self.runs) {
            cancelled.cancel();
            let why = format!("mount `{}` was closed while it ran", self.id);
            let end = RunEnd::Lost(Raw::of(&Failure::new(FailureKind::ToolboxClosed, why)));
            self.voice.ended(&Notice::Ended {
                run,
                end,
                content: None,
            });
        }
        if let Some(mount) = self.mount.take() {
            mount.close().await;
        }
        let seq = self.closing.map_or(0, |(seq, _)| seq);
        Notice::Closed { seq, in_time }
    }
}
