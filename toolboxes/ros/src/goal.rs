//! `ros_goal`: a goal of an action that an owner allows, followed to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::select;
use ovos_toolbox_sdk::tokio::sync::oneshot;
use ovos_toolbox_sdk::wire::Progress;
use ros_graph::error::GraphError;
use ros_graph::graph::{Goal, GoalEnd, GoalStatus};

use crate::moving::{End, GOAL_ENDS, HeldMotion};
use crate::name::subsystem;
use crate::shown::{CUTS, fitting};
use crate::toolbox::{Ros, limit_ms};

/// How long an action is given to accept a goal.
const ACCEPTING: Duration = Duration::from_secs(6);
/// How long one feedback is waited for before the time is looked at again.
const LOOK: Duration = Duration::from_millis(200);

/// Send a goal to an action of the ROS graph that the owner allows, and wait until it has ended.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GoalArgs {
    /// Such as /navigate_to_pose.
    action: String,
    /// The fields; those that are left out are zero.
    #[serde(default)]
    goal: Object,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct GoalOutput {
    action: String,
    /// Whether the goal was reached.
    success: bool,
    /// succeeded, canceled, aborted, unknown, or timed_out: it took longer than the owner allows, and was cancelled.
    status: &'static str,
    /// What the action says of its end.
    result: Value,
    /// Its last feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Value>,
    /// How long it took, in seconds.
    seconds: f64,
}

/// The plan of a call: what it holds, and how long it may take.
pub(crate) fn plan(toolbox: &Ros, args: Object) -> Result<Vec<Action>, ToolError> {
    let action = args.get("action").and_then(Value::as_str).unwrap_or_default();
    let (action, rule) = toolbox.config.allow.goal(action)?;
    Ok(vec![Action {
        subsystems: vec![subsystem(&action)],
        timeout_ms: Some(limit_ms(rule.seconds)),
        params: args,
        ..Action::named("ros_goal")
    }])
}

pub(crate) async fn goal(context: Context<Ros>, args: GoalArgs) -> Result<GoalOutput, ToolError> {
    let toolbox = context.toolbox();
    let (action, rule) = toolbox.config.allow.goal(&args.action)?;
    let cancelled = context.cancelled();
    ovos_toolbox_sdk::tokio::pin!(cancelled);
    let start = Instant::now();
    let (goal, held) = send(&context, &action, Value::Object(args.goal)).await?;
    let mut last = None;
    let limit = Duration::from_secs_f64(rule.seconds);
    let (end, timed_out) = loop {
        if start.elapsed() >= limit {
            break (goal.cancel(GOAL_ENDS).await?, true);
        }
        select! {
            biased;
            () = &mut cancelled => {
                held.end().await?;
                return Err(ToolError::cancelled());
            }
            ended = goal.end(LOOK) => {
                if let Some(end) = ended? {
                    break (end, false);
                }
            }
        }
        let mut newest = None;
        while let Ok(Some(feedback)) = goal.feedback(Duration::ZERO).await {
            newest = Some(CUTS[2].apply(&feedback));
        }
        if let Some(feedback) = newest {
            context.report(&Progress {
                fraction: None,
                message: Some(feedback.to_string().chars().take(300).collect()),
                data: Some(feedback.clone()),
            });
            last = Some(feedback);
        }
    };
    held.ended();
    Ok(output(action, &end, timed_out, last, start.elapsed()))
}

/// Sends the goal beside the call: one that is accepted after the call was dropped or halted is cancelled all the same.
async fn send(
    context: &Context<Ros>,
    action: &str,
    goal: Value,
) -> Result<(Arc<Goal>, HeldMotion), ToolError> {
    let graph = context.toolbox().joined.graph().await?;
    context.command(|| ())?;
    let (sender, receiver) = oneshot::channel();
    let (owned, action) = (context.clone(), action.to_owned());
    context.host().spawn(async move {
        let sent = accepted(&owned, graph.send_goal(&action, &goal, ACCEPTING).await, &action).await;
        // Where nothing waits for it any more, the drop of what holds it cancels it.
        let _ = sender.send(sent);
    });
    receiver.await.unwrap_or_else(|_| Err(ToolError::cancelled()))
}

async fn accepted(
    context: &Context<Ros>,
    sent: Result<Goal, GraphError>,
    action: &str,
) -> Result<(Arc<Goal>, HeldMotion), ToolError> {
    let goal = Arc::new(sent?);
    let moving = &context.toolbox().moving;
    let hold = || moving.hold(context.host(), action, End::Cancel(Arc::clone(&goal)));
    match context.command(hold) {
        Ok(held) => Ok((goal, held)),
        Err(halted) => {
            moving
                .hold(context.host(), action, End::Cancel(goal))
                .end()
                .await?;
            Err(halted)
        }
    }
}

fn output(
    action: String,
    end: &GoalEnd,
    timed_out: bool,
    feedback: Option<Value>,
    took: Duration,
) -> GoalOutput {
    let status = match end.status {
        GoalStatus::Canceled if timed_out => "timed_out",
        GoalStatus::Succeeded => "succeeded",
        GoalStatus::Canceled => "canceled",
        GoalStatus::Aborted => "aborted",
        GoalStatus::Unknown => "unknown",
    };
    GoalOutput {
        action,
        success: end.status == GoalStatus::Succeeded,
        status,
        result: fitting(|cut| cut.apply(&end.result)),
        feedback,
        seconds: (took.as_secs_f64() * 100.0).round() / 100.0,
    }
}
