//! Pictures of a robot's cameras in its graph.

use std::time::Duration;

use ros_graph::error::GraphError;
use ros_graph::inbox::Bounds;

use super::link::BaseLink;
use crate::adapter::SeenMessage;
use crate::ros::RosError;

/// How long a picture is waited for.
const WAIT: Duration = Duration::from_secs(4);
/// The types of pictures.
const TYPES: [&str; 2] = ["sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"];

/// The next picture on a topic, which is subscribed for as long as that takes.
pub(super) async fn see(link: &BaseLink, topic: &str) -> Result<SeenMessage, RosError> {
    let bounds = Bounds {
        messages: 1,
        ..Bounds::default()
    };
    let mut subscription = link.graph.subscribe(topic, None, bounds, WAIT).await?;
    let of = subscription.type_name().to_string();
    if !TYPES.contains(&of.as_str()) {
        let other = GraphError::OtherType {
            name: topic.to_owned(),
            expected: TYPES.join(" or "),
            found: vec![of],
        };
        return Err(other.into());
    }
    let message = subscription.newest(WAIT).await?;
    Ok(SeenMessage {
        age: message.age,
        message: message.value,
    })
}
