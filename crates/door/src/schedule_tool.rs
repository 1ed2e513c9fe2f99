//! The tools with which a model asks for calls later. The schedule door answers them, and keeps the limits.

use std::time::Duration;

use client::{Client, ClientError, topic};
use ovos_toolbox_wire::{Effect, FailureKind, Object};
use serde_json::{Value, json};

use crate::own_tool::arguments;
use crate::{Answer, Listing, OwnTool};

/// How long the schedule door may take.
const WAIT: Duration = Duration::from_secs(8);

/// One of these tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleTool {
    /// Asks for a call later.
    Add,
    /// Names the schedules.
    List,
    /// Removes a schedule.
    Cancel,
}

impl OwnTool for ScheduleTool {
    const ALL: &'static [Self] = &[Self::Add, Self::List, Self::Cancel];

    fn name(self) -> &'static str {
        match self {
            Self::Add => "schedule_call",
            Self::List => "list_schedules",
            Self::Cancel => "cancel_schedule",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Add => {
                "Call a tool of this list later: once (in_seconds or at), again and again (every_seconds, from 60) or by cron. \
                 What moves a machine may have to be approved then."
            }
            Self::List => "List your schedules.",
            Self::Cancel => "Cancel a schedule.",
        }
    }

    fn effect(self) -> Effect {
        match self {
            Self::Add => Effect::Motion,
            Self::List => Effect::Read,
            Self::Cancel => Effect::Safe,
        }
    }

    fn arguments(self) -> Object {
        match self {
            Self::Add => arguments(
                json!({
                    "name": {"type": "string", "description": "The tool."},
                    "arguments": {"type": "object", "additionalProperties": true},
                    "in_seconds": {"type": "number", "minimum": 0},
                    "at": {"type": "string", "description": "Such as 2026-12-24T18:00:00+01:00."},
                    "every_seconds": {"type": "number", "minimum": 60},
                    "cron": {"type": "string", "description": "Five fields, local time: 30 7 * * MON-FRI."},
                    "times": {"type": "integer", "minimum": 1},
                }),
                &["name"],
            ),
            Self::List => arguments(json!({}), &[]),
            Self::Cancel => arguments(json!({"schedule_id": {"type": "string"}}), &["schedule_id"]),
        }
    }
}

impl ScheduleTool {
    /// Asks the schedule door, for a tool of this list.
    ///
    /// # Cancel safety
    /// If dropped, what was asked for may be done.
    pub async fn ask(self, client: &Client, listing: &Listing, arguments: &Object) -> Answer {
        let request = match self.request(listing, arguments) {
            Ok(request) => request,
            Err(why) => return refused(&format!("{}: {why}", FailureKind::ValueError)),
        };
        let topic = match self {
            Self::Add => topic::SCHEDULE,
            Self::List => topic::SCHEDULE_LIST,
            Self::Cancel => topic::SCHEDULE_CANCEL,
        };
        match client.ask(topic, &request, WAIT).await {
            Ok(answer) => match answer.data.get("error").and_then(Value::as_str) {
                Some(error) => refused(error),
                None => {
                    let data = Value::Object(answer.data);
                    Answer::success(&data.to_string(), data)
                }
            },
            Err(ClientError::NoAnswer { .. }) => refused(
                "NoAnswer: nothing is scheduled, because the schedule door does not run: tell the user to run `ovos-tools enable \
                 schedule` and to restart the service",
            ),
            Err(error) => refused(&format!("NoAnswer: {error}")),
        }
    }

    fn request(self, listing: &Listing, arguments: &Object) -> Result<Value, String> {
        if self != Self::Add {
            return Ok(Value::Object(arguments.clone()));
        }
        let mut request = arguments.clone();
        let name = request.shift_remove("name");
        let name = name
            .as_ref()
            .and_then(Value::as_str)
            .ok_or("expected `name`, a tool of this list")?;
        let tool = listing
            .tool(name)
            .ok_or_else(|| format!("there is no tool '{name:.80}' in this list"))?;
        let args = client::read_arguments(request.shift_remove("arguments").as_ref())
            .map_err(|_| format!("expected `arguments` of {name} to be an object"))?;
        let call = json!({"name": tool.name, "toolbox_id": tool.toolbox_id, "args": args});
        request.insert("call".to_owned(), call);
        Ok(Value::Object(request))
    }
}

fn refused(error: &str) -> Answer {
    let (kind, message) = error
        .split_once(": ")
        .map_or((json!(FailureKind::RuntimeError), error), |(kind, message)| {
            (json!(kind), message)
        });
    Answer::failure(error, json!({"error": {"kind": kind, "message": message}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_said() {
        for (arguments, why) in [
            (json!({}), "expected `name`"),
            (json!({"name": "wave", "in_seconds": 5}), "no tool 'wave'"),
        ] {
            let Value::Object(arguments) = arguments else {
                panic!()
            };
            let refused = ScheduleTool::Add
                .request(&Listing::default(), &arguments)
                .expect_err("refused");
            assert!(refused.contains(why), "{refused}");
        }
        for tool in ScheduleTool::ALL {
            assert_eq!(ScheduleTool::named(tool.name()), Some(*tool));
        }
    }
}
