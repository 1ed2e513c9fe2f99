//! `ros_goal`: a goal of an action that an owner allows, followed to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::select;
use ovos_toolbox_sdk::wire::Progress;
use ros_graph::error::GraphError;
use ros_graph::graph::{GoalEnd, GoalStatus};

use crate::name::subsystem;
use crate::pursuit::HeldGoal;
use crate::shown::{CUTS, fitting};
use crate::toolbox::{Ros, limit_ms};

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
    let held = toolbox
        .pursuits
        .send(&context, &action, Value::Object(args.goal))
        .await?;
    let mut last = None;
    let limit = Duration::from_secs_f64(rule.seconds);
    let (end, timed_out) = loop {
        if start.elapsed() >= limit {
            break (cancelled_end(held).await?, true);
        }
        select! {
            biased;
            () = &mut cancelled => {
                held.end().await?;
                return Err(ToolError::cancelled());
            }
            ended = held.goal().end(LOOK) => match ended {
                Ok(None) => {}
                // Neither says that it has ended.
                Ok(Some(end)) if end.status == GoalStatus::Unknown => {
                    held.end().await?;
                    break (end, false);
                }
                Err(error) => {
                    let still = held.end().await.err();
                    return Err(still.map_or_else(
                        || error.clone().into(),
                        |still| ToolError::msg(format!("{error}; {still}")),
                    ));
                }
                Ok(Some(end)) => {
                    held.ended();
                    break (end, false);
                }
            }
        }
        let mut newest = None;
        while let Ok(Some(feedback)) = held.goal().feedback(Duration::ZERO).await {
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
    Ok(output(action, &end, timed_out, last, start.elapsed()))
}

/// Cancels a goal, and returns its end as far as it is known.
async fn cancelled_end(held: HeldGoal) -> Result<GoalEnd, GraphError> {
    let goal = Arc::clone(held.goal());
    held.end().await?;
    let end = goal.end(Duration::ZERO).await.ok().flatten();
    Ok(end.unwrap_or(GoalEnd {
        status: GoalStatus::Unknown,
        result: Value::Null,
    }))
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
