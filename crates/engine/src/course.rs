//! The course of a call: it enters the table, is planned, takes its subsystems, runs and is concluded.
//!
//! Read [`Engine::call`], then [`Engine::call_at`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ovos_toolbox_wire::{Action, CallIdentity, Conclusion, Effect, Failure, FailureKind, Object, Report};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::call::{CallControl, CallEnd, CallRequest, Cause, Phase, Refusal, Verdict};
use super::calls::TableGuard;
use super::engine::Engine;
use super::fact::Fact;
use super::known_toolbox::Lease;
use super::plan::{Defaults, Plan};
use super::run::{Runner, StartTally};
use super::subsystem::ALL;
use super::toolbox::NoAnswer;

impl Engine {
    /// Runs a call to its end. Tools of effect `stop` and `resume` do not come here; see [`Self::stop`].
    ///
    /// # Cancel safety
    /// Dropped early, the running actions are cancelled, the subsystems that they move are halted, and the call leaves
    /// the table and releases its subsystems. The engine does not wait for the machine and reports no end. End the call
    /// through [`CallControl::end`] instead.
    pub async fn call(&self, lease: &Lease, request: CallRequest) -> CallEnd {
        match self.enter(&request) {
            Ok(entry) => self.call_at(entry, lease, request, None).await,
            Err(refusal) => CallEnd::Refused(refusal),
        }
    }

    /// Enters a call into the table before there is a generation to run it (`request.generation` is 0 then, and `args`
    /// are not read). From now on the call counts as in flight and can be ended.
    ///
    /// # Errors
    /// The service is shutting down, a user stop or a bus loss has ended the call already, its id is in use, or too
    /// many calls are in flight.
    pub fn enter(&self, request: &CallRequest) -> Result<TableEntry<'_>, Refusal> {
        let control = Arc::new(CallControl::new(request));
        // A safe call is admitted even when the service is at its limit.
        let entered = self
            .calls
            .enter(control.clone(), request.effect != Effect::Safe)?;
        let deadline = request.timeout.and_then(|limit| {
            // A deadline that the clock cannot represent counts as none.
            Some((limit, request.received.checked_add(limit)?.into()))
        });
        Ok(TableEntry {
            control,
            deadline,
            entered,
        })
    }

    /// As [`Self::call`], for a call that [`Self::enter`] has entered. If `plan` is given, the call runs this plan of
    /// the generation and the toolbox does not plan again: this plan was approved, and the toolbox could return another
    /// one now.
    ///
    /// # Cancel safety
    /// As [`Self::call`].
    pub async fn call_at(
        &self,
        entry: TableEntry<'_>,
        lease: &Lease,
        request: CallRequest,
        plan: Option<Plan>,
    ) -> CallEnd {
        let TableEntry {
            control,
            deadline,
            entered,
        } = entry;
        control.runs_on(request.generation);
        let mut work = std::pin::pin!(self.work(lease, request, plan, &control));
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
        let limits = lease.known_toolbox().limits();
        let planned = timeout(limits.plan, lease.toolbox().plan(&request.tool, &request.args)).await;
        let planned = match planned {
            Ok(Ok(Some(plan))) => plan,
            Ok(Ok(None)) => vec![only_action(request)].into(),
            Ok(Err(NoAnswer::NeverAsked(failure))) => return Err(Refusal::NeverBegun(failure)),
            Ok(Err(unanswered)) => return Err(Refusal::PlanFailed(unanswered.into_failure())),
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
        let mut plan = Plan::new(
            planned.actions,
            Defaults {
                effect: request.effect,
                timeout,
            },
        )?;
        plan.check_steps(&lease.known_toolbox().step_tools())?;
        plan.sentences = planned.sentences;
        Ok(plan)
    }

    async fn work(
        &self,
        lease: &Lease,
        request: CallRequest,
        plan: Option<Plan>,
        control: &Arc<CallControl>,
    ) -> Result<CallEnd, Refusal> {
        let home = lease.known_toolbox();
        let latch = &home.latch;
        let latched = |stop| Refusal::Latched {
            toolbox_id: home.toolbox_id.clone(),
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
                    let limit = home.limits().max_wait;
                    let turn = timeout(limit, home.turn.lock()).await;
                    Some(turn.map_err(|_| Refusal::TurnTooLong {
                        toolbox_id: home.toolbox_id.clone(),
                        limit,
                    })?)
                } else {
                    None
                };
                let plan = match plan {
                    Some(plan) => plan,
                    None => self.plan(lease, &request).await?,
                };
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
                    Some(home.claim(control, claim, request.effect == Effect::Safe)?)
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
        let reservation = match claimed {
            Some(claimed) => Some(claimed.wait_until_granted(control).await?),
            None => None,
        };
        let moving = plan.moves().then(|| self.motion.begin(&home.toolbox_id));
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
            limits: home.limits(),
            run_ids: &self.run_ids,
            moved: AtomicBool::new(false),
            beginnings: StartTally::default(),
            waves: plan.waves.len(),
            content: Mutex::default(),
        };
        let ran = runner.run(plan).await;
        let content = runner.content.into_inner().into_values().flatten().collect();
        drop(moving);
        drop(reservation);
        let report = ran.map_err(Refusal::NeverBegun)?;
        // The cause is read before the toolbox concludes: a cancel during the conclusion ended no action.
        let cause = control.cause();
        let verdict = self.conclude(lease, &request.tool, &request.args, &report).await;
        Ok(CallEnd::Ran {
            report,
            verdict,
            cause,
            content,
        })
    }

    /// Makes a call's result from its report: the toolbox makes it, or the engine where the toolbox leaves the result
    /// to the service.
    ///
    /// # Cancel safety
    /// Dropped early, only the result is lost.
    pub async fn conclude(&self, lease: &Lease, tool: &str, args: &Object, report: &Report) -> Verdict {
        let limit = lease.known_toolbox().limits().plan;
        match timeout(limit, lease.toolbox().conclude(tool, args, report)).await {
            Ok(Ok(Some(conclusion))) => Verdict::Toolbox(conclusion),
            Ok(Ok(None)) => Verdict::Engine(report.conclusion()),
            Ok(Err(failure)) => Verdict::Toolbox(Conclusion::Error(failure)),
            Err(_) => {
                let toolbox_id = &lease.known_toolbox().toolbox_id;
                let late = format!(
                    "toolbox `{toolbox_id}` did not conclude `{tool}` within {} ms",
                    limit.as_millis()
                );
                Verdict::Toolbox(Conclusion::Error(Failure::new(FailureKind::TimeoutError, late)))
            }
        }
    }
}

/// A call's entry in the table, until it is dropped.
#[derive(Debug)]
pub struct TableEntry<'a> {
    control: Arc<CallControl>,
    deadline: Option<(Duration, tokio::time::Instant)>,
    entered: TableGuard<'a>,
}

impl TableEntry<'_> {
    /// The handle of the call.
    #[must_use]
    pub fn control(&self) -> &Arc<CallControl> {
        &self.control
    }

    /// Marks the call as running. For a call that consists of other calls: the engine does not run such a call itself.
    pub fn runs(&self) {
        self.control.enter(Phase::Running);
    }

    /// Waits for a condition that the call needs before it can run.
    ///
    /// # Errors
    /// The call was ended meanwhile, or its time is up.
    ///
    /// # Cancel safety
    /// As cancel safe as `needed`.
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

/// The single action of a call that its toolbox does not plan. If the tool moves something, the action takes all
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
        // An empty path: the toolbox sets the folder in each start.
        content_dir: request.content.then(String::new),
        operator: request.operator,
    }
}
