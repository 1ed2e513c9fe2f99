//! One call of a tool: from the client's request to its answer.

use std::pin::pin;

use client::payload::{CallOptions, Confirm, ContentMode, InvokeRequest};
use client::{Call, ClientError, Patience, Received, Step};
use door::{Answer, Registered, Turn, own_id};
use ovos_toolbox_wire::{Effect, Object};
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::content;
use crate::presence::{farewell, moves};
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
    tool: &Registered,
    args: Object,
    said: Decision,
    context: &RequestContext<RoleServer>,
    turn: &Turn,
    session: &CancellationToken,
) -> CallResult {
    let call_id = own_id("mcp");
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
            call_id: Some(call_id.clone()),
            timeout_ms: None,
            progress: token.is_some(),
            detail: true,
            confirm,
            decline,
            content: Some(ContentMode::Path),
        },
    };
    let send = |patience| door.link.client.invoke(request, patience);
    let answer = match carried(door, tool, &call_id, send, context, turn, session).await {
        Ok(answer) => answer,
        Err(failed) => return CallResult::Answered(failed),
    };
    if let Some(confirm) = door::confirm(&answer) {
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

/// Carries a call or a run to its answer. Reports its progress to the client, and ends the call if the client goes away.
///
/// # Errors
/// The result for the client if there is no answer.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn carried<A>(
    door: &Door,
    tool: &Registered,
    call_id: &str,
    send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
    context: &RequestContext<RoleServer>,
    turn: &Turn,
    session: &CancellationToken,
) -> Result<Received<A>, CallToolResult> {
    let mut leaving = pin!(farewell(context, session, &door.link.shutdown, tool.effect));
    let begun = tokio::select! {
        biased;
        farewell = &mut leaving, if tool.effect != Effect::Stop => {
            return Err(answer::result(Answer::cancelled(tool, farewell.reason())));
        }
        begun = door.link.carry(turn, tool, call_id, send) => begun,
    };
    let _moves = moves(context, tool.effect);
    let mut carried = begun.map_err(|why| answer::result(Answer::not_begun(tool, &why)))?;
    let token = context.meta.get_progress_token();
    let mut progress = token.map(|token| Progress::new(context.peer.clone(), token));
    let mut left = None;
    loop {
        let told = async {
            match &mut progress {
                Some(progress) => progress.drive().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            farewell = &mut leaving, if left.is_none() => {
                carried.cancel(farewell.reason());
                left = Some(farewell);
                // A client that has left needs no more progress.
                progress = None;
            }
            step = carried.next() => match step {
                Ok(Step::Progress(step)) => {
                    if let (Some(progress), Ok(step)) = (&mut progress, step.read()) {
                        progress.add_step(&step);
                    }
                }
                Ok(Step::Answer(answer)) => {
                    if let Some(progress) = progress {
                        progress.finish().await;
                    }
                    return Ok(answer);
                }
                Err(lost) => {
                    let why = left.map_or("", |farewell| farewell.reason());
                    return Err(answer::result(Answer::lost(tool, &lost, why)));
                }
            },
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

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_hosts_add_reaches_no_tool_that_does_not_have_it() {
        let object = |value: Value| match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        };
        let tool = Registered {
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
