//! Calls that a person has to confirm: the client's user is asked, with the means of the client's version of the protocol.
//!
//! The service decides which calls have to be confirmed, and what a confirmation covers: its token is for one run of one call. A
//! client that asks its user itself gets the token as opaque state. A client that the door asks never sees the token. Text that a
//! model writes never counts as an answer. Read [`call_asking`].

use std::time::Duration;

use client::payload::Confirm;
use door::{Answer, ListedTool, own_id};
use ovos_toolbox_wire::Object;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{RoleServer, ServiceError};

use crate::answer;
use crate::call::{CallResult, Decision, call};
use crate::call_request::CallRequest;
use crate::presence::{is_modern, leaves};
use crate::shared::Door;

/// The name of the question in a result that asks it.
const QUESTION: &str = "confirm";

/// Why a user was not asked.
const NO_WAY: &str = "this client cannot ask its user";

/// Calls a tool of a toolbox. If a person has to confirm the call, the client's user is asked.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn call_asking(
    door: &Door,
    tool: &ListedTool,
    request: CallToolRequestParams,
    asked: &CallRequest,
) -> CallToolResponse {
    let context = &asked.context;
    let args: Object = request.arguments.unwrap_or_default();
    let Some(said) = decision(request.input_responses.as_ref(), request.request_state) else {
        return unanswered(tool).into();
    };
    let call_id = asked.call.call_id();
    let confirm = match call(door, tool, args.clone(), said, call_id, asked).await {
        CallResult::Answered(result) => return result.into(),
        CallResult::Waits(confirm) => confirm,
    };
    if !asks_its_user(context) {
        return answer::result(door::approval_required(tool, &confirm, NO_WAY)).into();
    }
    if asked.call.is_left() {
        return answer::result(door::approval_required(
            tool,
            &confirm,
            "its request was answered before",
        ))
        .into();
    }
    if is_modern(context) {
        return question(confirm).into();
    }
    let reply = match ask_user(asked, door, tool, &confirm).await {
        Ok(said) => said,
        Err(failed) => return failed.into(),
    };
    match call(door, tool, args, reply, &own_id("mcp"), asked).await {
        CallResult::Answered(result) => result.into(),
        CallResult::Waits(confirm) => answer::result(door::approval_required(
            tool,
            &confirm,
            "the approval no longer matches the call",
        ))
        .into(),
    }
}

/// Reads the user's answer to the question of an earlier request. `None` if the user gave no answer.
fn decision(answers: Option<&InputResponses>, state: Option<String>) -> Option<Decision> {
    let answer = answers.and_then(|answers| answers.get(QUESTION));
    let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
    match (answer, state) {
        (Some(answer), Some(token)) => decision_of_action(&answer.action, token),
        _ => Some(Decision::Nothing),
    }
}

/// Interprets the user's action. `None` if the user closed the question.
fn decision_of_action(action: &ElicitationAction, token: String) -> Option<Decision> {
    match action {
        ElicitationAction::Accept => Some(Decision::Yes(token)),
        ElicitationAction::Decline => Some(Decision::No(token)),
        _ => None,
    }
}

fn unanswered(tool: &ListedTool) -> CallToolResult {
    answer::result(Answer::cancelled(
        tool,
        "it needs approval, and its user did not answer",
    ))
}

/// Whether the client can show a form to its user. Until 2025-11-25 there was only one kind of question.
fn asks_its_user(context: &RequestContext<RoleServer>) -> bool {
    let declared = context
        .client_capabilities()
        .and_then(|client| client.elicitation);
    declared.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

fn form(confirm: &Confirm) -> ElicitRequest {
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("Let this run? {}\n{}", confirm.text, confirm.plan),
        requested_schema: ElicitationSchema::new(std::collections::BTreeMap::new()),
    })
}

/// The question as a result. The client asks its user and sends the request again, with the answer and the state.
fn question(confirm: Confirm) -> InputRequiredResult {
    let form = InputRequest::Elicitation(form(&confirm));
    let questions = InputRequests::from([(QUESTION.to_owned(), form)]);
    InputRequiredResult::new(Some(questions), Some(confirm.token))
}

/// Asks the user during the call, as clients before 2026-07-28 need it.
///
/// # Errors
/// The user gave no answer.
async fn ask_user(
    request: &CallRequest,
    door: &Door,
    tool: &ListedTool,
    confirm: &Confirm,
) -> Result<Decision, CallToolResult> {
    let CallRequest { context, gone, .. } = request;
    let wait = Duration::from_millis(confirm.expires_ms);
    let reply = async {
        let request = ServerRequest::ElicitRequest(form(confirm));
        let options = PeerRequestOptions::with_timeout(wait);
        let sent = context.peer.send_request_with_option(request, options);
        sent.await?.await_response().await
    };
    let answer = tokio::select! {
        left = leaves(context, gone, &door.link.shutdown, tool.effect) => {
            return Err(answer::result(Answer::cancelled(tool, left.reason())));
        }
        answer = reply => answer,
    };
    match answer {
        Ok(ClientResult::ElicitResult(answer)) => {
            decision_of_action(&answer.action, confirm.token.clone()).ok_or_else(|| unanswered(tool))
        }
        Ok(_) | Err(ServiceError::McpError(_)) => {
            Err(answer::result(door::approval_required(tool, confirm, NO_WAY)))
        }
        Err(error) => {
            tracing::info!(tool = tool.name, %error, "a client did not answer whether a call may run");
            Err(unanswered(tool))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_an_accepted_question_with_its_state_is_a_yes() {
        let yes = || Some(Decision::Yes("t".to_owned()));
        let accepted = json!({"confirm": {"action": "accept", "content": {}}});
        for (answers, state, expected) in [
            (accepted.clone(), Some("t"), yes()),
            (json!({"confirm": {"action": "accept"}}), Some("t"), yes()),
            (
                json!({"confirm": {"action": "decline"}}),
                Some("t"),
                Some(Decision::No("t".to_owned())),
            ),
            (json!({"confirm": {"action": "cancel"}}), Some("t"), None),
            (accepted, None, Some(Decision::Nothing)),
            (json!({}), Some("t"), Some(Decision::Nothing)),
            (
                json!({"other": {"action": "accept"}}),
                Some("t"),
                Some(Decision::Nothing),
            ),
            (
                json!({"confirm": {"action": "yes"}}),
                Some("t"),
                Some(Decision::Nothing),
            ),
            (json!({"confirm": "accept"}), Some("t"), Some(Decision::Nothing)),
            (
                json!({"confirm": {"content": {"action": "accept"}}}),
                Some("t"),
                Some(Decision::Nothing),
            ),
        ] {
            let Value::Object(entries) = &answers else {
                panic!("{answers}")
            };
            let entries: InputResponses = entries.clone().into_iter().collect();
            assert_eq!(
                decision(Some(&entries), state.map(str::to_owned)),
                expected,
                "{answers}"
            );
        }
        assert_eq!(decision(None, Some("t".to_owned())), Some(Decision::Nothing));
    }
}
