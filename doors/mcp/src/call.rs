//! One call of a tool: from the client's request to its answer.

use std::future::ready;
use std::pin::pin;

use client::payload::{CallOptions, Confirm, ContentMode, InvokeRequest};
use client::{Call, ClientError, Patience, Received, Step};
use door::{Answer, ListedTool};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Effect, Object};
use rmcp::model::CallToolResult;

use crate::answer;
use crate::call_request::CallRequest;
use crate::content;
use crate::presence::{farewell, is_at_stdio, is_present, moves, remains};
use crate::progress::Progress;
use crate::results::{self, Forms};
use crate::shared::Door;

/// Arguments that some hosts add to every call. A tool gets them only if its schema has them.
const OF_HOSTS: [&str; 5] = ["_meta", "action", "chatInput", "sessionId", "toolCallId"];

/// The decision of the client's user about a call, with the token of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The user has not decided yet.
    Nothing,
    /// The call may run.
    Yes(String),
    /// The call may not run.
    No(String),
}

/// The result of a call.
pub(crate) enum CallResult {
    /// The call was answered.
    Answered(CallToolResult),
    /// The call did not run: a person has to confirm it.
    Waits(Confirm),
}

/// Calls a tool of a toolbox. It always ends with a result.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn call(
    door: &Door,
    tool: &ListedTool,
    args: Object,
    said: Decision,
    call_id: &str,
    asked: &CallRequest,
) -> CallResult {
    let context = &asked.context;
    let token = context.meta.get_progress_token();
    let (confirm, decline) = match said {
        Decision::Nothing => (None, None),
        Decision::Yes(token) => (Some(token), None),
        Decision::No(token) => (None, Some(token)),
    };
    let request = InvokeRequest {
        name: tool.name.clone(),
        args: without_hosts(args, tool),
        toolbox_id: Some(tool.toolbox_id.clone()),
        options: CallOptions {
            call_id: Some(call_id.to_owned()),
            timeout_ms: None,
            progress: token.is_some() || tool.effect != Effect::Read,
            detail: true,
            confirm,
            decline,
            content: Some(ContentMode::Path),
        },
    };
    let send = |patience| asked.client.invoke(request, patience);
    let answer = match carried(door, tool, call_id, send, asked).await {
        Ok(answer) => answer,
        Err(failed) => return CallResult::Answered(failed),
    };
    if let Some(confirm) = door::confirmation_of(&answer) {
        return CallResult::Waits(confirm);
    }
    let mut result = results::result(
        &door.results,
        door.config.result_bytes,
        tool,
        Forms::of(context, door.config.output_schemas && tool.output.is_some()),
        Answer::of(tool, &answer),
    );
    result
        .content
        .extend(content::blocks(&door.content, &answer.data).await);
    CallResult::Answered(result)
}

/// Carries a call or a run to its answer. Reports its progress to the client, and ends the call if the client goes away, or, once
/// the request was answered without the outcome, if its client does not ask for it any more.
///
/// # Errors
/// The result for the client if there is no answer.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn carried<A>(
    door: &Door,
    tool: &ListedTool,
    call_id: &str,
    send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
    asked: &CallRequest,
) -> Result<Received<A>, CallToolResult> {
    let CallRequest {
        context,
        turn,
        gone,
        session_ended,
        call,
        ..
    } = asked;
    let shutdown = &door.link.shutdown;
    let mut leaving = pin!(farewell(context, gone, shutdown, tool.effect));
    let mut left_alone = pin!(remains(
        context,
        [Some(gone), session_ended.as_ref()],
        shutdown,
        tool.effect
    ));
    let _waits = call.waits();
    let started_call = tokio::select! {
        biased;
        farewell = &mut leaving, if tool.effect != Effect::Stop => {
            return Err(answer::result(Answer::cancelled(tool, farewell.reason())));
        }
        // It may wait for its turn, and is not sent then.
        why = call.ends(), if tool.effect != Effect::Stop => {
            return Err(answer::result(Answer::cancelled(tool, why)));
        }
        begun = door.link.carry(turn, tool, call_id, send) => begun,
    };
    let mut moves = moves(context, tool.effect);
    let mut carried = started_call.map_err(|why| answer::result(Answer::not_begun(tool, &why)))?;
    let token = context.meta.get_progress_token();
    let mut progress = token.map(|token| Progress::new(context.peer.clone(), token));
    let (mut left, mut is_asked) = (None, false);
    // The last of the progress, before the handle. A client that reads it slowly can cancel meanwhile.
    let mut last: Option<BoxFuture<'static, ()>> = None;
    let mut present = pin!(async {
        call.leaves().await;
        is_present(context, tool.effect).await
    });
    loop {
        let reports = async {
            match (&mut last, &mut progress) {
                (Some(last), _) => last.await,
                (None, Some(progress)) => progress.drive().await,
                (None, None) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = call.ends(), if left.is_none() => {
                carried.cancel(why);
                left = Some(why);
                (progress, last) = (None, None);
            }
            farewell = &mut leaving, if left.is_none() && !call.is_left() => {
                carried.cancel(farewell.reason());
                left = Some(farewell.reason());
                // A client that has left needs no more progress.
                (progress, last) = (None, None);
            }
            farewell = &mut left_alone, if left.is_none() && call.is_left() => call.end(farewell.reason()),
            // One that does not show it in time is silent, as `leaving` finds.
            is_there = &mut present, if !is_asked => {
                is_asked = true;
                if is_there {
                    // No notification follows the answer.
                    last = Some(progress.take().map_or_else(|| ready(()).boxed(), |progress| progress.finish().boxed()));
                }
            }
            step = carried.next() => match step {
                Ok(Step::Progress(step)) => {
                    if let Ok(step) = step.read() {
                        call.note(&step);
                        if let Some(progress) = &mut progress {
                            progress.add_step(&step);
                        }
                    }
                }
                Ok(Step::Answer(answer)) => {
                    if let Some(last) = last {
                        last.await;
                    }
                    if let Some(progress) = progress {
                        progress.finish().await;
                    }
                    drop(moves);
                    return Ok(answer);
                }
                Err(lost) => {
                    return Err(answer::result(Answer::lost(tool, &lost, left.unwrap_or_default())));
                }
            },
            // Only the last of it ends.
            () = reports => {
                last = None;
                if !is_at_stdio(context) {
                    // The connection belongs to other requests from now on.
                    moves = None;
                }
                call.leave();
            }
        }
    }
}

fn without_hosts(mut args: Object, tool: &ListedTool) -> Object {
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

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_hosts_add_reaches_no_tool_that_does_not_have_it() {
        let object = |value: Value| match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        };
        let tool = ListedTool {
            exported: "wave".to_owned(),
            toolbox_id: "arm".to_owned(),
            name: "wave".to_owned(),
            effect: Effect::Motion,
            category: None,
            description: String::new(),
            output: None,
            agent_end: Vec::new(),
            arguments: Arc::new(object(json!({"properties": {"action": {"type": "string"}}}))),
        };
        let args = object(json!({"sessionId": "x", "action": "lift", "toolCallId": 1, "typo": 2}));
        let kept = without_hosts(args, &tool);
        assert_eq!(Value::Object(kept), json!({"action": "lift", "typo": 2}));
    }
}
