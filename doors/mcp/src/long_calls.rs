//! Calls that take longer than their client waits: the request is answered with a handle, and the call goes on. For a client that
//! declares the protocol's extension for tasks the handle is a task, for all others the id of the call in a result.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use door::{Answer, LongCall, LongCallTool, PendingRequest, wait_limit};
use ovos_toolbox_wire::{FailureKind, Object};
use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask, Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::current_timestamp;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::answer;
use crate::call_request::{CallRequest, Calls, Outcome};
use crate::guarded::guarded;
use crate::patience::patience;
use crate::presence::{Farewell, farewell};
use crate::shared::Door;

/// How often a client should ask for a task, in milliseconds.
const POLL_MS: u64 = 1000;

/// Carries out a call in a task of its own, which ends with the request until that is answered. Returns its outcome, or, if it
/// takes longer than the client waits, the handle of the call.
///
/// # Cancel safety
/// Dropping it ends the call.
pub(crate) async fn carried_out<F>(
    door: &Arc<Door>,
    calls: &Calls,
    request: CallRequest,
    carry: impl FnOnce(Arc<Door>, CallRequest) -> F,
) -> Outcome
where
    F: Future<Output = CallToolResponse> + Send + 'static,
{
    if calls.is_full() {
        return Ok(too_many().into());
    }
    let call = Arc::clone(&request.call);
    let has_tasks = has_tasks(&request.context);
    let patience = patience(&request.context, &door.config);
    let requested = PendingRequest::new(&call);
    let running = carry(Arc::clone(door), request);
    door.link.tasks.spawn({
        let call = Arc::clone(&call);
        async move { call.ended(guarded("tools/call", async { Ok(running.await) }).await) }
    });
    match requested.outcome(patience, calls).await {
        Some(outcome) => outcome,
        None if has_tasks => Ok(CreateTaskResult::new(task(&call, TaskStatus::Working)).into()),
        None => Ok(answer::result(call.goes_on()).into()),
    }
}

fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities();
    declared.is_some_and(|declared| declared.supports_tasks())
}

fn too_many() -> CallToolResult {
    let why = format!(
        "{} calls of this client still run: list_calls names them; wait for one with wait_call, or end one with cancel_call",
        door::MOST_LEFT
    );
    let data = json!({"error": {"kind": FailureKind::BusyError, "message": why}});
    answer::result(Answer::failure(
        &format!("{}: {why}", FailureKind::BusyError),
        data,
    ))
}

/// Answers `wait_call`, `cancel_call` and `list_calls`.
///
/// # Cancel safety
/// Safe: a call whose `wait_call` is dropped goes on with its lease.
pub(crate) async fn ask(
    door: &Door,
    calls: &Calls,
    tool: LongCallTool,
    arguments: &Object,
    request: &CallRequest,
) -> Outcome {
    if tool == LongCallTool::List {
        return Ok(answer::result(calls.listed()).into());
    }
    let call = match calls.named(tool, arguments) {
        Ok(call) => call,
        Err(unknown) => return Ok(answer::result(unknown).into()),
    };
    let _asked = call.ask();
    let patience = patience(&request.context, &door.config);
    if tool == LongCallTool::Cancel {
        call.end("its client cancelled it");
        if call.outcome_within(patience).await.is_none() {
            return Ok(answer::result(call.is_cancelled()).into());
        }
    }
    let limit = wait_limit(arguments, patience);
    let waiting = call.outcome_within(limit);
    let outcome = tokio::select! {
        biased;
        outcome = waiting => outcome,
        left = leaves(door, request) => {
            // It is a request for this call that was not answered, like the first one.
            call.end(left.reason());
            None
        }
    };
    match outcome {
        Some(outcome) => with_reason(&call, outcome),
        None => Ok(answer::result(call.goes_on()).into()),
    }
}

/// Waits until the client of a `wait_call` cancels it or is gone.
async fn leaves(door: &Door, request: &CallRequest) -> Farewell {
    let CallRequest { context, gone, .. } = request;
    farewell(
        context,
        gone,
        &door.link.shutdown,
        ovos_toolbox_wire::Effect::Motion,
    )
    .await
}

/// An outcome with the reason why the call was ended, if it was.
fn with_reason(call: &LongCall<Outcome>, outcome: Outcome) -> Outcome {
    match (outcome, call.was_told_to_end()) {
        (Ok(CallToolResponse::Complete(mut result)), Some(why)) => {
            answer::remark(&mut result, format!("It is being ended: {why}."));
            Ok(result.into())
        }
        (outcome, _) => outcome,
    }
}

/// The state of a task. Asking for it renews the lease of its call.
///
/// # Errors
/// The client has no such call.
pub(crate) fn task_of(
    calls: &Calls,
    task_id: &str,
    shape: impl FnOnce(&str, &mut CallToolResult),
) -> Result<DetailedTask, ErrorData> {
    let call = found(calls, task_id)?;
    call.renew();
    let payload = match call.outcome() {
        None => TaskPayload::Working,
        Some(Ok(CallToolResponse::Complete(mut result))) => {
            if call.was_told_to_end().is_some() && result.is_error == Some(true) {
                TaskPayload::Cancelled
            } else {
                shape(call.tool(), &mut result);
                TaskPayload::Completed {
                    result: object(serde_json::to_value(result)),
                }
            }
        }
        Some(Ok(_)) => TaskPayload::Failed {
            error: object(serde_json::to_value(ErrorData::internal_error(
                "the call has no result",
                None,
            ))),
        },
        Some(Err(error)) => TaskPayload::Failed {
            error: object(serde_json::to_value(error)),
        },
    };
    Ok(DetailedTask::new(task(&call, payload.status()), payload))
}

/// Ends the call of a task.
///
/// # Errors
/// The client has no such call.
pub(crate) fn cancel_task(calls: &Calls, task_id: &str) -> Result<(), ErrorData> {
    found(calls, task_id)?.end("its client cancelled it");
    Ok(())
}

/// Accepts answers to questions. No task asks any.
///
/// # Errors
/// The client has no such call.
pub(crate) fn update_task(calls: &Calls, task_id: &str) -> Result<(), ErrorData> {
    found(calls, task_id).map(|_| ())
}

fn found(calls: &Calls, task_id: &str) -> Result<Arc<LongCall<Outcome>>, ErrorData> {
    let unknown = || {
        ErrorData::invalid_params(
            format!("taskId: there is no task '{task_id:.80}' of this client"),
            None,
        )
    };
    calls.find(task_id).ok_or_else(unknown)
}

fn object(value: Result<Value, serde_json::Error>) -> Object {
    match value {
        Ok(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

fn task(call: &LongCall<Outcome>, status: TaskStatus) -> Task {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let start = DateTime::<Utc>::from(call.begun_at()).to_rfc3339();
    let mut task = Task::new(call.call_id(), status, start, current_timestamp())
        // The task lives as long as its client asks, and one lease longer.
        .with_ttl_ms(millis(call.age() + call.lease()))
        .with_poll_interval_ms(POLL_MS);
    let progress = call.progress();
    if status == TaskStatus::Working && !progress.is_empty() {
        task = task.with_status_message(progress);
    }
    task
}
