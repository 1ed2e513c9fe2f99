//! What a robot's file says of a camera.
//!
//! Owns where its pictures come from. Pure. Read [`CameraTable`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::video;

/// Where the pictures of a camera come from: one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CameraTable {
    /// A topic of sensor_msgs/Image or CompressedImage, for a robot in a graph of ROS.
    pub topic: Option<String>,
    /// A JPEG or a PNG that another program writes anew.
    pub file: Option<PathBuf>,
    /// A camera of this machine (V4L2), such as `/dev/video0`, through GStreamer; `test` for its test picture.
    pub device: Option<String>,
}

impl CameraTable {
    /// Checks that there is exactly one source. `in_graph`: whether the robot uses ROS, which `topic` needs.
    ///
    /// # Errors
    /// It has none, both, or one that the robot cannot have; the error goes after the camera's key.
    pub(crate) fn check(&self, in_graph: bool) -> Result<(), String> {
        match (&self.topic, &self.file, &self.device) {
            (Some(_), None, None) if in_graph => Ok(()),
            (Some(_), None, None) => Err(
                ".topic: this driver is in no graph of ROS; expected file = \"/path/of/a/picture.jpg\" or device = \"/dev/video0\""
                    .to_owned(),
            ),
            (None, Some(file), None) if file.is_absolute() => Ok(()),
            (None, Some(file), None) => Err(format!(".file: {} is not an absolute path", file.display())),
            (None, None, Some(device)) => video::check(device),
            _ => Err(": expected one of topic, file and device".to_owned()),
        }
    }
}
