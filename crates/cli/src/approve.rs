//! `ovos-tools approve` and `deny`: shows, approves and refuses calls, through the control socket of the service.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::control;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, plain};
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
    /// The call, as it is shown without an id
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
    /// The call, as `ovos-tools approve` shows it
    id: String,
}

pub(super) fn approve(arguments: &Approve, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    match &arguments.id {
        Some(id) => send_and_print(&ControlRequest::Approve { id: id.clone() }, "approved", context),
        None => send_and_print(&ControlRequest::Waiting {}, "waits", context),
    }
}

pub(super) fn deny(arguments: &Deny, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let id = arguments.id.clone();
    send_and_print(&ControlRequest::Deny { id }, "denied", context)
}

fn send_and_print(
    request: &ControlRequest,
    done: &str,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let (answer, data) = control::send(request, context)?;
    let calls = data.waiting.unwrap_or_default();
    context.output.result(&answer, |paint| match &data.error {
        Some(_) => String::new(),
        None => render(&calls, done, paint),
    })?;
    match data.error {
        Some(error) => Err(CliError::Refused(error)),
        None => Ok(()),
    }
}

fn render(calls: &[WaitingCall], done: &str, paint: Paint) -> String {
    if calls.is_empty() {
        return "no calls are waiting for approval\n".to_owned();
    }
    let mut text = String::new();
    for call in calls {
        let state = match done {
            "waits" if call.approved => "approved",
            "waits" if call.refused => "refused",
            done => done,
        };
        let left = call.expires_ms.div_ceil(1000);
        let expires = if state == "denied" {
            String::new()
        } else {
            format!(", {left} s left")
        };
        text += &format!(
            "{} {state}{expires}: {} asks for {}\n",
            paint.tone(Tone::Strong, &call.id),
            plain(&call.principal),
            plain(&call.text)
        );
        if done == "waits" && !call.refused {
            text += &plan(&call.plan, paint);
        }
    }
    text
}

/// Returns a line for each action.
fn plan(plan: &Value, paint: Paint) -> String {
    let waves: Vec<Vec<PlannedActionEntry>> = serde_json::from_value(plan.clone()).unwrap_or_default();
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
