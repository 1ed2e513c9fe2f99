//! Decides whether a call may run: asks the policy, and checks whether the call was confirmed.

use std::time::Instant;

use ovos_toolbox_wire::{Effect, FailureKind};

use super::actions::{describe_for_person, everything, for_people};
use super::error::WireError;
use super::request::Request;
use super::sentence::sentence;
use super::state::Api;
use super::stop::EVERYTHING;
use crate::policy::{
    Answer, Asker, By, CallDescription, Decide, Decision, Hold, Principal, Question, Subject,
};
use crate::registry::Tool;
use client::payload::{CallOptions, Confirm};
use engine::{CallFacts, Lease, Plan, Refusal};

/// The number of actions that the text of a plan names.
const ACTIONS: usize = 8;

/// Why a call does not run.
pub(super) enum Denial {
    /// The policy denies the call, or it has to be confirmed; the error is the answer.
    Answer(WireError),
    /// The engine refuses the call, for example because it has no plan.
    Engine(Refusal),
}

impl Api {
    /// Decides whether a call may run now. A call that has to be confirmed is planned, so that the question can say
    /// what the call would do. The plan that was approved is returned, and no other plan may run.
    ///
    /// # Errors
    /// The call may not run, or has to be confirmed first; or it has no plan.
    ///
    /// # Cancel safety
    /// Safe: when a confirmation is used up, this returns without a further await.
    pub(super) async fn permit(
        &self,
        request: &Request,
        tool: &Tool,
        lease: &Lease,
        run: &engine::CallRequest,
        options: &CallOptions,
        call: &CallFacts,
    ) -> Result<Option<Plan>, Denial> {
        if let Some(why) = self.toolboxes.closed(&tool.toolbox_id, tool.effect()) {
            let text = format!("'{}' was not run: {why}", tool.name());
            return Err(Denial::Answer(WireError::new(FailureKind::PermissionError, text)));
        }
        let asker = asker(request).map_err(Denial::Answer)?;
        let policy = &self.settings.policy;
        let subject = || {
            Subject::new(
                asker.clone(),
                request.head.session_id(),
                (&tool.toolbox_id, tool.name()),
                &run.args,
                (lease.generation(), lease.stop_epoch()),
            )
        };
        if let Some(token) = &options.decline {
            return Err(Denial::Answer(self.declined(&subject(), token)));
        }
        let on = |simulated| policy.decide(&asker, |principal| question(principal, tool, simulated));
        let mut plan = None;
        let mut decision = on(false);
        let on_simulator = on(true);
        if decision != on_simulator {
            let backends = self.toolboxes.backends(&tool.toolbox_id, lease.generation());
            let simulated = match backends.of_every_call() {
                Some(simulated) => simulated,
                // Both rules decide alike and differ only in their names, so no plan is needed. A safe tool, which is
                // never confirmed, waits for a plan only if exactly one of the rules denies it.
                None if decision.0.decide == on_simulator.0.decide => false,
                None => {
                    let new_plan = self.engine.plan(lease, run).await.map_err(Denial::Engine)?;
                    let simulated = backends.simulates(&new_plan.claim().to_vec());
                    plan = Some(new_plan);
                    simulated
                }
            };
            if simulated {
                decision = on_simulator;
            }
        }
        let (decision, principal) = decision;
        call.decided(&asker, decision.decide.as_str(), &decision.rule);
        match decision.decide {
            Decide::Allow => return Ok(plan),
            Decide::Deny => {
                let refused = not_permitted(tool.name(), &tool.toolbox_id, principal, &decision);
                return Err(Denial::Answer(refused));
            }
            Decide::Confirm => {}
        }
        // No confirmation is asked for a call that cannot run anyway.
        if matches!(tool.effect(), Effect::Write | Effect::Motion)
            && let Some(stop) = self.engine.latch(&tool.toolbox_id)
        {
            let toolbox_id = tool.toolbox_id.clone();
            return Err(Denial::Engine(Refusal::Latched { toolbox_id, stop }));
        }
        let plan = match plan {
            Some(plan) => plan,
            None => self.engine.plan(lease, run).await.map_err(Denial::Engine)?,
        };
        // This awaits nothing, so that a call which is cancelled or times out uses up no confirmation. The latch
        // refuses the call if a stop comes after this.
        let sentence = sentence(
            &plan.sentences,
            run.lang.as_deref(),
            (tool.name(), &tool.toolbox_id),
            &run.args,
        );
        let note = self.toolboxes.note(tool);
        self.confirmed(&subject(), (sentence, note), &plan, options, call)
            .map_err(Denial::Answer)?;
        Ok(Some(plan))
    }

    fn confirmed(
        &self,
        subject: &Subject,
        ((sentence, lang), note): ((String, String), Option<String>),
        plan: &Plan,
        options: &CallOptions,
        call: &CallFacts,
    ) -> Result<(), WireError> {
        // Made before the lock is taken, because a plan can be large.
        let description = CallDescription::new(sentence, lang, for_people(plan), &everything(plan));
        let now = Instant::now();
        let mut confirmations = self.settings.policy.confirmations();
        let answer = confirmations.ask(subject, options.confirm.as_deref(), description, now);
        drop(confirmations);
        let (principal, tool) = (subject.asker(), subject.tool());
        match answer {
            Answer::Confirmed(by) => {
                let by = match by {
                    By::Caller => "caller",
                    By::Operator => "operator",
                };
                call.confirmed(principal, by);
                Ok(())
            }
            Answer::Waits(waiting) => {
                tracing::info!(id = waiting.id, toolbox = subject.toolbox_id(), tool, %principal, "call is waiting for approval");
                let left = waiting.until.saturating_duration_since(now);
                Err(WireError::to_confirm(Confirm {
                    id: waiting.id,
                    token: waiting.token,
                    text: waiting.description.text,
                    lang: waiting.description.lang,
                    plan: text(plan),
                    note,
                    expires_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
                }))
            }
            Answer::Refused(refusal) => Err(refused(tool, refusal)),
            Answer::Full(of_one) => Err(WireError::new(
                FailureKind::BusyError,
                format!(
                    "too many calls are waiting for approval, {of_one} of them from {principal}: approve or deny some, or wait \
                     until they expire"
                ),
            )),
        }
    }

    /// The answer to a call that its caller declines. The call does not run in any case.
    fn declined(&self, subject: &Subject, token: &str) -> WireError {
        let mut confirmations = self.settings.policy.confirmations();
        let declined = confirmations.decline(subject, token, Instant::now());
        drop(confirmations);
        let tool = subject.tool();
        match declined {
            Ok(refusal) => refused(tool, refusal),
            Err(gone) => WireError::new(
                FailureKind::PermissionError,
                format!("'{tool}' was denied and not run; {gone}"),
            ),
        }
    }

    /// Decides whether this client may lift a stop, asked as the call of `tool`. The decision is about everything that the stop holds,
    /// because what holds a simulator may hold a machine, too.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(super) fn permit_resume(
        &self,
        request: &Request,
        toolbox_id: &str,
        stop_id: Option<&str>,
        tool: &str,
    ) -> Result<(), WireError> {
        let asker = asker(request)?;
        let mut held = self.engine.latched();
        held.retain(|_, stop| stop_id == Some(stop.stop_id.as_str()));
        let held = held.into_keys().map(|id| {
            let simulated = self.is_simulated(&id);
            (id, simulated)
        });
        let mut held: Vec<(String, bool)> = held.collect();
        if held.is_empty() {
            // Nothing can be lifted: the answer says so to those who may resume at all.
            held.push((toolbox_id.to_owned(), true));
        }
        for (id, simulated) in &held {
            let simulated = *simulated;
            let (decision, principal) = self.settings.policy.decide(&asker, |principal| Question {
                principal,
                toolbox_id: id,
                tool,
                effect: Effect::Resume,
                simulated,
            });
            if decision.decide != Decide::Allow {
                return Err(not_permitted(tool, id, principal, &decision));
            }
        }
        Ok(())
    }

    /// Whether nothing of a toolbox is hardware: all of it is simulated, or it only reads. `all` is every known toolbox.
    fn is_simulated(&self, toolbox_id: &str) -> bool {
        let snapshot = self.registry.snapshot();
        if toolbox_id == EVERYTHING {
            return snapshot.known_ids().all(|id| self.is_simulated(id));
        }
        snapshot.toolbox(toolbox_id).is_some_and(|toolbox| {
            let tools: Vec<_> = toolbox.tools.iter().chain(&toolbox.yielded).collect();
            let only_reads = !tools.is_empty() && tools.iter().all(|tool| tool.effect() == Effect::Read);
            let backends = self.toolboxes.backends(toolbox_id, toolbox.generation);
            only_reads || backends.of_every_call() == Some(true)
        })
    }
}

/// Returns who makes a request, and for whom.
fn asker(request: &Request) -> Result<Asker, WireError> {
    Asker::of(&request.head.context).map_err(|unclear| WireError::new(FailureKind::ValueError, unclear))
}

fn question<'a>(principal: &'a Principal, tool: &'a Tool, simulated: bool) -> Question<'a> {
    Question {
        principal,
        toolbox_id: &tool.toolbox_id,
        tool: tool.name(),
        effect: tool.effect(),
        simulated,
    }
}

fn refused(tool: &str, refusal: Hold) -> WireError {
    let minutes = refusal.left.as_secs().div_ceil(60);
    let text = if refusal.whole_tool {
        format!(
            "'{tool}' was denied three times in a row: all calls of it stay denied for another {minutes} min; \
             `ovos-tools approve` lists them, and lifts this"
        )
    } else {
        format!(
            "this call of '{tool}' was denied and stays denied for another {minutes} min; `ovos-tools approve` lists it, and lifts this"
        )
    };
    WireError::new(FailureKind::PermissionError, text)
}

fn not_permitted(tool: &str, toolbox_id: &str, principal: &Principal, decision: &Decision) -> WireError {
    let reason = decision.reason.as_deref().map(|reason| format!(": {reason}"));
    WireError::new(
        FailureKind::PermissionError,
        format!(
            "{principal} may not call '{tool}' of toolbox '{toolbox_id}' ({}){}",
            decision.rule,
            reason.unwrap_or_default()
        ),
    )
}

/// The actions of a plan in one line. Text that a model wrote into the arguments appears only as quoted parameters.
fn text(plan: &Plan) -> String {
    let actions = plan.waves.iter().flatten().take(ACTIONS);
    let actions: Vec<String> = actions
        .map(|&index| describe_for_person(&plan.actions[index]))
        .collect();
    let count = plan.actions.len();
    let more = match count.saturating_sub(ACTIONS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        "{}{more} ({count} {}, at most {} s)",
        actions.join("; "),
        if count == 1 { "action" } else { "actions" },
        plan.bound().as_secs_f64().ceil()
    )
}
