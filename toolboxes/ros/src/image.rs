//! `ros_image`: what a camera of the graph sees, as one JPEG.

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::task::spawn_blocking;
use ros_graph::inbox::Bounds;
use ros_graph::picture::Picture;

use crate::name::full;
use crate::read::WAIT;
use crate::toolbox::Ros;

/// The longer side of what is shown, in points.
const POINTS: u32 = 1024;

/// The types of pictures.
const TYPES: [&str; 2] = ["sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"];

/// Look at a camera of the ROS graph: the newest picture of an image topic.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ImageArgs {
    /// Of sensor_msgs/Image or CompressedImage, such as /camera/image_raw/compressed.
    topic: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ImageOutput {
    topic: String,
    #[serde(rename = "type")]
    of: String,
    /// The frame in which the camera is.
    frame: String,
    /// How long ago it came, in seconds.
    age_s: f64,
    /// Points of the picture as it is shown.
    width: u32,
    height: u32,
    /// Points of the picture as it came.
    original_width: u32,
    original_height: u32,
    /// Of a depth picture: what is black and what is white, in the unit of the camera (millimetres for whole numbers, metres
    /// otherwise).
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
}

pub(crate) async fn image(context: Context<Ros>, args: ImageArgs) -> Result<ImageOutput, ToolError> {
    let topic = full(&args.topic)?;
    let _reading = context.toolbox().reading()?;
    let graph = context.toolbox().joined.graph().await?;
    let bounds = Bounds {
        messages: 1,
        ..Bounds::default()
    };
    let mut subscription = graph.subscribe(&topic, None, bounds, WAIT).await?;
    let of = subscription.type_name().to_string();
    if !TYPES.contains(&of.as_str()) {
        return Err(ToolError::bad_args(format!(
            "{topic} is {of}, expected {}: ros_read reads it",
            TYPES.join(" or ")
        )));
    }
    let message = subscription.newest(WAIT).await?;
    drop(subscription);
    let (age_s, frame) = (
        message.age.as_secs_f64(),
        message.value["header"]["frame_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    );
    let picture = spawn_blocking(move || Picture::of(&message.value, POINTS)).await??;
    context
        .show(ContentKind::Image, "image/jpeg", picture.jpeg)
        .await?;
    Ok(ImageOutput {
        topic,
        of,
        frame,
        age_s: (age_s * 1000.0).round() / 1000.0,
        width: picture.width,
        height: picture.height,
        original_width: picture.original.0,
        original_height: picture.original.1,
        range: picture.range.map(|(least, most)| [least, most]),
    })
}
