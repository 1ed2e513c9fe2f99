//! The thread of an instance.
//!
//! Keeps the process that plays the pipeline: starts it, passes commands on, notes what it says, kills it where it hangs, and decides whether
//! there is another one. Read [`Keeper::run`].

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;

use super::entry::Instance;
use super::process::{Input, Progress, Reply, Work, begin, made, wait_gone};
use super::table::{STOPPED, Table};
use crate::config::Restart;
use crate::order::{Command, End, Order, Word};
use crate::report::Phase;

/// First wait before a failed pipeline is restarted; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// Repeated runs shorter than this count as failures, even if they end with an end of stream.
const SHORTEST_LIFE: Duration = Duration::from_secs(1);
/// After this long without a failure the wait starts at its first value again.
const PEACE: Duration = Duration::from_secs(60);
/// Time limit of the change to NULL after the end of stream; then the process is killed.
const TO_NULL: Duration = Duration::from_millis(700);

pub(super) struct Keeper {
    pub(super) table: Arc<Table>,
    pub(super) instance: Arc<Instance>,
    pub(super) inputs: Receiver<Input>,
}

/// One run of the pipeline.
struct Run {
    progress: Progress,
    /// When the process is killed.
    until: Option<Instant>,
    stopping: bool,
    finished: bool,

    end: Option<End>,
    next: u64,
    waiting: HashMap<u64, Reply>,
}

impl Keeper {
    /// Runs the pipeline until it has finally ended, and reports that.
    pub(super) fn run(mut self, first: Option<Work>) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.lives(first)));
        let (phase, reason) = ended.unwrap_or_else(|_| {
            let mut view = self.instance.lock();
            view.say("error", "toolbox", "the instance's thread panicked", None);
            (Phase::Failed, "the instance's thread panicked".to_owned())
        });
        self.instance.set_process(None);
        self.table.retire(&self.instance, phase, &reason);
    }

    fn lives(&mut self, first: Option<Work>) -> (Phase, String) {
        let mut work = first;
        let mut wait = Duration::ZERO;
        let mut backoff = BACKOFF;
        loop {
            if !wait.is_zero() && self.stopped_within(wait) {
                return (Phase::Ended, STOPPED.to_owned());
            }
            let began = Instant::now();
            let end = match work.take().map_or_else(|| self.make(), Ok) {
                Ok(work) => self.live(work),
                Err(end) => end,
            };
            self.instance.set_process(None);
            if began.elapsed() >= PEACE {
                backoff = BACKOFF;
            }
            let again = match (end, self.instance.restart()) {
                (End::Stopped, _) | (_, Restart::Never) | (End::Eos, Restart::OnFailure) => false,
                (End::Failed, _) | (End::Eos, Restart::Always) => !self.table.is_closing(),
            };
            if !again {
                return match end {
                    End::Stopped => (Phase::Ended, STOPPED.to_owned()),
                    End::Eos => (Phase::Ended, "end of stream".to_owned()),
                    End::Failed => (Phase::Failed, "failed".to_owned()),
                };
            }
            if end == End::Eos && began.elapsed() >= SHORTEST_LIFE {
                // No wait, for example for a file that is played repeatedly.
                wait = Duration::ZERO;
                backoff = BACKOFF;
            } else {
                wait = backoff;
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
            }
            let error = {
                let mut view = self.instance.lock();
                view.restarts += 1;
                view.playing_since = None;
                view.finished = None;
                view.error.clone()
            };
            self.instance.set_phase(Phase::Restarting);
            let severity = if end == End::Failed {
                Severity::Warning
            } else {
                Severity::Info
            };
            let data = json!({"wait_ms": millis(wait), "error": error});
            self.table
                .tell("pipeline_restarting", severity, &self.instance, data);
        }
    }

    /// Waits before the next run; returns true if it is stopped meanwhile.
    fn stopped_within(&mut self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            if self.instance.is_halted() {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.inputs.recv_timeout(left) {
                Ok(Input::Command(command, reply)) => {
                    if !goes_on(&command, reply, "the pipeline is about to be restarted") {
                        return true;
                    }
                }
                Ok(Input::Word(_) | Input::Gone(_)) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Starts a process and makes the pipeline in it.
    fn make(&mut self) -> Result<Work, End> {
        let instance = &self.instance;
        let process = begin(
            &self.table.written,
            &self.table.config.scratch(),
            instance.pipeline_text(),
            instance.inputs.clone(),
        );
        let made = process.map_err(Some).and_then(|process| {
            instance.set_process(Some(Arc::clone(&process)));
            let held = |command: Command, reply| {
                goes_on(&command, reply, "the pipeline is starting") && !instance.is_halted()
            };
            let made = made(&process, &self.inputs, held)?;
            if let Err(error) = self.table.claim(instance, &made.uses) {
                process.kill();
                wait_gone(&self.inputs);
                return Err(Some(error));
            }
            Ok(Work { process, made })
        });
        made.map_err(|error| match error {
            None => End::Stopped,
            Some(error) => {
                self.fail("pipeline", error.message(), None);
                End::Failed
            }
        })
    }

    /// Plays a pipeline until its process has ended.
    fn live(&mut self, work: Work) -> End {
        let Work { process, made } = work;
        self.instance.note_uses(&made.uses);
        self.instance.set_process(Some(Arc::clone(&process)));
        self.instance.set_phase(Phase::Starting);
        let mut run = Run {
            progress: Progress::new(made.elements),
            until: None,
            stopping: false,
            finished: false,

            end: None,
            next: 0,
            waiting: HashMap::new(),
        };
        // If it has ended already, its end is heard.
        _ = process.tell(&Order::Play);
        let how = loop {
            let input = match run.until {
                None => self.inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => self
                    .inputs
                    .recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match input {
                Ok(Input::Word(word)) => {
                    self.hear(word, &mut run);
                    if run.end.is_some() {
                        // Its other threads are not waited for.
                        process.kill();
                    }
                }
                Ok(Input::Gone(how)) => break how,
                Ok(Input::Command(command, reply)) => self.pass_on(command, reply, &mut run, &process),
                Err(_) => {
                    run.until = None;
                    process.kill();
                }
            }
        };
        let end = match run.end {
            Some(end) => end,
            None if run.stopping => End::Stopped,
            None => {
                let (element, text) = run.progress.crash(&how);
                self.fail(&element, &text, None);
                End::Failed
            }
        };
        match end {
            End::Stopped => self.instance.lock().finished = Some(run.finished),
            End::Eos => self.instance.lock().finished = Some(true),
            End::Failed => {}
        }
        end
    }

    /// Notes what the process says.
    fn hear(&self, word: Word, run: &mut Run) {
        self.instance.lock().last_word = Some(Instant::now());
        match word {
            Word::Made(_) => {}
            Word::Phase(phase) => self.enter(phase),
            Word::Said {
                kind,
                element,
                message,
                debug,
            } if kind == "error" => {
                self.fail(&element, &message, debug.as_deref());
            }
            Word::Said {
                kind,
                element,
                message,
                debug,
            } => {
                self.instance
                    .lock()
                    .say(&kind, &element, &message, debug.as_deref());
            }
            Word::Clock(clockwork) => self.instance.lock().clockwork = clockwork,
            Word::Event { kind, severity, data } => self.table.tell(&kind, severity, &self.instance, data),
            Word::Reached { element, state } => run.progress.reached(element, state),
            Word::Thread(element) => run.progress.thread(element),
            Word::Answer { id, answer } => {
                if let Some(reply) = run.waiting.remove(&id) {
                    // The caller may be gone.
                    _ = reply.send(answer);
                }
            }
            Word::Finished => run.finished = true,
            Word::Over(end) => run.end = Some(end),
        }
    }

    fn enter(&self, phase: Phase) {
        let first = phase == Phase::Playing && {
            let mut view = self.instance.lock();
            let first = view.playing_since.is_none();
            view.playing_since = view.playing_since.or_else(|| Some(Instant::now()));
            first
        };
        self.instance.set_phase(phase);
        if first {
            let restarts = self.instance.lock().restarts;
            let data = json!({"restarts": restarts});
            self.table
                .tell("pipeline_started", Severity::Info, &self.instance, data);
        }
    }

    /// Passes a command on to the process. A stop has an end of its own, whatever the process does.
    fn pass_on(
        &self,
        command: Command,
        reply: Option<Reply>,
        run: &mut Run,
        process: &ovos_toolbox_sdk::RoleProcess,
    ) {
        if let Command::Stop { grace } = command {
            run.stopping = true;
            self.instance.set_phase(Phase::Stopping);
            let until = Instant::now() + grace + TO_NULL;
            run.until = Some(run.until.map_or(until, |earlier| earlier.min(until)));
        }
        run.next += 1;
        let id = run.next;
        run.waiting.extend(reply.map(|reply| (id, reply)));
        // If it has ended, its end is heard, and the caller is told when the reply is dropped.
        _ = process.tell(&Order::Do { id, command });
    }

    fn fail(&self, element: &str, message: &str, debug: Option<&str>) {
        let error = {
            let mut view = self.instance.lock();
            let error = view.say("error", element, message, debug);
            view.error = Some(error.clone());
            error
        };
        let data = json!({"error": error});
        self.table
            .tell("pipeline_error", Severity::Error, &self.instance, data);
    }
}

/// Refuses a command that comes while there is no pipeline; false for a stop.
fn goes_on(command: &Command, reply: Option<Reply>, why: &str) -> bool {
    if let Command::Stop { .. } = command {
        return false;
    }
    if let Some(reply) = reply {
        // The caller may be gone.
        _ = reply.send(Err(ToolError::busy(format!("not possible now: {why}"))));
    }
    true
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
