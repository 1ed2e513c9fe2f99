//! The thread of an instance.
//!
//! Owns the pipeline: only this thread changes its state, sends it events and sets its properties, because each of
//! these may hang in an element. Then only this thread hangs. `life` handles one run of the pipeline; this module
//! decides whether there is another one. Read [`Worker::run`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;

use super::build::{Built, build};
use super::command::{Command, Input};
use super::entry::Instance;
use super::table::{STOPPED, Table};
use super::trial::LONG_TRIAL;
use super::view::Phase;
use crate::config::Restart;

/// How one run of a pipeline ended.
pub(super) enum End {
    Stopped { finished: bool },
    Eos,
    Failed,
}

/// First wait before a failed pipeline is restarted; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// Repeated runs shorter than this count as failures, even if they end with an end of stream.
const SHORTEST_LIFE: Duration = Duration::from_secs(1);
/// After this long without a failure the wait starts at its first value again.
const PEACE: Duration = Duration::from_secs(60);
/// Interval at which a suspect checks whether it is its turn.
const TURN: Duration = Duration::from_millis(250);

pub(super) struct Worker {
    pub(super) table: Arc<Table>,
    pub(super) instance: Arc<Instance>,
    pub(super) inputs: Receiver<Input>,
}

impl Worker {
    /// Runs the pipeline until it has finally ended, and reports that.
    pub(super) fn run(mut self, first: Option<Built>) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.lives(first)));
        let (phase, reason) = ended.unwrap_or_else(|_| {
            let mut view = self.instance.lock();
            // The thread is not inside an element any more.
            view.busy_since = None;
            view.say("error", "toolbox", "the instance's thread panicked", None);
            (Phase::Failed, "the instance's thread panicked".to_owned())
        });
        self.instance.forget_pipeline();
        self.table.retire(&self.instance, phase, &reason);
    }

    fn lives(&mut self, first: Option<Built>) -> (Phase, String) {
        if self.instance.is_suspect() && !self.wait_for_turn() {
            return (Phase::Ended, STOPPED.to_owned());
        }
        let mut built = first;
        let mut wait = Duration::ZERO;
        let mut backoff = BACKOFF;
        loop {
            if !wait.is_zero() && self.stopped_within(wait) {
                return (Phase::Ended, STOPPED.to_owned());
            }
            let began = Instant::now();
            let made = match built.take() {
                Some(made) => Some(made),
                None => self.make(),
            };
            let end = made.map_or(End::Failed, |made| self.live(made));
            // A run may be shorter than a tick.
            self.pass();
            if began.elapsed() >= PEACE {
                backoff = BACKOFF;
            }
            let again = match (&end, self.instance.restart()) {
                (End::Stopped { .. }, _) | (_, Restart::Never) | (End::Eos, Restart::OnFailure) => false,
                (End::Failed, _) | (End::Eos, Restart::Always) => !self.table.is_closing(),
            };
            if !again {
                return match end {
                    End::Stopped { finished } => {
                        self.instance.lock().finished = Some(finished);
                        (Phase::Ended, STOPPED.to_owned())
                    }
                    End::Eos => {
                        self.instance.lock().finished = Some(true);
                        (Phase::Ended, "end of stream".to_owned())
                    }
                    End::Failed => (Phase::Failed, "failed".to_owned()),
                };
            }
            if matches!(end, End::Eos) && began.elapsed() >= SHORTEST_LIFE {
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
                view.error.clone()
            };
            self.instance.enter(Phase::Restarting);
            self.table.tell(
                "pipeline_restarting",
                if matches!(end, End::Failed) {
                    Severity::Warning
                } else {
                    Severity::Info
                },
                &self.instance,
                json!({"wait_ms": millis(wait), "error": error}),
            );
        }
    }

    /// After a crash during its trial: waits until no other instance could cause the next crash. Returns false if it is
    /// stopped meanwhile.
    fn wait_for_turn(&mut self) -> bool {
        self.instance.enter(Phase::Restarting);
        let why = "the toolbox's process died when it had just been started: it waits until the others have run for a while";
        self.instance.lock().say("info", "toolbox", why, None);
        while !self.take_turn() {
            if self.stopped_within(TURN) {
                return false;
            }
        }
        true
    }

    /// Puts itself on trial if no other instance is on trial and no suspect is before it.
    fn take_turn(&self) -> bool {
        {
            let state = self.table.lock();
            let order = self.instance.order;
            let others = || state.live.values().filter(|other| other.order != order);
            let first = others().all(|other| other.order > order || !other.is_suspect());
            if !first || others().any(|other| other.is_on_trial()) {
                return false;
            }
            self.instance.put_on_trial(LONG_TRIAL);
        }
        self.table.save();
        true
    }

    /// Ends the trial when its time is over.
    pub(super) fn pass(&self) {
        if self.instance.pass() {
            self.table.save();
        }
    }

    /// Waits before the next run; returns true if it is stopped meanwhile.
    fn stopped_within(&mut self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            if self.instance.is_halted() {
                return true;
            }
            match self
                .inputs
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(Input::Command(Command::Stop { .. })) | Err(RecvTimeoutError::Disconnected) => {
                    return true;
                }
                Ok(Input::Command(other)) => other.refuse("it waits to be started again"),
                // Left over from the previous run.
                Ok(Input::Message(_) | Input::Refused(_)) => {}
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    fn make(&self) -> Option<Built> {
        let pipeline = self.instance.pipeline_text();
        let made = build(&self.table.policy, &pipeline)
            .and_then(|made| self.table.claim(&self.instance, &made.uses).map(|()| made));
        match made {
            Ok(made) => Some(made),
            Err(error) => {
                self.fail("pipeline", &error.to_string(), None);
                None
            }
        }
    }

    pub(super) fn fail(&self, element: &str, message: &str, debug: Option<&str>) {
        let said = {
            let mut view = self.instance.lock();
            let said = view.say("error", element, message, debug);
            view.error = Some(said.clone());
            said
        };
        self.table.tell(
            "pipeline_error",
            Severity::Error,
            &self.instance,
            json!({"error": said}),
        );
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
