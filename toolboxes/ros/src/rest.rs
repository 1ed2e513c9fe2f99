//! The stop of a process without an instance.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::task::JoinSet;
use ovos_toolbox_sdk::tokio::time::sleep;
use ros_graph::definition::TypeName;
use ros_graph::goals::cancel_all;
use ros_graph::graph::Graph;

use crate::allow::stamp;
use crate::config::{Config, PublishRule};
use crate::graph::{dds, join, shape};

/// How long those that hear the end are looked for.
const STOPPING: Duration = Duration::from_millis(1500);
/// How long an action is looked for, and given to take the cancel of its goals.
const CANCELLING: Duration = Duration::from_millis(2500);
/// How often the end is said.
const TIMES: u32 = 5;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause between two looks at the graph.
const LOOK: Duration = Duration::from_millis(20);

/// Says the end on every topic that may be spoken on, in each type that hears it, and cancels the goals of every action that may
/// be sent to: for a process without an instance, which does not know what moved. It takes 3 s at most.
///
/// # Errors
/// The graph cannot be joined, or one of them is there and was not ended; the others were.
pub(crate) async fn stop_all(mut config: Config) -> Result<(), ToolError> {
    let (present, left_out) = dds(&config).present();
    let left_out = left_out.filter(|_| config.rosbridge.is_none());
    config.interfaces = present.interfaces;
    let graph = join(&config).await?;
    let mut ends = JoinSet::new();
    for (topic, rule) in config.allow.publish {
        ends.spawn(end_topic(Arc::clone(&graph), topic, rule));
    }
    for action in config.allow.goal.into_keys() {
        ends.spawn(end_goals(Arc::clone(&graph), action));
    }
    let ended = ends.join_all().await.into_iter();
    let mut failed: Vec<String> = ended
        .filter_map(|end| Some(end.err()?.message().to_owned()))
        .collect();
    // What is there by an address that is missing was not seen, and may move.
    failed.extend(left_out.map(|error| error.to_string()));
    match failed.is_empty() {
        true => Ok(()),
        false => Err(ToolError::msg(failed.join("; "))),
    }
}

/// Says the end of a topic in each type that hears it by the end of the time: the graph shows them one after the other.
async fn end_topic(graph: Arc<dyn Graph>, topic: String, rule: PublishRule) -> Result<(), ToolError> {
    let start = Instant::now();
    let mut ended: Vec<String> = Vec::new();
    let mut outcome = Ok(());
    while start.elapsed() < STOPPING {
        for of in graph.heard_as(&topic).await? {
            if !ended.contains(&of) {
                outcome = outcome.and(end_type(graph.as_ref(), &topic, &rule, &of).await);
                ended.push(of);
            }
        }
        sleep(LOOK).await;
    }
    outcome
}

async fn end_type(graph: &dyn Graph, topic: &str, rule: &PublishRule, of: &str) -> Result<(), ToolError> {
    let of: TypeName = of.parse()?;
    let shape = shape(graph, &of).await?;
    // A type whose end is not known was never spoken.
    let Ok(Some(end)) = rule.end(topic, &shape) else {
        return Ok(());
    };
    let publisher = graph.publisher(topic, &of).await?;
    publisher.ready(STOPPING).await?;
    for _ in 0..TIMES {
        publisher.publish(&stamp(&shape, &end))?;
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Cancels the goals of everyone: nothing here knows which are ours.
async fn end_goals(graph: Arc<dyn Graph>, action: String) -> Result<(), ToolError> {
    let failed = cancel_all(graph.as_ref(), [action.as_str()], CANCELLING).await;
    failed
        .into_iter()
        .next()
        .map_or(Ok(()), |error| Err(error.into()))
}
