//! `ros_publish`: a message on a topic that an owner allows, within limits, with an end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::select;
use ovos_toolbox_sdk::tokio::time::sleep;
use ros_graph::definition::{Kind, TypeName};
use ros_graph::error::GraphError;
use ros_graph::graph::Graph;

use crate::allow::stamp;
use crate::graph::{shape, type_name};
use crate::moving::LastMessage;
use crate::name::subsystem;
use crate::toolbox::{Ros, limit_ms};

/// The pause between two messages.
const PERIOD: Duration = Duration::from_millis(100);

/// Publish a message on a topic of the ROS graph that the owner allows, for some seconds. Velocities end with zero.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PublishArgs {
    /// Such as /cmd_vel.
    topic: String,
    /// The fields; those that are left out are zero.
    message: Object,
    /// Seconds to repeat the message, ten times a second; 0 sends it once. Default: 1 for velocities and others with a stop message, else 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 600.0))]
    seconds: Option<f64>,
    /// The type, where the topic has more than one.
    #[serde(default, rename = "type")]
    of: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PublishOutput {
    topic: String,
    #[serde(rename = "type")]
    of: String,
    /// How often the message was said.
    published: u32,
    /// What was said last: zero for velocities; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Value>,
}

/// The plan of a call: what it holds, and how long it may take.
pub(crate) fn plan(toolbox: &Ros, args: Object) -> Result<Vec<Action>, ToolError> {
    let topic = args.get("topic").and_then(Value::as_str).unwrap_or_default();
    let (topic, rule) = toolbox.config.allow.publish(topic)?;
    Ok(vec![Action {
        subsystems: vec![subsystem(&topic)],
        timeout_ms: Some(limit_ms(rule.seconds)),
        params: args,
        ..Action::named("ros_publish")
    }])
}

pub(crate) async fn publish(context: Context<Ros>, args: PublishArgs) -> Result<PublishOutput, ToolError> {
    let toolbox = context.toolbox();
    let (topic, rule) = toolbox.config.allow.publish(&args.topic)?;
    let graph = toolbox.joined.graph().await?;
    let of = match &args.of {
        Some(of) => type_name(of, Kind::Message)?,
        None => heard_as(graph.as_ref(), &topic).await?,
    };
    let shape = shape(graph.as_ref(), &of).await?;
    let checked = rule.check(&topic, &shape, &Value::Object(args.message))?;
    let seconds = args
        .seconds
        .unwrap_or(if checked.end.is_some() { 1.0 } else { 0.0 });
    if !(0.0..=rule.seconds).contains(&seconds) {
        let most = rule.seconds;
        return Err(ToolError::bad_args(format!(
            "seconds is {seconds}, expected 0 to {most} (ros.allow.publish.{topic}.seconds)"
        )));
    }
    let publisher = toolbox.channels.open(graph.as_ref(), &topic, &of).await?;
    // From here on a halt says the end, and so does the drop of this call.
    let held = checked.end.as_ref().map(|end| {
        let end = LastMessage {
            publisher: Arc::clone(&publisher),
            message: stamp(&shape, end),
        };
        toolbox.moving.hold(context.host(), &topic, end)
    });
    let (start, mut published) = (Instant::now(), 0);
    // What is said once and has an end is ended after one period.
    let least = if checked.end.is_some() {
        PERIOD
    } else {
        Duration::ZERO
    };
    let whole = Duration::from_secs_f64(seconds).max(least);
    let cancelled = context.cancelled();
    ovos_toolbox_sdk::tokio::pin!(cancelled);
    let outcome = loop {
        let message = stamp(&shape, &checked.message);
        match context.command(|| publisher.publish(&message)) {
            Ok(Ok(())) => published += 1,
            Ok(Err(error)) => break Err(error.into()),
            Err(halted) => break Err(halted),
        }
        let left = whole.saturating_sub(start.elapsed());
        if seconds > 0.0 {
            context.progress(
                1.0 - left.as_secs_f64() / whole.as_secs_f64(),
                format!("publishing on {topic}"),
            );
        }
        select! {
            biased;
            () = &mut cancelled => break Err(ToolError::cancelled()),
            () = sleep(PERIOD.min(left)) => {}
        }
        if start.elapsed() >= whole {
            break Ok(());
        }
    };
    let ended = match held {
        Some(held) => held.end().await,
        None => Ok(()),
    };
    outcome?;
    ended.map_err(|error| {
        ToolError::msg(format!(
            "the last message on {topic} may not have been heard: {error}"
        ))
    })?;
    Ok(PublishOutput {
        topic,
        of: of.to_string(),
        published,
        end: checked
            .end
            .map(|end| if end == json!({}) { json!("zero") } else { end }),
    })
}

/// The one type in which something hears a topic.
async fn heard_as(graph: &dyn Graph, topic: &str) -> Result<TypeName, ToolError> {
    let types: Vec<String> = graph.heard_as(topic).await?.into_iter().collect();
    match types.as_slice() {
        [only] => Ok(only.parse()?),
        [] => Err(GraphError::Unheard {
            topic: topic.to_owned(),
        }
        .into()),
        several => Err(ToolError::bad_args(format!(
            "{topic} is heard in several types: give type as one of {}",
            several.join(", ")
        ))),
    }
}
