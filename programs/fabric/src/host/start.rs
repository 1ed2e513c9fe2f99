//! What other machines plan and start. What they say of an action is not believed: this host starts what it planned itself, under
//! the effect that it found. Read [`Desk::start`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Action, Content, Effect, Failure, FailureKind, Object, Progress, ToolDefinition};
use protocol::{Raw, RunEnd};
use zenoh::query::Query;

use engine::{CallEnd, CallRequest, Defaults, Lease, NoAnswer, Plan, ProgressSink, Toolbox as _};

use super::action::{Coming, RemoteActions, end_of};
use super::content;
use super::desk::{Desk, call_id, read, text};
use crate::clock;
use crate::messages::{Right, RunUpdate, StartAsk};
use crate::peers::Role;

/// The longest arguments that are remembered with their plan, in bytes: what a machine asks for takes little memory here.
const SHORT: usize = 4096;

/// Who starts something, and how it is answered.
struct Starter {
    peer: String,
    role: Role,
    right: Right,
    received: Instant,
    query: Query,
}

impl Desk {
    /// A tool that this host offers.
    pub(super) fn known(&self, toolbox: &str, tool: &str) -> Result<ToolDefinition, Failure> {
        self.toolboxes.tool(toolbox, tool).ok_or_else(|| {
            let name = &self.identity.name;
            let text = format!("host `{name}` does not offer `{tool}` of toolbox `{toolbox}`");
            Failure::new(FailureKind::PermissionError, text)
        })
    }

    /// Whether this machine's own policy lets another one do this; it decides beside that of the service which asks.
    pub(super) fn permit(
        &self,
        peer: &str,
        of: (&str, &str),
        effect: Effect,
        takes: &[String],
    ) -> Result<(), Failure> {
        match self.toolboxes.refusal(peer, of, effect, takes) {
            None => Ok(()),
            Some(why) => {
                let text = format!("host `{}` refuses it: {why}", self.identity.name);
                Err(Failure::new(FailureKind::PermissionError, text))
            }
        }
    }

    /// Plans a call, and remembers its steps: they alone may be started.
    pub(super) async fn plan(
        &self,
        peer: &str,
        toolbox: &str,
        tool: &str,
        args: &Raw<Object>,
    ) -> Result<Option<ovos_toolbox_wire::Plan>, Failure> {
        let known = self.known(toolbox, tool)?;
        let is_short = args.text().len() <= SHORT;
        let args = read(args)?;
        let (copy, lease) = self.lease(toolbox)?;
        let plan = copy.toolbox.plan(tool, &args).await;
        let Some(plan) = plan.map_err(NoAnswer::into_failure)? else {
            // Others are planned once more when they start.
            if is_short {
                let mut planned = self.planned.lock();
                planned.keep_whole((peer, toolbox, tool), args);
            }
            return Ok(None);
        };
        let checked = checked(plan.actions.clone(), &known, Duration::ZERO, &lease)?;
        self.permit(peer, (toolbox, tool), known.effect, &checked.claim().to_vec())?;
        self.planned.lock().keep(peer, toolbox, tool, &checked);
        Ok(Some(plan))
    }

    fn lease(&self, toolbox: &str) -> Result<(Arc<RemoteActions>, Lease), Failure> {
        let (copy, generation) = self.toolboxes.serving(toolbox)?;
        let lease = self.toolboxes.engine.lease(toolbox, generation).ok_or_else(|| {
            let text = format!("toolbox `{toolbox}` is being replaced");
            Failure::new(FailureKind::ToolboxUnavailable, text)
        })?;
        Ok((copy, lease))
    }

    pub(super) fn start(self: &Arc<Self>, peer: &str, role: Role, right: Right, ask: StartAsk, query: Query) {
        let starter = Starter {
            peer: peer.to_owned(),
            role,
            right,
            received: Instant::now(),
            query,
        };
        // Checked here, in the order of arrival, and again once the call can be ended.
        let checked = self.check(&starter, &ask);
        let this = self.clone();
        self.spawn(async move {
            let ended = match checked {
                Err(failure) => Err(failure),
                Ok(known) => this.run(&starter, &known, ask).await,
            };
            let (end, content) =
                ended.unwrap_or_else(|failure| (RunEnd::Error(Raw::of(&failure)), Vec::new()));
            this.send(&starter.peer, &starter.query, &RunUpdate::Ended { end, content });
        });
    }

    /// Whether a start may begin; its tool, as this host knows it.
    fn check(&self, starter: &Starter, ask: &StartAsk) -> Result<ToolDefinition, Failure> {
        let permission = |text: String| Err(Failure::new(FailureKind::PermissionError, text));
        let (name, toolbox, peer) = (&self.identity.name, &ask.toolbox, &starter.peer);
        let tool = &ask.start.call.tool;
        let known = self.known(toolbox, tool)?;
        if matches!(known.effect, Effect::Stop | Effect::Resume) {
            return permission(format!(
                "`{tool}` stops or resumes: send a stop or a resume to host `{name}` instead"
            ));
        }
        if let Some(closed) = self.toolboxes.closed(known.effect) {
            return permission(format!("host `{name}` {closed}"));
        }
        self.permit(peer, (toolbox, tool), known.effect, &ask.start.action.subsystems)?;
        let now = clock::now_ms();
        if known.effect != Effect::Read {
            if !Right::Command.is_of(starter.role) {
                return permission(format!("`{peer}` may only read on host `{name}`"));
            }
            let leases = self.leases.lock();
            if starter.right != Right::Command || !leases.holds(toolbox, &ask.mount, peer, now) {
                let other = leases.commander(toolbox).filter(|other| *other != peer);
                let text = match other {
                    Some(other) => format!(
                        "`{other}` commands `{toolbox}` of host `{name}` now; others may read and stop"
                    ),
                    None => {
                        format!("`{peer}` has lost the lease of `{toolbox}` on host `{name}`: call again")
                    }
                };
                return Err(Failure::new(FailureKind::BusyError, text));
            }
        }
        // Nothing of such a call goes on while the toolbox is latched, whatever the effect of this step.
        if matches!(known.effect, Effect::Motion | Effect::Write)
            && let Some(stop) = self.held_by(toolbox)
        {
            let text = format!(
                "toolbox `{toolbox}` of host `{name}` is in emergency stop {} ({})",
                stop.stop_id, stop.reason
            );
            return Err(Failure::new(FailureKind::EmergencyStop, text));
        }
        let epoch = self.toolboxes.engine.stop_epoch(toolbox);
        if ask.boot != self.boot || ask.epoch != epoch {
            return Err(Failure::new(
                FailureKind::EmergencyStop,
                format!("host `{name}` was stopped or restarted after this call was planned: call again"),
            ));
        }
        if now > ask.until {
            return Err(Failure::new(
                FailureKind::TimeoutError,
                format!(
                    "the call reached host `{name}` {} ms too late and was not started: call again",
                    now - ask.until
                ),
            ));
        }
        Ok(known)
    }

    async fn run(
        self: &Arc<Self>,
        starter: &Starter,
        known: &ToolDefinition,
        ask: StartAsk,
    ) -> Result<(RunEnd, Vec<Content>), Failure> {
        let Starter {
            peer, role, query, ..
        } = starter;
        let (copy, lease) = self.lease(&ask.toolbox)?;
        self.check_step(peer, known, &copy, &ask).await?;
        let (call, action) = (&ask.start.call, &ask.start.action);
        let (effect, limit) = (action.effect, Duration::from_millis(call.deadline_ms));
        let step = Action {
            id: Some(action.id.clone()),
            name: action.name.clone(),
            subsystems: action.subsystems.clone(),
            params: action.params.clone(),
            dependencies: Vec::new(),
            timeout_ms: Some(call.deadline_ms),
            effect: Some(effect),
        };
        let plan = checked(vec![step], known, limit, &lease)?;
        let request = CallRequest {
            call_id: call_id(peer, &ask.mount, ask.run),
            toolbox_id: ask.toolbox.clone(),
            generation: lease.generation(),
            tool: call.tool.clone(),
            effect,
            action_timeout: Some(limit),
            args: Object::new(),
            session_id: call.session_id.clone(),
            lang: call.lang.clone(),
            source: call.source.clone(),
            operator: call.operator && *role >= Role::Operator,
            content: call.content_dir.is_some(),
            received: starter.received,
            timeout: None,
            facts: None,
        };
        let entry = match self.toolboxes.engine.enter(&request) {
            Ok(entry) => entry,
            Err(refusal) => return Ok((end_of(CallEnd::Refused(refusal)).0, Vec::new())),
        };
        // From here on a stop, a cancel or the loss of the lease finds the call; what came before is seen now.
        self.check(starter, &ask)?;
        if self.cancelled.lock().has(peer, &request.call_id) {
            let text = format!(
                "host `{}` was asked to end it before it began",
                self.identity.name
            );
            return Err(Failure::new(FailureKind::CancelledError, text));
        }
        let call_id = request.call_id.clone();
        copy.expect(
            &call_id,
            Coming {
                inputs: ask.start.inputs,
                progress: ask.progress.then(|| self.progress(peer, query)),
            },
        );
        let engine = &self.toolboxes.engine;
        let ended = engine.call_at(entry, &lease, request, Some(plan)).await;
        copy.forget(&call_id);
        let (end, content) = end_of(ended);
        if content.is_empty() {
            return Ok((end, Vec::new()));
        }
        let folder = self.toolboxes.content.join(&ask.toolbox);
        let carried = tokio::task::spawn_blocking(move || content::carried(content, &folder)).await;
        Ok((end, carried.unwrap_or_default()))
    }

    /// Whether this host planned such a step, or the toolbox does not plan the tool: then the tool itself is the only step.
    async fn check_step(
        &self,
        peer: &str,
        known: &ToolDefinition,
        copy: &RemoteActions,
        ask: &StartAsk,
    ) -> Result<(), Failure> {
        let (toolbox, tool, action) = (&ask.toolbox, &known.name, &ask.start.action);
        let planned = self.planned.lock().has(
            (peer, toolbox, tool),
            &action.name,
            action.effect,
            &action.subsystems,
        );
        if planned {
            return Ok(());
        }
        let moves = matches!(known.effect, Effect::Motion | Effect::Safe);
        let takes_all = action.subsystems.iter().any(|name| name == "all");
        let is_whole = action.name == *tool && action.effect == known.effect && (takes_all || !moves);
        if is_whole {
            let of = (peer, toolbox.as_str(), tool.as_str());
            if self.planned.lock().take_whole(of, &action.params) {
                return Ok(());
            }
            let plan = copy.toolbox.plan(tool, &action.params).await;
            if plan.map_err(NoAnswer::into_failure)?.is_none() {
                return Ok(());
            }
        }
        let text = format!(
            "host `{}` has not planned the step `{}` of effect {} for `{tool}` of toolbox `{toolbox}`; plan the call again",
            self.identity.name, action.name, action.effect
        );
        Err(Failure::new(FailureKind::PermissionError, text))
    }

    fn progress(&self, peer: &str, query: &Query) -> ProgressSink {
        let (peer, query) = (peer.to_owned(), query.clone());
        let replies = self.replies.clone();
        Arc::new(move |progress: Progress| {
            replies.send(&peer, &query, text(&RunUpdate::Progress(progress)));
        })
    }
}

/// A plan for a tool of this host: no step does more than the tool may, and none is a tool that the configuration forbids.
fn checked(
    actions: Vec<Action>,
    known: &ToolDefinition,
    timeout: Duration,
    lease: &Lease,
) -> Result<Plan, Failure> {
    let effect = known.effect;
    let plan = Plan::new(actions, Defaults { effect, timeout });
    let plan = plan.and_then(|plan| lease.check_steps(&plan).map(|()| plan));
    plan.map_err(|why| Failure::new(FailureKind::PlanError, why.to_string()))
}
