//! The execution engine: turns a call into a graph of actions and runs it in waves.
//!
//! It runs against [`Toolbox`] and knows neither the bus nor plugins. A call goes through `plan` (graph and waves),
//! `reserve` (subsystems), `run` (waves) and `report`; `stop` and the latch stand beside all of them.
//! Read [`Engine::call`].

mod call;
mod calls;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod latch;
mod motion;
mod plan;
mod report;
mod reserve;
mod run;
mod station;
mod stop;
mod subsystem;
mod sync;
mod toolbox;
mod wave;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Action, CallIdentity, Conclusion, Effect, Failure, Object, Report};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::timeout;

pub use call::{
    CallControl, CallEnd, CallObserver, CallProgress, CallRequest, Cause, Phase, Refusal, Verdict,
};
pub use calls::Known;
use calls::{Calls, Entered, Mark};
pub use latch::{Latch, LiftError, StopRecord};
use motion::Motion;
pub use motion::MotionWatch;
pub use plan::{Defaults, Plan, PlanError, PlannedAction, StepTool, StepTools};
pub use reserve::{Request, Reservations, Ticket};
use run::{Beginnings, Runner};
pub use station::Lease;
use station::Station;
pub use stop::{ResumeError, Resumed, StopTarget, Stopped};
use subsystem::ALL;
pub use subsystem::Claim;
use toolbox::RunIds;
pub use toolbox::{Ended, Halt, ProgressSink, RunId, Toolbox, Unanswered};

/// The engine's bounds for one toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that may wait for subsystems.
    pub max_waiting: usize,
    /// How long one may wait.
    pub max_wait: Duration,
    /// How long a toolbox may take to plan, to conclude or to agree to a resume.
    pub plan: Duration,
    /// How long an action may take where nothing else says so.
    pub default_timeout: Duration,
    /// How long a toolbox has to report the end of an action after it was asked to end it.
    pub grace: Duration,
    /// The same for an action that moves: a vehicle brakes for seconds.
    pub settle: Duration,
    /// How long a safe action may go on before its call is answered without it.
    pub safe_limit: Duration,
    /// How long a toolbox may take to confirm a halt.
    pub halt: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_waiting: 64,
            max_wait: Duration::from_secs(30),
            plan: Duration::from_secs(1),
            default_timeout: Duration::from_secs(10),
            grace: Duration::from_millis(500),
            settle: Duration::from_secs(3),
            safe_limit: Duration::from_secs(120),
            halt: Duration::from_millis(200),
        }
    }
}

/// Runs calls. One for the service; shared by everything that starts, ends or watches calls.
pub struct Engine {
    calls: Calls,
    run_ids: RunIds,
    stations: RwLock<Stations>,
    latches: watch::Sender<u64>,
    motion: Motion,
}

/// What is kept of every toolbox that was ever there.
struct Stations {
    by_id: BTreeMap<String, Arc<Station>>,
    /// A stop that holds every toolbox, also those that come later. While it holds, no latch is lifted by itself.
    everything: Option<StopRecord>,
}

impl Stations {
    /// The station of a toolbox; a new one is latched where everything is.
    fn of(&mut self, toolbox_id: &str, limits: Limits) -> Arc<Station> {
        let everything = &self.everything;
        let fresh = || Arc::new(Station::new(toolbox_id, Latch::new(everything.clone()), limits));
        let station = self.by_id.entry(toolbox_id.to_owned()).or_insert_with(fresh);
        station.clone()
    }
}

impl Engine {
    /// An engine without live toolboxes. `max_calls` bounds the calls in flight; `latched` are the stops that a previous
    /// run of the service left behind: they hold those toolboxes before they are there, and a newer stop replaces them.
    /// The one under `all` holds every toolbox that there will be, until [`Self::resume_all`].
    #[must_use]
    pub fn new(max_calls: usize, mut latched: HashMap<String, StopRecord>) -> Self {
        let everything = latched.remove(ALL);
        let held = |(toolbox_id, stop): (String, StopRecord)| {
            let station = Station::new(&toolbox_id, Latch::new(Some(stop)), Limits::default());
            (toolbox_id, Arc::new(station))
        };
        Self {
            calls: Calls::new(max_calls),
            run_ids: RunIds::default(),
            stations: RwLock::new(Stations {
                by_id: latched.into_iter().map(held).collect(),
                everything,
            }),
            latches: watch::Sender::new(0),
            motion: Motion::default(),
        }
    }

    /// Has it remembered which toolboxes move: a call that moves something starts once its record is there. Once, before
    /// the first call.
    pub fn watch_motion(&self, watch: Arc<dyn MotionWatch>) {
        self.motion.watch(watch);
    }

    /// Whether a call that moves something is under way, and every change of it.
    #[must_use]
    pub fn motion(&self) -> watch::Receiver<bool> {
        self.motion.any()
    }

    // --- toolboxes

    /// Says which toolboxes are installed: those with a live copy, and those of which one is being started or restarted, or
    /// was given up until a reload. A stop reaches these, and a name that is none of them stops all of them. The latch of
    /// one that goes stays, and holds it again when it comes back.
    pub fn set_installed(&self, toolbox_ids: &BTreeSet<&str>) {
        let mut stations = self.stations.write();
        for toolbox_id in toolbox_ids {
            stations.of(toolbox_id, Limits::default());
        }
        for station in stations.by_id.values() {
            station.set_installed(toolbox_ids.contains(station.toolbox_id.as_str()));
        }
    }

    /// Makes a generation of a toolbox callable, also one that was drained. One that comes while its toolbox is in
    /// emergency stop is halted at once.
    pub fn attach(&self, toolbox_id: &str, generation: u64, toolbox: Arc<dyn Toolbox>, limits: Limits) {
        let station = self.stations.write().of(toolbox_id, limits);
        station.attach(generation, toolbox, limits);
    }

    /// Says which tools a toolbox has, and which of them are forbidden: its plans are held to it. Before it is attached.
    pub fn set_step_tools(&self, toolbox_id: &str, tools: StepTools) {
        let station = self.stations.write().of(toolbox_id, Limits::default());
        station.set_step_tools(tools);
    }

    /// Holds a generation for a call; `None` when it takes no new calls (any more).
    #[must_use]
    pub fn lease(&self, toolbox_id: &str, generation: u64) -> Option<Lease> {
        self.station(toolbox_id)?.lease(generation)
    }

    /// Takes no new calls for a generation and waits until it has none: for `limit`, then its calls are ended and waited
    /// for once more.
    ///
    /// # Cancel safety
    /// Dropped early, the generation still takes no new calls; [`Self::attach`] undoes that.
    pub async fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) {
        let Some(station) = self.station(toolbox_id) else {
            return;
        };
        if timeout(limit, station.drained(generation)).await.is_ok() {
            return;
        }
        let cause = Cause::Reloaded {
            toolbox_id: toolbox_id.to_owned(),
        };
        self.end_all(&cause, |call| {
            call.toolbox_id == toolbox_id && call.generation() == generation
        });
        let limits = station.limits();
        let patience = limits.settle + limits.grace + 2 * limits.halt + 2 * limits.plan;
        if timeout(patience, station.drained(generation)).await.is_err() {
            tracing::error!(
                toolbox = toolbox_id,
                generation,
                "calls did not end in time for the reload"
            );
        }
    }

    /// Forgets a closed generation. The latch stays.
    pub fn detach(&self, toolbox_id: &str, generation: u64) {
        if let Some(station) = self.station(toolbox_id) {
            station.detach(generation);
        }
    }

    // --- calls

    /// Runs a call to its end. Tools of effect `stop` and `resume` do not come here; see [`Self::stop`].
    ///
    /// # Cancel safety
    /// Dropped early, the actions under way are cancelled, what they move is halted, and the call leaves the tables and
    /// gives its subsystems back; the machine is not waited for and the end is not told. End it through
    /// [`CallControl::end`] instead.
    pub async fn call(&self, lease: &Lease, request: CallRequest) -> CallEnd {
        match self.enter(&request) {
            Ok(place) => self.call_at(place, lease, request).await,
            Err(refusal) => CallEnd::Refused(refusal),
        }
    }

    /// Makes a call known before there is a generation to run it (`request.generation` is 0 then, and `args` do not
    /// matter): from here on it counts, and what ends calls ends it.
    ///
    /// # Errors
    /// Why it cannot be under way at all.
    pub fn enter(&self, request: &CallRequest) -> Result<Place<'_>, Refusal> {
        let control = Arc::new(CallControl::new(request));
        // What brings the machine to safety is not turned away because others keep the service busy.
        let entered = self
            .calls
            .enter(control.clone(), request.effect != Effect::Safe)?;
        let deadline = request.timeout.and_then(|limit| {
            // One beyond the end of the clock is none.
            Some((limit, request.received.checked_add(limit)?.into()))
        });
        Ok(Place {
            control,
            deadline,
            entered,
        })
    }

    /// As [`Self::call`], for a call that was entered already.
    ///
    /// # Cancel safety
    /// As [`Self::call`].
    pub async fn call_at(&self, place: Place<'_>, lease: &Lease, request: CallRequest) -> CallEnd {
        let Place {
            control,
            deadline,
            entered,
        } = place;
        control.runs_on(request.generation);
        let mut work = std::pin::pin!(self.work(lease, request, &control));
        let end = match deadline {
            None => work.await,
            // The time first: a call whose time was up before it came here starts nothing.
            Some((limit, deadline)) => tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => {
                    control.end(Cause::TimedOut { limit });
                    work.await
                }
                end = &mut work => end,
            },
        };
        drop(entered);
        end.unwrap_or_else(CallEnd::Refused)
    }

    /// The checked plan of a call, without running anything.
    ///
    /// # Errors
    /// What would refuse the call before its first action.
    ///
    /// # Cancel safety
    /// Nothing has happened when it is dropped.
    pub async fn plan(&self, lease: &Lease, request: &CallRequest) -> Result<Plan, Refusal> {
        let limits = lease.station().limits();
        let planned = timeout(limits.plan, lease.toolbox().plan(&request.tool, &request.args)).await;
        let actions = match planned {
            Ok(Ok(Some(actions))) => actions,
            Ok(Ok(None)) => vec![only_action(request)],
            Ok(Err(Unanswered::Failed(failure))) => return Err(Refusal::PlanFailed(failure)),
            Ok(Err(Unanswered::NeverAsked(failure))) => return Err(Refusal::NeverBegun(failure)),
            Err(_) => {
                let (toolbox_id, tool) = (request.toolbox_id.clone(), request.tool.clone());
                return Err(Refusal::PlanTimeout {
                    toolbox_id,
                    tool,
                    limit: limits.plan,
                });
            }
        };
        let timeout = request.action_timeout.unwrap_or(limits.default_timeout);
        let plan = Plan::new(
            actions,
            Defaults {
                effect: request.effect,
                timeout,
            },
        )?;
        plan.check_steps(&lease.station().step_tools())?;
        Ok(plan)
    }

    async fn work(
        &self,
        lease: &Lease,
        request: CallRequest,
        control: &Arc<CallControl>,
    ) -> Result<CallEnd, Refusal> {
        let station = lease.station();
        let latch = &station.latch;
        let latched = |stop| Refusal::Latched {
            toolbox_id: station.toolbox_id.clone(),
            stop,
        };
        let needs_open_latch = matches!(request.effect, Effect::Motion | Effect::Write);
        let epoch = if needs_open_latch {
            latch.admit().map_err(latched)?
        } else {
            latch.epoch()
        };

        let planned = {
            let ended = control.ended();
            let planned = async {
                // A read reserves nothing, and a safe call waits for no other call.
                let turn = if needs_open_latch {
                    let limit = station.limits().max_wait;
                    let turn = timeout(limit, station.turn.lock()).await;
                    Some(turn.map_err(|_| Refusal::TurnTooLong {
                        toolbox_id: station.toolbox_id.clone(),
                        limit,
                    })?)
                } else {
                    None
                };
                let plan = self.plan(lease, &request).await?;
                control.claims(&plan);
                let claim = plan.claim();
                let claimed = if request.effect == Effect::Read || claim.is_empty() {
                    None
                } else {
                    control.enter(Phase::Queued);
                    Some(station.claim(control, claim, request.effect == Effect::Safe)?)
                };
                drop(turn);
                Ok((plan, claimed))
            };
            tokio::select! {
                biased;
                () = ended.cancelled() => Err(Refusal::Ended(control.cause().unwrap_or(Cause::Shutdown))),
                planned = planned => planned,
            }
        };
        let (plan, claimed) = planned?;
        let reserved = match claimed {
            Some(claimed) => Some(claimed.held(control, request.observer.as_ref()).await?),
            None => None,
        };
        let moving = plan.moves().then(|| self.motion.begin(&station.toolbox_id));
        // What brings the machine to safety does not wait for a disk.
        if moving.is_some() && request.effect != Effect::Safe {
            tokio::select! {
                biased;
                () = control.ended().cancelled() => return Err(Refusal::Ended(control.cause().unwrap_or(Cause::Shutdown))),
                recorded = self.motion.recorded() => recorded?,
            }
        }
        if needs_open_latch && !latch.is_current(epoch) {
            return Err(Refusal::Ended(Cause::stopped(latch)));
        }
        control.enter(Phase::Running);
        tracing::debug!(
            call_id = %control.call_id, toolbox = %control.toolbox_id, tool = %control.tool,
            generation = control.generation(), waves = plan.waves.len(), "call runs"
        );
        let runner = Runner {
            toolbox: lease.toolbox(),
            control,
            latch,
            epoch,
            identity: identity(&request, epoch),
            limits: station.limits(),
            run_ids: &self.run_ids,
            observer: request.observer.as_ref(),
            moved: AtomicBool::new(false),
            beginnings: Beginnings::default(),
            waves: plan.waves.len(),
        };
        let ran = runner.run(plan).await;
        drop(moving);
        drop(reserved);
        let report = ran.map_err(Refusal::NeverBegun)?;
        // What comes while the toolbox makes an answer of the report has ended nothing.
        let cause = control.cause();
        let verdict = self.conclude(lease, &request.tool, &request.args, &report).await;
        Ok(CallEnd::Ran {
            report,
            verdict,
            cause,
        })
    }

    /// What the toolbox makes of a report, or the engine in its place.
    ///
    /// # Cancel safety
    /// Nothing but the answer is lost when it is dropped.
    pub async fn conclude(&self, lease: &Lease, tool: &str, args: &Object, report: &Report) -> Verdict {
        let limit = lease.station().limits().plan;
        match timeout(limit, lease.toolbox().conclude(tool, args, report)).await {
            Ok(Ok(Some(conclusion))) => Verdict::Toolbox(conclusion),
            Ok(Ok(None)) => Verdict::Engine(report::conclude(report)),
            Ok(Err(failure)) => Verdict::Toolbox(Conclusion::Error(failure)),
            Err(_) => {
                let toolbox_id = &lease.station().toolbox_id;
                let late = format!(
                    "toolbox `{toolbox_id}` did not conclude `{tool}` within {} ms",
                    limit.as_millis()
                );
                Verdict::Toolbox(Conclusion::Error(Failure::new("TimeoutError", late)))
            }
        }
    }

    /// What is known of a call id.
    #[must_use]
    pub fn find(&self, call_id: &str) -> Known {
        self.calls.find(call_id)
    }

    /// Every call under way, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Arc<CallControl>> {
        self.calls.in_flight()
    }

    /// How many calls are under way.
    #[must_use]
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }

    /// The user says "stop" now; see [`Self::user_stop_at`].
    pub fn user_stop(&self, session_id: Option<&str>) -> usize {
        self.user_stop_at(session_id, tokio::time::Instant::now().into_std())
    }

    /// The user said "stop" at a moment: ends the calls of that session, or all of them when it is `None`, that were
    /// received by then, also those that have not come here yet. Returns how many of them were under way.
    pub fn user_stop_at(&self, session_id: Option<&str>, at: Instant) -> usize {
        self.end_marked(Mark {
            at,
            cause: Cause::UserStop,
            session_id: session_id.map(str::to_owned),
            motion: false,
        })
    }

    /// The bus has been away for `limit`: ends the calls that move something. Returns how many.
    pub fn bus_lost(&self, limit: Duration) -> usize {
        self.end_marked(Mark {
            at: tokio::time::Instant::now().into_std(),
            cause: Cause::BusLost { limit },
            session_id: None,
            motion: true,
        })
    }

    /// Ends every call and takes no more, because the service is going down.
    pub fn shut_down(&self) {
        self.calls.close();
        self.end_all(&Cause::Shutdown, |_| true);
    }

    /// Ends what a mark concerns, now and when it comes.
    fn end_marked(&self, mark: Mark) -> usize {
        // First the mark: what enters after it is refused, what entered before it is found.
        self.calls.mark(mark.clone());
        self.end_all(&mark.cause, |call| mark.concerns(call))
    }

    /// Ends calls, those that wait first: otherwise one that ends would hand its subsystems to one that is about to, and
    /// that one would move for a moment. Returns how many.
    fn end_all(&self, cause: &Cause, concerned: impl Fn(&CallControl) -> bool) -> usize {
        let mut calls = self.calls.in_flight();
        calls.retain(|call| concerned(call));
        let (running, waiting): (Vec<_>, Vec<_>) =
            calls.iter().partition(|call| call.phase() == Phase::Running);
        for call in waiting.into_iter().chain(running) {
            call.end(cause.clone());
        }
        calls.len()
    }

    // --- latches

    /// Every toolbox that is in emergency stop, also those that are not installed at the moment; `all` where one stop
    /// holds everything. This is what has to outlive the service.
    #[must_use]
    pub fn latched(&self) -> BTreeMap<String, StopRecord> {
        let stations = self.stations.read();
        let held = |station: &Arc<Station>| Some((station.toolbox_id.clone(), station.latch.holder()?));
        let everything = stations.everything.clone().map(|stop| (ALL.to_owned(), stop));
        let held = stations.by_id.values().filter_map(held);
        held.chain(everything).collect()
    }

    /// Changes whenever a toolbox is stopped or resumed.
    #[must_use]
    pub fn watch_latches(&self) -> watch::Receiver<u64> {
        self.latches.subscribe()
    }

    fn latches_changed(&self) {
        self.latches.send_modify(|n| *n += 1);
    }

    fn station(&self, toolbox_id: &str) -> Option<Arc<Station>> {
        self.stations.read().by_id.get(toolbox_id).cloned()
    }

    /// The longest that one of the machines may take to come to rest.
    #[must_use]
    pub fn longest_settle(&self) -> Duration {
        let stations = self.stations();
        let settles = stations.iter().map(|station| station.limits().settle);
        settles.max().unwrap_or_default()
    }

    fn stations(&self) -> Vec<Arc<Station>> {
        self.stations.read().by_id.values().cloned().collect()
    }
}

/// A call's place in the tables, until it is dropped.
#[derive(Debug)]
pub struct Place<'a> {
    control: Arc<CallControl>,
    deadline: Option<(Duration, tokio::time::Instant)>,
    entered: Entered<'a>,
}

impl Place<'_> {
    /// Waits for something that the call needs before it can run.
    ///
    /// # Errors
    /// The call was ended meanwhile, or its time is up.
    ///
    /// # Cancel safety
    /// As that of `needed`.
    pub async fn wait_for<T>(&self, needed: impl Future<Output = T>) -> Result<T, Refusal> {
        let control = &self.control;
        let late = async {
            match self.deadline {
                // What brings the machine to safety is not ended by a timeout.
                Some((limit, at)) if control.effect != Effect::Safe => {
                    tokio::time::sleep_until(at).await;
                    limit
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = control.ended().cancelled() => Err(Refusal::Ended(control.cause().unwrap_or(Cause::Shutdown))),
            limit = late => Err(Refusal::Ended(Cause::TimedOut { limit })),
            needed = needed => Ok(needed),
        }
    }
}

/// The plan of a tool whose toolbox has none for it. What moves without saying what it moves holds everything.
fn only_action(request: &CallRequest) -> Action {
    let moves = matches!(request.effect, Effect::Motion | Effect::Safe);
    let subsystems = if moves { vec![ALL.to_owned()] } else { Vec::new() };
    Action {
        subsystems,
        params: request.args.clone(),
        ..Action::named(&request.tool)
    }
}

fn identity(request: &CallRequest, stop_epoch: u64) -> CallIdentity {
    CallIdentity {
        call_id: request.call_id.clone(),
        toolbox_id: request.toolbox_id.clone(),
        tool: request.tool.clone(),
        session_id: request.session_id.clone(),
        lang: request.lang.clone(),
        source: request.source.clone(),
        deadline_ms: 0,
        stop_epoch,
        latched: false,
        operator: request.operator,
    }
}
