//! `ovos-tools approve` and `deny`: shows, approves and refuses calls, through the control socket of the service.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, plain};
use client::control::{self, ControlError};
use client::payload::{ControlRequest, PlannedActionEntry, WaitingCall};

/// Arguments of `approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools approve             list waiting and denied calls, with their plans
  ovos-tools approve 3fa20c      let the call run when it is made again within a minute

Calls wait where service.policy or a built-in rule says `confirm` (see `ovos-tools config`). An approval is for one run of \
exactly the call that is shown, and lifts an earlier denial of it. It goes through the control socket of the service on this \
machine, not over the bus.")]
pub struct Approve {
    /// Id of the call, as `ovos-tools approve` alone lists it
    id: Option<String>,
}

/// Arguments of `deny`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools deny 3fa20c

The same call stays denied for ten minutes; after three denials in a row, so does every call of the tool. `ovos-tools approve` \
with the id of a denied call lifts that.")]
pub struct Deny {
    /// Id of the call, as `ovos-tools approve` lists it
    id: String,
}

/// What a person has decided about a call.
#[derive(Clone, Copy)]
enum Decision {
    Approved,
    Denied,
}

pub(super) async fn approve(arguments: &Approve, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let (request, done) = match &arguments.id {
        Some(id) => (
            ControlRequest::Approve { id: id.clone() },
            Some(Decision::Approved),
        ),
        None => (ControlRequest::Waiting {}, None),
    };
    send_and_print(&request, done, context).await
}

pub(super) async fn deny(arguments: &Deny, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let id = arguments.id.clone();
    send_and_print(&ControlRequest::Deny { id }, Some(Decision::Denied), context).await
}

/// `done` is what became of the call that the request names; `None` where it asks for all.
async fn send_and_print(
    request: &ControlRequest,
    done: Option<Decision>,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let path = context.config()?.control_socket();
    let asked = control::ask(&path, request, context.wait()).await;
    let (answer, data) = asked.map_err(|error| match error {
        ControlError::NotReached(cause) => CliError::Machine {
            what: format!(
                "reach the service on this machine through {} (is `ovos-tools serve` running as this user?)",
                path.display()
            ),
            cause,
        },
        ControlError::NoAnswer(cause) => CliError::Unconfirmed(format!(
            "the service gave no answer that can be read on {}: {cause}; `ovos-tools approve` shows what waits",
            path.display()
        )),
    })?;
    let result = match (data.error, data.waiting) {
        (Some(error), _) => Err(CliError::Refused(error)),
        (None, Some(calls)) => Ok(calls),
        (None, None) => Err(CliError::Unconfirmed(
            "the service's answer names no calls; see it with --json".to_owned(),
        )),
    };
    context.output.result(&answer, |paint| match &result {
        Ok(calls) => render(calls, done, paint),
        Err(_) => String::new(),
    })?;
    result.map(|_| ())
}

fn render(calls: &[WaitingCall], done: Option<Decision>, paint: Paint) -> String {
    if calls.is_empty() {
        return "no calls are waiting for approval\n".to_owned();
    }
    let mut text = String::new();
    for call in calls {
        let left = call.expires_ms.div_ceil(1000);
        let state = match done {
            Some(Decision::Denied) => "denied".to_owned(),
            Some(Decision::Approved) => format!("approved, {left} s left"),
            None if call.approved => format!("approved, {left} s left"),
            None if call.refused => format!("denied for {left} s more"),
            None => format!("waits, {left} s left"),
        };
        text += &format!(
            "{} {state}, from {}: {}\n",
            paint.tone(Tone::Strong, &call.id),
            plain(&call.principal),
            plain(&call.text)
        );
        if done.is_none() && !call.refused {
            text += &plan(&call.plan, paint);
        }
    }
    text
}

/// Returns a line for each action. A plan that cannot be shown must not look like one that does nothing.
fn plan(plan: &Value, paint: Paint) -> String {
    if plan.is_null() {
        return "  its plan is too large to be kept: `ovos-tools plan` shows it\n".to_owned();
    }
    let Ok(waves) = serde_json::from_value::<Vec<Vec<PlannedActionEntry>>>(plan.clone()) else {
        return format!("  {}\n", plain(&plan.to_string()));
    };
    let rows = (1..).zip(waves).flat_map(|(wave, actions)| {
        actions.into_iter().map(move |action| -> Vec<Cell> {
            vec![
                format!("  {wave}").into(),
                action.name.into(),
                action.effect.as_str().into(),
                action.subsystems.join(", ").into(),
                Value::Object(action.params).to_string().into(),
            ]
        })
    });
    paint.table(&["  WAVE", "ACTION", "EFFECT", "SUBSYSTEMS", "PARAMETERS"], rows)
}
