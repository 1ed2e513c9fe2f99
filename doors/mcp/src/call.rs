//! One call of a tool: from the client's request to its answer.

use std::pin::pin;
use std::time::Duration;

use client::payload::{CallOptions, Confirm, ContentMode, InvokeRequest};
use client::{Call, ClientError, Patience, Received, Step};
use ovos_toolbox_wire::{Effect, Object};
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::content;
use crate::door::Door;
use crate::listing::Registered;
use crate::presence::farewell;
use crate::progress::Progress;

/// How often a cancel is sent until the call has ended: the first one may come before the service knows the call.
const CANCEL_EVERY: Duration = Duration::from_millis(250);

/// How often the service is told that the door is there while something moves; after a second without it ends the call.
const BEAT_EVERY: Duration = Duration::from_millis(250);

/// How long a cancelled call is waited for: what moves comes to rest first.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// Arguments that some hosts add to every call. A tool gets them only where its schema has them.
const OF_HOSTS: [&str; 5] = ["_meta", "action", "chatInput", "sessionId", "toolCallId"];

/// What the client's user said about a call, with the token that the question was asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing yet.
    Nothing,
    /// It may run.
    Yes(String),
    /// It may not.
    No(String),
}

/// What a call came to.
pub(crate) enum Came {
    /// It was answered.
    Answered(CallToolResult),
    /// It did not run: a person has to confirm it.
    Waits(Confirm),
}

/// Calls a tool of a toolbox. Always comes to something.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn call(
    door: &Door,
    tool: &Registered,
    args: Object,
    said: Said,
    context: &RequestContext<RoleServer>,
    session: &CancellationToken,
) -> Came {
    let call_id = own_id();
    let token = context.meta.get_progress_token();
    let (confirm, decline) = match said {
        Said::Nothing => (None, None),
        Said::Yes(token) => (Some(token), None),
        Said::No(token) => (None, Some(token)),
    };
    let request = InvokeRequest {
        name: tool.name.clone(),
        args: without_hosts(args, tool),
        toolbox_id: Some(tool.toolbox_id.clone()),
        options: CallOptions {
            call_id: Some(call_id.clone()),
            timeout_ms: None,
            progress: token.is_some(),
            detail: true,
            confirm,
            decline,
            content: Some(ContentMode::Path),
        },
    };
    let send = |patience| door.client.invoke(request, patience);
    let answer = match carried(door, tool, &call_id, send, context, session).await {
        Ok(answer) => answer,
        Err(failed) => return Came::Answered(failed),
    };
    if let Some(confirm) = answer::confirm(&answer) {
        return Came::Waits(confirm);
    }
    let mut result = answer::of(tool, &answer);
    result
        .content
        .extend(content::blocks(&door.content, &answer.data).await);
    Came::Answered(result)
}

/// An id that no other call has.
pub(crate) fn own_id() -> String {
    format!("mcp-{}", uuid::Uuid::new_v4())
}

/// Sends a call or a run and carries it to its answer: tells its progress, and ends it where its client goes away.
///
/// # Errors
/// What its client gets where there is no answer.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn carried<A>(
    door: &Door,
    tool: &Registered,
    call_id: &str,
    send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
    context: &RequestContext<RoleServer>,
    session: &CancellationToken,
) -> Result<Received<A>, CallToolResult> {
    let token = context.meta.get_progress_token();
    tracing::debug!(call_id, tool = tool.name, "call");
    let mut running = door.calls.enter(&door.client, call_id, &tool.name);
    let moves = tool.effect == Effect::Motion;
    let mut beat = interval(BEAT_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if moves {
        // Before the call, so that the service knows whose it is.
        beat.tick().await;
        _ = door.client.beat();
    }
    let mut call = match send(Patience::WhileItRuns) {
        Ok(call) => call,
        Err(error) => {
            running.answered();
            return Err(answer::refused(tool, &error));
        }
    };
    let mut progress = token.map(|token| Progress::new(context.peer.clone(), token));
    let mut leaving = pin!(farewell(context, session, &door.shutdown, tool.effect));
    let mut left = None;
    let mut again = interval_at(Instant::now() + CANCEL_EVERY, CANCEL_EVERY);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut given_up = pin!(sleep(CANCEL_WAIT));
    loop {
        let told = async {
            match &mut progress {
                Some(progress) => progress.drive().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = beat.tick(), if moves => {
                // Where the bus is away, the service ends what moves by itself.
                _ = door.client.beat();
            }
            farewell = &mut leaving, if left.is_none() => {
                tracing::info!(call_id, tool = tool.name, reason = farewell.reason(), "cancelling a call");
                left = Some(farewell);
                given_up.as_mut().reset(Instant::now() + CANCEL_WAIT);
                // Nothing more to tell to a client that has left.
                progress = None;
                _ = running.cancel();
            }
            step = call.next() => match step {
                Ok(Step::Progress(step)) => {
                    if let (Some(progress), Ok(step)) = (&mut progress, step.read()) {
                        progress.note(&step);
                    }
                }
                Ok(Step::Answer(answer)) => {
                    running.answered();
                    if let Some(progress) = progress {
                        progress.finish().await;
                    }
                    return Ok(answer);
                }
                Err(error) => {
                    tracing::warn!(call_id, tool = tool.name, %error, "a call got no answer");
                    return Err(answer::refused(tool, &error));
                }
            },
            _ = again.tick(), if left.is_some() => {
                _ = running.cancel();
            }
            () = &mut given_up, if left.is_some() => {
                let why = left.map_or("", |farewell| farewell.reason());
                tracing::warn!(call_id, tool = tool.name, "a cancelled call did not end within {CANCEL_WAIT:?}");
                return Err(answer::cancelled(tool, why));
            }
            () = told => {}
        }
    }
}

fn without_hosts(mut args: Object, tool: &Registered) -> Object {
    let has = |name: &str| {
        let properties = tool.arguments.get("properties");
        properties.is_some_and(|properties| properties.get(name).is_some())
    };
    for name in OF_HOSTS {
        if !has(name) {
            args.shift_remove(name);
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ovos_toolbox_wire::Effect;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_hosts_add_reaches_no_tool_that_does_not_have_it() {
        let object = |value: Value| match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        };
        let tool = Registered {
            toolbox_id: "arm".to_owned(),
            name: "wave".to_owned(),
            effect: Effect::Motion,
            arguments: Arc::new(object(json!({"properties": {"action": {"type": "string"}}}))),
        };
        let args = object(json!({"sessionId": "x", "action": "lift", "toolCallId": 1, "typo": 2}));
        let kept = without_hosts(args, &tool);
        assert_eq!(Value::Object(kept), json!({"action": "lift", "typo": 2}));
    }
}
