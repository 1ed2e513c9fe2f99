//! The execution engine: turns a call into a graph of actions and runs it in waves.
//!
//! It runs against [`Toolbox`] and knows neither the bus nor plugins. A call goes through `plan` (graph and waves),
//! `reserve` (subsystems), `run` (waves) and `report`; `stop` and `latch` act on all of these phases. Read
//! [`Engine::call`].

mod call;
mod calls;
mod facts;
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

pub use call::{CallControl, CallEnd, CallRequest, Cause, Phase, Refusal, Verdict};
pub use calls::Known;
use calls::{Calls, Entered, Mark};
pub use facts::{
    Answer, Asked, BEHIND, Call, CallFacts, Counts, Fact, Facts, Followed, Follower, Made, Step,
};
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

/// The engine's limits for one toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of calls that may wait for subsystems.
    pub max_waiting: usize,
    /// How long a call may wait for its subsystems, or for the calls ahead of it to be planned.
    pub max_wait: Duration,
    /// How long a toolbox may take to plan, to conclude, or to answer a resume.
    pub plan: Duration,
    /// The timeout of an action where neither the action nor the tool has one.
    pub default_timeout: Duration,
    /// How long the engine waits for the report of an action's end after it asked the toolbox to end the action.
    pub grace: Duration,
    /// The same for an action of effect `motion`: a vehicle brakes for seconds.
    pub settle: Duration,
    /// How long the engine waits for a safe action; then the action is reported as `abandoned`.
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

/// Runs calls. The service has one engine, shared by every task that starts, ends or watches calls.
pub struct Engine {
    calls: Calls,
    run_ids: RunIds,
    stations: RwLock<Stations>,
    latches: watch::Sender<u64>,
    motion: Motion,
    facts: Facts,
}

/// The stations of all toolboxes that the engine has known since its start.
struct Stations {
    by_id: BTreeMap<String, Arc<Station>>,
    /// A stop that holds every toolbox, including those that are attached later. While it holds, the latch of a single
    /// toolbox is not lifted.
    everything: Option<StopRecord>,
    /// Whether toolboxes are being loaded for the first time.
    starting: bool,
}

impl Stations {
    /// The station of a toolbox. A new one is latched where one stop holds everything.
    fn of(&mut self, toolbox_id: &str, limits: Limits) -> Arc<Station> {
        let everything = &self.everything;
        let fresh = || Arc::new(Station::new(toolbox_id, Latch::new(everything.clone()), limits));
        let station = self.by_id.entry(toolbox_id.to_owned()).or_insert_with(fresh);
        station.clone()
    }
}

impl Engine {
    /// An engine without live toolboxes. `max_calls` bounds the calls in flight. `latched` has the stops that a
    /// previous run of the service left behind, by toolbox id: they hold those toolboxes before they are attached, and
    /// a newer stop replaces them. The stop under `all` holds every toolbox, present and future, until
    /// [`Self::resume_all`].
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
                starting: false,
            }),
            latches: watch::Sender::new(0),
            motion: Motion::default(),
            facts: Facts::default(),
        }
    }

    /// The facts that this engine makes, and those of its calls.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Sets the watch that records which toolboxes move. From then on a call that moves something starts only when its
    /// record is written. Must be called before the first call; later watches are ignored.
    pub fn watch_motion(&self, watch: Arc<dyn MotionWatch>) {
        self.motion.watch(watch);
    }

    /// Whether a call that moves something is under way; the receiver is notified of changes.
    #[must_use]
    pub fn motion(&self) -> watch::Receiver<bool> {
        self.motion.any()
    }

    // --- toolboxes

    /// Sets which toolboxes are installed: those with a live generation, those that are being started or restarted, and
    /// those that were given up until a reload. A stop reaches all of these, and a stop of any other name stops all of
    /// them. The latch of a removed toolbox stays and holds the toolbox again when it comes back.
    pub fn set_installed(&self, toolbox_ids: &BTreeSet<&str>) {
        let mut stations = self.stations.write();
        for toolbox_id in toolbox_ids {
            stations.of(toolbox_id, Limits::default());
        }
        for station in stations.by_id.values() {
            station.set_installed(toolbox_ids.contains(station.toolbox_id.as_str()));
        }
    }

    /// Sets whether toolboxes are being loaded for the first time. Meanwhile a stop of every toolbox also holds those
    /// that are attached later, until [`Self::resume_all`].
    pub fn set_starting(&self, starting: bool) {
        self.stations.write().starting = starting;
    }

    /// Makes a generation of a toolbox callable, including one that was drained. A new generation is halted at once if
    /// its toolbox is in emergency stop.
    pub fn attach(&self, toolbox_id: &str, generation: u64, toolbox: Arc<dyn Toolbox>, limits: Limits) {
        let station = self.stations.write().of(toolbox_id, limits);
        if station.attach(generation, toolbox, limits) {
            self.facts.make(|| Fact::ToolboxUp {
                toolbox_id: toolbox_id.to_owned(),
                generation,
            });
        }
    }

    /// Sets the tools of a toolbox and which of them are forbidden; the toolbox's plans are checked against them. Must
    /// be called before the toolbox is attached.
    pub fn set_step_tools(&self, toolbox_id: &str, tools: StepTools) {
        let station = self.stations.write().of(toolbox_id, Limits::default());
        station.set_step_tools(tools);
    }

    /// Holds a generation for a call; `None` when the generation is unknown or takes no new calls.
    #[must_use]
    pub fn lease(&self, toolbox_id: &str, generation: u64) -> Option<Lease> {
        self.station(toolbox_id)?.lease(generation)
    }

    /// Refuses new calls for a generation and waits for its calls to end. After `limit` it ends them and waits once
    /// more, for at most `settle + grace + 2 * halt + 2 * plan` of the toolbox's [`Limits`].
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

    /// Removes a closed generation. The latch stays.
    pub fn detach(&self, toolbox_id: &str, generation: u64) {
        let station = self.station(toolbox_id);
        if station.is_some_and(|station| station.detach(generation)) {
            self.facts.make(|| Fact::ToolboxDown {
                toolbox_id: toolbox_id.to_owned(),
                generation,
            });
        }
    }

    // --- calls

    /// Runs a call to its end. Tools of effect `stop` and `resume` do not come here; see [`Self::stop`].
    ///
    /// # Cancel safety
    /// Dropped early, the running actions are cancelled, the subsystems that they move are halted, and the call leaves
    /// the table and releases its subsystems. The engine does not wait for the machine and reports no end. End the call
    /// through [`CallControl::end`] instead.
    pub async fn call(&self, lease: &Lease, request: CallRequest) -> CallEnd {
        match self.enter(&request) {
            Ok(place) => self.call_at(place, lease, request).await,
            Err(refusal) => CallEnd::Refused(refusal),
        }
    }

    /// Enters a call into the table before there is a generation to run it (`request.generation` is 0 then, and `args`
    /// are not read). From now on the call counts as in flight and can be ended.
    ///
    /// # Errors
    /// The service is shutting down, a user stop or a bus loss has ended the call already, its id is in use, or too
    /// many calls are in flight.
    pub fn enter(&self, request: &CallRequest) -> Result<Place<'_>, Refusal> {
        let control = Arc::new(CallControl::new(request));
        // A safe call is admitted even when the service is at its limit.
        let entered = self
            .calls
            .enter(control.clone(), request.effect != Effect::Safe)?;
        let deadline = request.timeout.and_then(|limit| {
            // A deadline that the clock cannot represent counts as none.
            Some((limit, request.received.checked_add(limit)?.into()))
        });
        Ok(Place {
            control,
            deadline,
            entered,
        })
    }

    /// As [`Self::call`], for a call that [`Self::enter`] has entered.
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
            // The deadline is checked first: a call whose time is up on arrival starts nothing.
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

    /// Plans a call and checks the plan, without running anything.
    ///
    /// # Errors
    /// The toolbox failed or took too long, or the plan is not valid.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing in the engine.
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
                // A read call reserves nothing, and a safe call waits for no other call to be planned.
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
                if let Some(facts) = control.facts() {
                    facts.tell(|call| Fact::Planned {
                        call,
                        generation: control.generation(),
                        waves: plan.wave_ids(),
                        subsystems: claim.to_vec(),
                    });
                }
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
            Some(claimed) => Some(claimed.held(control).await?),
            None => None,
        };
        let moving = plan.moves().then(|| self.motion.begin(&station.toolbox_id));
        // A safe call does not wait for the disk.
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
        let runner = Runner {
            toolbox: lease.toolbox(),
            control,
            latch,
            epoch,
            identity: identity(&request, epoch),
            limits: station.limits(),
            run_ids: &self.run_ids,
            moved: AtomicBool::new(false),
            beginnings: Beginnings::default(),
            waves: plan.waves.len(),
        };
        let ran = runner.run(plan).await;
        drop(moving);
        drop(reserved);
        let report = ran.map_err(Refusal::NeverBegun)?;
        // The cause is read now: a cancel that comes while the toolbox concludes did not end any action.
        let cause = control.cause();
        let verdict = self.conclude(lease, &request.tool, &request.args, &report).await;
        Ok(CallEnd::Ran {
            report,
            verdict,
            cause,
        })
    }

    /// The toolbox's result for a report, or the engine's where the toolbox leaves it to the service.
    ///
    /// # Cancel safety
    /// Dropped early, only the result is lost.
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

    /// What the engine knows of a call id.
    #[must_use]
    pub fn find(&self, call_id: &str) -> Known {
        self.calls.find(call_id)
    }

    /// Every call under way, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Arc<CallControl>> {
        self.calls.in_flight()
    }

    /// The number of calls under way.
    #[must_use]
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }

    /// As [`Self::user_stop_at`], for a user who says "stop" now.
    pub fn user_stop(&self, session_id: Option<&str>) -> usize {
        self.user_stop_at(session_id, tokio::time::Instant::now().into_std())
    }

    /// Ends the calls that were received by the moment at which the user said "stop", including those that have not
    /// entered the table yet: the calls of the given session, or all calls when it is `None`. Safe actions go on.
    /// Returns the number of those calls that were under way.
    pub fn user_stop_at(&self, session_id: Option<&str>, at: Instant) -> usize {
        self.end_marked(Mark {
            at,
            cause: Cause::UserStop,
            session_id: session_id.map(str::to_owned),
            motion: false,
        })
    }

    /// Ends the calls of effect `motion`, because the bus has been away for `limit`. Returns their number.
    pub fn bus_lost(&self, limit: Duration) -> usize {
        self.end_marked(Mark {
            at: tokio::time::Instant::now().into_std(),
            cause: Cause::BusLost { limit },
            session_id: None,
            motion: true,
        })
    }

    /// Ends every call and refuses new ones, because the service is shutting down.
    pub fn shut_down(&self) {
        self.calls.close();
        self.end_all(&Cause::Shutdown, |_| true);
    }

    /// Ends the calls that a mark concerns: those under way, and those that enter the table later.
    fn end_marked(&self, mark: Mark) -> usize {
        // The mark comes first: a call that enters after it is refused, and one that entered before it is found below.
        self.calls.mark(mark.clone());
        self.end_all(&mark.cause, |call| mark.concerns(call))
    }

    /// Ends calls, waiting ones first. Otherwise a running call that ends would release its subsystems to a waiting
    /// call that is about to be ended, and that one would move for a moment. Returns their number.
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

    /// The stops of all latched toolboxes by toolbox id, including toolboxes that are not installed now; `all` where
    /// one stop holds everything. The service has to keep them across its restart.
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

    /// The longest `settle` of all toolboxes: how long the slowest machine may take to come to rest.
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

/// A call's entry in the table, until it is dropped.
#[derive(Debug)]
pub struct Place<'a> {
    control: Arc<CallControl>,
    deadline: Option<(Duration, tokio::time::Instant)>,
    entered: Entered<'a>,
}

impl Place<'_> {
    /// Waits for a condition that the call needs before it can run.
    ///
    /// # Errors
    /// The call was ended meanwhile, or its time is up.
    ///
    /// # Cancel safety
    /// That of `needed`.
    pub async fn wait_for<T>(&self, needed: impl Future<Output = T>) -> Result<T, Refusal> {
        let control = &self.control;
        let late = async {
            match self.deadline {
                // A timeout does not end a safe call.
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

/// The plan for a tool that its toolbox does not plan. The single action of a tool that moves something takes all
/// subsystems, because nothing says which ones it moves.
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
