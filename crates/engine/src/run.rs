//! Runs a plan wave by wave against a toolbox.
//!
//! Owns the order of starts, the timeouts of actions, and the handling of actions that do not complete. Every wait for
//! a toolbox has a bound, and every action gets exactly one report line, whatever the toolbox does. Read
//! [`Runner::run`], then [`Runner::drive`].

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ovos_toolbox_wire::{
    ActionIdentity, ActionReport, CallIdentity, Completion, Effect, Failure, FailureKind, Object, Outcome,
    Report, Start,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::timeout;

use super::call::{CallControl, Cause};
use super::fact::Fact;
use super::latch::Latch;
use super::limits::Limits;
use super::plan::{Plan, PlannedAction};
use super::report::{Interruption, abandon, call_outcome, cancelled, interruption, line, settle, skipped};
use super::subsystem::{ALL, Claim};
use super::toolbox::{Halt, NoAnswer, ProgressSink, RunId, RunIds, RunResult, Toolbox};
use super::wave::WaveQueue;

/// The state that the actions of one call share.
pub(crate) struct Runner<'a> {
    pub(crate) toolbox: &'a Arc<dyn Toolbox>,
    pub(crate) control: &'a CallControl,
    pub(crate) latch: &'a Latch,
    /// The epoch under which the call was admitted.
    pub(crate) epoch: u64,
    pub(crate) identity: CallIdentity,
    pub(crate) limits: Limits,
    pub(crate) run_ids: &'a RunIds,
    /// Set at the first start of an action of effect `motion`: from then on, an early end of the call has to bring the
    /// machine to rest.
    pub(crate) moved: AtomicBool,
    pub(crate) beginnings: StartTally,
    pub(crate) waves: usize,
    /// The content of the actions that completed, by their place in the plan.
    pub(crate) content: Mutex<BTreeMap<usize, Vec<Value>>>,
}

/// Whether the call's runs reached the toolbox.
#[derive(Default)]
pub(crate) struct StartTally {
    any: AtomicBool,
    /// Why a run did not reach the toolbox.
    none: OnceLock<Failure>,
}

impl StartTally {
    fn note(&self, end: &WaitEnd) {
        match end {
            WaitEnd::Ended(RunResult::NeverBegun(failure)) => _ = self.none.set(failure.clone()),
            _ => self.any.store(true, Ordering::Relaxed),
        }
    }
}

impl Runner<'_> {
    /// Runs every wave and reports how each action ended.
    ///
    /// # Errors
    /// The toolbox died before any run of the call reached it.
    pub(crate) async fn run(&self, mut plan: Plan) -> Result<Report, Failure> {
        let start = Instant::now();
        let mut lines: Vec<Option<ActionReport>> = vec![None; plan.actions.len()];
        let waves = std::mem::take(&mut plan.waves);
        let mut goes_on = true;
        for (number, wave) in (1..).zip(&waves) {
            let runnable = |&index: &usize| self.may_start(plan.actions[index].effect);
            if !goes_on || !wave.iter().any(runnable) {
                break;
            }
            self.control.show(|call| Fact::Wave {
                call,
                wave: number,
                waves: self.waves,
            });
            self.run_wave(wave, &mut plan.actions, &mut lines).await;
            let completed = |&index: &usize| {
                lines[index]
                    .as_ref()
                    .is_some_and(|l| l.outcome == Outcome::Completed)
            };
            goes_on = wave.iter().all(completed);
        }
        let cause = self.control.cause();
        if cause.is_none()
            && !self.beginnings.any.load(Ordering::Relaxed)
            && let Some(failure) = self.beginnings.none.get()
        {
            return Err(failure.clone());
        }
        let broken = lines
            .iter()
            .flatten()
            .find(|line| line.outcome != Outcome::Completed);
        let broken = broken.map(|line| line.id.clone());
        let never_started = |action| match &cause {
            Some(_) => cancelled(action, cause.as_ref()),
            None => skipped(action, broken.as_deref()),
        };
        let actions: Vec<ActionReport> = lines
            .into_iter()
            .zip(&plan.actions)
            .map(|(line, action)| line.unwrap_or_else(|| never_started(action)))
            .collect();
        if cause.is_some() {
            self.come_to_rest(&plan.actions).await;
        }
        Ok(Report {
            outcome: call_outcome(&actions, cause.as_ref()),
            duration_ms: millis(start.elapsed()),
            actions,
        })
    }

    /// Starts each action of the wave as soon as the earlier ones on its subsystems have ended.
    async fn run_wave(
        &self,
        wave: &[usize],
        actions: &mut [PlannedAction],
        lines: &mut [Option<ActionReport>],
    ) {
        let mut queue = WaveQueue::new(wave, actions);
        let mut running = FuturesUnordered::new();
        // The subsystems on which an action of the wave did not complete, and the first such action. Later actions that
        // share a subsystem with them are skipped.
        let (mut broken, mut first_broken) = (Claim::default(), None);
        loop {
            while let Some(index) = queue.pop() {
                let action = &mut actions[index];
                if !self.may_start(action.effect) {
                    lines[index] = Some(cancelled(action, self.control.cause().as_ref()));
                } else if !broken.is_empty() && broken.conflicts(&action.subsystems.iter().collect()) {
                    lines[index] = Some(skipped(action, first_broken.as_deref()));
                } else {
                    let inputs = inputs(action, lines);
                    running.push(self.drive(index, Job::take(action), inputs));
                    continue;
                }
                queue.ended(index);
            }
            let Some((index, line)) = running.next().await else {
                break;
            };
            if line.outcome != Outcome::Completed {
                first_broken.get_or_insert_with(|| line.id.clone());
                broken.add(&line.subsystems);
            }
            self.control.show(|call| Fact::ActionEnded {
                call,
                action: line.id.clone(),
                outcome: line.outcome,
                wave: line.wave,
                waves: self.waves,
                duration_ms: line.duration_ms,
            });
            lines[index] = Some(line);
            queue.ended(index);
        }
    }

    /// Whether the call still starts actions of this effect. Safe ones start until a cause ends safe actions, too.
    fn may_start(&self, effect: Effect) -> bool {
        let ended = if effect == Effect::Safe {
            self.control.hard()
        } else {
            self.control.soft()
        };
        !ended.is_cancelled()
    }

    /// Runs one action until it ends or the engine's time limit for it has passed.
    async fn drive(&self, index: usize, job: Job, inputs: Object) -> (usize, ActionReport) {
        let began_at = Instant::now();
        let Job {
            mut line,
            params,
            effect,
            timeout: limit,
        } = job;
        if let Some(failure) = self.too_late(effect) {
            line.outcome = Outcome::Cancelled;
            line.error = Some(failure);
            return (index, line);
        }
        let moves = effect == Effect::Motion;
        if moves {
            self.moved.store(true, Ordering::Relaxed);
        }
        let run = self.run_ids.next();
        let start = self.start(&line, params, effect, inputs, limit);
        self.control.show(|call| Fact::ActionStarted {
            call,
            action: line.id.clone(),
            wave: line.wave,
            waves: self.waves,
        });
        let followers = self.control.facts().filter(|facts| facts.has_queue());
        let hears = followers.map(|_| Arc::new(AtomicBool::new(true)));
        let mut ended = self
            .toolbox
            .start(run, start, self.progress_sink(&line, hears.as_ref()));
        let underway = Underway {
            runner: self,
            run,
            moves: moves.then(|| line.subsystems.clone()),
            hears,
            over: false,
        };

        let interrupted = if effect == Effect::Safe {
            self.wait_safely(&mut ended).await
        } else {
            tokio::select! {
                biased;
                end = &mut ended => WaitEnd::Ended(end),
                () = self.control.soft().cancelled() => WaitEnd::Cancelled,
                () = tokio::time::sleep(limit) => WaitEnd::TimedOut,
            }
        };
        self.beginnings.note(&interrupted);
        let grace = if moves {
            self.limits.settle
        } else {
            self.limits.grace
        };
        match interrupted {
            WaitEnd::Ended(end) => {
                let why = self.stopped_by_now(&end);
                self.settle(index, &mut line, end, why.as_ref());
            }
            WaitEnd::GivenUp => {
                line.outcome = Outcome::Abandoned;
                line.error = Some(Failure::new(
                    FailureKind::TimeoutError,
                    format!(
                        "it brings the machine to safety, so it was not cancelled, but it has not reported its end for {} ms \
                         (service.safe_limit_ms)",
                        self.limits.safe_limit.as_millis()
                    ),
                ));
            }
            WaitEnd::Cancelled => {
                self.cancel(run, &line, moves).await;
                let cause = self.control.cause();
                match timeout(grace, &mut ended).await {
                    Ok(end) => self.settle(index, &mut line, end, Some(&interruption(cause.as_ref()))),
                    Err(_) => abandon(&mut line, &interruption(cause.as_ref()), grace),
                }
            }
            WaitEnd::TimedOut => {
                self.cancel(run, &line, moves).await;
                let why = Interruption {
                    outcome: Outcome::TimedOut,
                    failure: Failure::new(
                        FailureKind::TimeoutError,
                        format!("not done within its timeout of {} ms", limit.as_millis()),
                    ),
                };
                match timeout(grace, &mut ended).await {
                    Ok(end) => self.settle(index, &mut line, end, Some(&why)),
                    Err(_) => abandon(&mut line, &why, grace),
                }
            }
        }
        underway.over();
        line.duration_ms = millis(began_at.elapsed());
        (index, line)
    }

    /// Writes the end of a run into its report line, and keeps its content if the action completed and the
    /// caller asks for content.
    fn settle(&self, index: usize, line: &mut ActionReport, mut end: RunResult, why: Option<&Interruption>) {
        let content = match &mut end {
            RunResult::Shown { content, .. } => std::mem::take(content),
            _ => Vec::new(),
        };
        settle(line, end, why);
        let keeps_content = self.identity.content_dir.is_some();
        if keeps_content && line.outcome == Outcome::Completed && !content.is_empty() {
            self.content.lock().insert(index, content);
        }
    }

    /// Why an action is not started although its turn has come: the call was ended since then, perhaps while other
    /// actions of the wave were being started.
    fn too_late(&self, effect: Effect) -> Option<Failure> {
        let stopped = matches!(effect, Effect::Motion | Effect::Write) && !self.latch.is_current(self.epoch);
        if stopped {
            // A stop raises the epoch first and tells the calls last; this call sees the epoch before it is told.
            self.control.end(Cause::stopped(self.latch));
        }
        (!self.may_start(effect)).then(|| interruption(self.control.cause().as_ref()).failure)
    }

    /// The emergency stop that ended a run before its call was told: a stop raises the epoch first, then halts, and
    /// tells the calls last.
    fn stopped_by_now(&self, end: &RunResult) -> Option<Interruption> {
        let did_not_get_there = matches!(
            end,
            RunResult::Cancelled | RunResult::Reported(Completion::Error(_))
        );
        if !did_not_get_there || self.latch.is_current(self.epoch) {
            return None;
        }
        self.control.end(Cause::stopped(self.latch));
        Some(interruption(self.control.cause().as_ref()))
    }

    /// Waits for a safe action, until it ends, a cause ends safe actions, or `safe_limit` has passed.
    async fn wait_safely(&self, ended: &mut (impl Future<Output = RunResult> + Unpin)) -> WaitEnd {
        tokio::select! {
            biased;
            end = ended => WaitEnd::Ended(end),
            () = self.control.hard().cancelled() => WaitEnd::Cancelled,
            () = tokio::time::sleep(self.limits.safe_limit) => WaitEnd::GivenUp,
        }
    }

    /// Asks the toolbox to end a run and, if the run moves something, halts its subsystems at once.
    async fn cancel(&self, run: RunId, line: &ActionReport, moves: bool) {
        self.toolbox.cancel(run);
        if moves {
            self.halt(line.subsystems.clone()).await;
        }
    }

    /// Halts all motion subsystems of a call that moved something and ends early, including those of completed actions.
    /// The call starts nothing after this.
    async fn come_to_rest(&self, actions: &[PlannedAction]) {
        if self.moved.load(Ordering::Relaxed) {
            let names: HashSet<&String> = actions
                .iter()
                .filter(|action| action.effect == Effect::Motion)
                .flat_map(|action| &action.subsystems)
                .collect();
            let mut names: Vec<String> = names.into_iter().cloned().collect();
            names.sort_unstable();
            self.halt(names).await;
        }
    }

    async fn halt(&self, subsystems: Vec<String>) {
        let Some(halted) = self.send_halt(subsystems) else {
            return;
        };
        match timeout(self.limits.halt, halted).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                tracing::error!(call_id = self.identity.call_id, toolbox = self.identity.toolbox_id, %failure, "halt failed");
            }
            Err(_) => {
                tracing::error!(
                    call_id = self.identity.call_id,
                    toolbox = self.identity.toolbox_id,
                    "halt was not answered"
                );
            }
        }
    }

    /// Sends a halt; the future resolves with the toolbox's confirmation.
    ///
    /// `None` after an emergency stop, which has sent a halt of its own. A gentler halt after it would undo what the
    /// backend does in an emergency (such as releasing torque).
    fn send_halt(&self, mut subsystems: Vec<String>) -> Option<BoxFuture<'static, Result<(), NoAnswer>>> {
        if !self.latch.is_current(self.epoch) {
            return None;
        }
        if subsystems.is_empty() {
            // The action moves something and names no subsystem.
            subsystems.push(ALL.to_owned());
        }
        Some(self.toolbox.halt(Halt {
            subsystems,
            emergency: false,
            stop_epoch: self.epoch,
        }))
    }

    fn start(
        &self,
        line: &ActionReport,
        params: Object,
        effect: Effect,
        inputs: Object,
        limit: Duration,
    ) -> Start {
        let mut call = self.identity.clone();
        call.deadline_ms = millis(limit);
        call.stop_epoch = self.epoch;
        call.latched = self.latch.holder().is_some();
        let action = ActionIdentity {
            id: line.id.clone(),
            name: line.name.clone(),
            subsystems: line.subsystems.clone(),
            params,
            effect,
        };
        Start { call, action, inputs }
    }

    /// A sink that hands an action's progress to the call's queue while the action runs, and ignores it afterwards.
    fn progress_sink(&self, line: &ActionReport, hears: Option<&Arc<AtomicBool>>) -> Option<ProgressSink> {
        let (facts, hears) = (self.control.facts()?.clone(), hears?.clone());
        let (action, wave, waves) = (line.id.clone(), line.wave, self.waves);
        Some(Arc::new(move |progress| {
            if !hears.load(Ordering::Acquire) {
                return;
            }
            facts.update(|call| Fact::Update {
                call,
                action: action.clone(),
                progress,
                wave,
                waves,
            });
        }))
    }
}

/// A run that was started and has not ended.
///
/// If it is dropped before the run's end (the call's task was aborted, or it panicked), it cancels the run and halts
/// the subsystems that the run moves, because no other code would. The call releases its subsystems only after that.
struct Underway<'a> {
    runner: &'a Runner<'a>,
    run: RunId,
    /// The subsystems of a run that moves something.
    moves: Option<Vec<String>>,
    /// Whether the call's queue still gets progress.
    hears: Option<Arc<AtomicBool>>,
    over: bool,
}

impl Underway<'_> {
    fn over(mut self) {
        self.over = true;
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if let Some(hears) = &self.hears {
            hears.store(false, Ordering::Release);
        }
        if self.over {
            return;
        }
        self.runner.toolbox.cancel(self.run);
        if let Some(subsystems) = self.moves.take() {
            // The halt is sent even if its future is dropped, and no task is left to wait for the confirmation.
            drop(self.runner.send_halt(subsystems));
        }
    }
}

/// The part of an action that its run takes out of the plan, so that the parameters are moved and not copied.
struct Job {
    line: ActionReport,
    params: Object,
    effect: Effect,
    timeout: Duration,
}

impl Job {
    fn take(action: &mut PlannedAction) -> Self {
        Self {
            line: line(action),
            params: std::mem::take(&mut action.params),
            effect: action.effect,
            timeout: action.timeout,
        }
    }
}

/// How the wait for an action ended.
enum WaitEnd {
    Ended(RunResult),
    Cancelled,
    TimedOut,
    GivenUp,
}

/// The outputs of an action's dependencies, by id. Every dependency has completed by now: a wave starts only when all
/// actions of the wave before have completed.
fn inputs(action: &PlannedAction, lines: &[Option<ActionReport>]) -> Object {
    let output = |&index: &usize| {
        let line = lines[index].as_ref()?;
        Some((line.id.clone(), line.output.clone().unwrap_or(Value::Null)))
    };
    action.dependencies.iter().filter_map(output).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
