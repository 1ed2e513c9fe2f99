//! `ros_read`: what a topic says.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::time::sleep;
use ros_graph::definition::Kind;
use ros_graph::error::GraphError;
use ros_graph::inbox::{Bounds, Message};

use crate::graph::type_name;
use crate::name::full;
use crate::shown::{chosen, fits, fitting};
use crate::toolbox::Ros;

/// How long a publisher and a first message are waited for.
pub(crate) const WAIT: Duration = Duration::from_secs(4);
/// The longest time of one call, in seconds.
const LONGEST: f64 = 30.0;
/// Messages that one call shows.
const MOST: usize = 20;
/// What waits to be shown, in bytes.
const BYTES: usize = 16 << 20;

/// Read a topic of the ROS graph: its next message, or the newest of some seconds.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadArgs {
    /// Such as /odom.
    topic: String,
    /// Only these fields, such as pose.pose.position or ranges.0.
    #[serde(default)]
    fields: Vec<String>,
    /// How long to listen, in seconds. 0 is one message.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 30.0))]
    seconds: f64,
    /// How many of the newest messages to show. 5 where it listens for a time.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20))]
    count: Option<usize>,
    /// The type, where nothing publishes yet.
    #[serde(default, rename = "type")]
    of: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ReadOutput {
    topic: String,
    #[serde(rename = "type")]
    of: String,
    /// The messages, the newest last. A long array is its length, its first elements, and of numbers the least and the most.
    messages: Vec<ReadMessage>,
    /// How many messages came.
    received: u64,
    /// How many came in a second; absent for one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_hz: Option<f64>,
    /// What was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ReadMessage {
    /// How long ago it came, in seconds.
    age_s: f64,
    message: Value,
}

pub(crate) async fn read(context: Context<Ros>, args: ReadArgs) -> Result<ReadOutput, ToolError> {
    let topic = full(&args.topic)?;
    let of = args
        .of
        .as_deref()
        .map(|of| type_name(of, Kind::Message))
        .transpose()?;
    // What is listened to for long is ended with the call, which is dropped then.
    let seconds = if args.seconds.is_finite() {
        args.seconds.clamp(0.0, LONGEST)
    } else {
        0.0
    };
    let count = args
        .count
        .unwrap_or(if seconds > 0.0 { 5 } else { 1 })
        .clamp(1, MOST);
    let _reading = context.toolbox().reading()?;
    let graph = context.toolbox().joined.graph().await?;
    let bounds = Bounds {
        messages: count,
        bytes: BYTES,
    };
    let mut subscription = graph.subscribe(&topic, of.as_ref(), bounds, WAIT).await?;
    let mut messages: Vec<Message> = Vec::new();
    if seconds > 0.0 {
        // Nothing is decoded meanwhile: what is too much goes as it came.
        sleep(Duration::from_secs_f64(seconds)).await;
    } else {
        messages.push(subscription.next(WAIT).await?);
    }
    while messages.len() < count {
        match subscription.next(Duration::ZERO).await {
            Ok(message) => messages.push(message),
            Err(GraphError::Silent { .. }) => break,
            // What came before a publisher left is shown.
            Err(GraphError::Lost { .. }) if !messages.is_empty() => break,
            Err(error) => return Err(error.into()),
        }
    }
    if messages.is_empty() {
        let waited = Duration::from_secs_f64(seconds);
        return Err(GraphError::Silent { topic, waited }.into());
    }
    let received = subscription.received();
    let chosen = messages
        .iter()
        .map(|message| Ok((message.age.as_secs_f64(), chosen(&message.value, &args.fields)?)))
        .collect::<Result<Vec<(f64, Value)>, ToolError>>()?;
    let (shown, note) = within(&chosen);
    Ok(ReadOutput {
        topic,
        of: subscription.type_name().to_string(),
        messages: shown,
        received,
        rate_hz: (seconds > 0.0)
            .then(|| thousandths(u32::try_from(received).map_or(f64::MAX, f64::from) / seconds)),
        note,
    })
}

fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// The newest messages that are small enough together, cut as little as that needs.
fn within(messages: &[(f64, Value)]) -> (Vec<ReadMessage>, Option<String>) {
    let mut from = 0;
    loop {
        let newest = &messages[from..];
        let shown = fitting(|cut| {
            let each = newest
                .iter()
                .map(|(age, message)| json!({"age_s": thousandths(*age), "message": cut.apply(message)}));
            Value::Array(each.collect())
        });
        if fits(&shown) {
            let Value::Array(items) = shown else {
                return (Vec::new(), None);
            };
            let note = (from > 0)
                .then(|| format!("{from} older messages are left out: ask for fewer fields with `fields`"));
            let one = |item: Value| ReadMessage {
                age_s: item["age_s"].as_f64().unwrap_or_default(),
                message: item["message"].clone(),
            };
            return (items.into_iter().map(one).collect(), note);
        }
        if newest.len() > 1 {
            from += newest.len().div_ceil(2);
            continue;
        }
        // One message alone is too long, however it is cut.
        let names: Vec<&str> = newest[0]
            .1
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .take(200)
            .collect();
        let note = format!(
            "the message is too long: name some of its fields with fields: {}",
            names.join(", ")
        );
        let note = note.chars().take(4000).collect();
        return (Vec::new(), Some(note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::LARGEST;

    #[test]
    fn messages_are_cut_to_what_a_model_reads() {
        let small = json!({"x": 1});
        let long = json!({"values": (0..5000).collect::<Vec<u32>>(), "name": "x".repeat(50)});
        let wide = Value::Object(
            (0..4000)
                .map(|field| (format!("field_{field}"), json!(field)))
                .collect(),
        );
        let many = json!({"items": (0..200).map(|at| json!({"at": at, "text": "word ".repeat(30)})).collect::<Vec<Value>>()});
        for (message, count, expected, noted) in [
            (small, 20, 20, false),
            (long, 20, 20, false),
            (many, 20, 20, false),
            (wide, 1, 0, true),
        ] {
            let messages = vec![(0.5, message); count];
            let (shown, note) = within(&messages);
            let size = serde_json::to_string(&shown).unwrap().len();
            assert!(size <= LARGEST, "{size} bytes");
            assert_eq!((shown.len(), note.is_some()), (expected, noted), "{note:?}");
        }
    }
}
