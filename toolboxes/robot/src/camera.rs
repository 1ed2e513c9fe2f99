//! What a robot's file says of a camera.
//!
//! Owns where its pictures come from. Pure. Read [`CameraTable`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the pictures of a camera come from: one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CameraTable {
    /// A topic of sensor_msgs/Image or CompressedImage, for a robot in a graph of ROS.
    pub topic: Option<String>,
    /// A JPEG or a PNG that another program writes anew.
    pub file: Option<PathBuf>,
}

impl CameraTable {
    /// Checks that it has one source, which `in_graph` allows.
    ///
    /// # Errors
    /// It has none, both, or one that the robot cannot have; the error goes after the camera's key.
    pub(crate) fn check(&self, in_graph: bool) -> Result<(), String> {
        match (&self.topic, &self.file) {
            (Some(_), None) if in_graph => Ok(()),
            (Some(_), None) => Err(
                ".topic: this driver is in no graph of ROS; expected file = \"/path/of/a/picture.jpg\""
                    .to_owned(),
            ),
            (None, Some(file)) if file.is_absolute() => Ok(()),
            (None, Some(file)) => Err(format!(".file: {} is no absolute path", file.display())),
            _ => Err(": expected one of topic and file".to_owned()),
        }
    }
}
