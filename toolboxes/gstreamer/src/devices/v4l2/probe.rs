//! What a video device answers. Read [`Probe`].

use std::io;
use std::path::Path;

use ovos_toolbox_sdk::prelude::*;

/// Queries one device. Tests replace the kernel.
pub(crate) trait Probe: Send + Sync {
    /// Opens a device and queries its capabilities, without changing it.
    ///
    /// # Errors
    /// It cannot be opened, or is no video device.
    fn ask(&self, path: &Path) -> io::Result<Answer>;
}

/// The answer of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) driver: String,
    pub(crate) card: String,
    /// Such as `usb-0000:00:14.0-2` or `platform:vdin`.
    pub(crate) bus: String,
    /// Whether it can capture video.
    pub(crate) captures: bool,
    pub(crate) formats: Vec<Format>,
    /// The incoming signal; `None` if the device cannot report it.
    pub(crate) signal: Option<Incoming>,
}

/// A format of pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Format {
    /// Four letters, such as `NV12` or `MJPG`.
    pub(crate) fourcc: String,
    /// The driver's words.
    pub(crate) description: String,
    /// Whether pictures come compressed.
    pub(crate) compressed: bool,
    /// The sizes it has, where the driver lists them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sizes: Vec<Size>,
    /// The smallest and the largest size, where any between them will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_range: Option<SizeRange>,
}

/// A size of pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Size {
    /// Pixels.
    pub(crate) width: u32,
    /// Pixels.
    pub(crate) height: u32,
    /// Pictures a second as fractions, such as `30/1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) framerates: Vec<String>,
}

/// Sizes between two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct SizeRange {
    /// Pixels.
    pub(crate) min_width: u32,
    /// Pixels.
    pub(crate) min_height: u32,
    /// Pixels.
    pub(crate) max_width: u32,
    /// Pixels.
    pub(crate) max_height: u32,
}

/// The state of a cable input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// No signal: no cable, or a source that is off.
    Nothing,
    /// A signal that the receiver cannot lock onto.
    Unstable,
    /// A signal.
    Signal(Signal),
}

/// A signal that comes in.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Signal {
    /// Pixels.
    pub(crate) width: u32,
    /// Lines of a whole picture.
    pub(crate) height: u32,
    /// Pictures a second; fields where it is interlaced.
    pub(crate) rate: f64,
    /// Whether lines come in two halves.
    pub(crate) interlaced: bool,
}

impl Signal {
    /// `1080p60`.
    pub(crate) fn short(&self) -> String {
        let scan = if self.interlaced { 'i' } else { 'p' };
        format!("{}{scan}{}", self.height, self.shown_rate())
    }

    /// `1920x1080@60`.
    pub(crate) fn long(&self) -> String {
        let scan = if self.interlaced { "i" } else { "" };
        format!("{}x{}{scan}@{}", self.width, self.height, self.shown_rate())
    }

    /// 59.94 is shown as 60, the usual name; `rate` has the exact value.
    fn shown_rate(&self) -> String {
        format!("{:.0}", self.rate)
    }
}
