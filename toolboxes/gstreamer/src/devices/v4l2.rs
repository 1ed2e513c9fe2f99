//! What video devices say about themselves, through Video4Linux.

mod kernel;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ovos_toolbox_sdk::prelude::*;

pub(super) use kernel::Kernel;

/// Asks one device. Tests answer in the kernel's place.
pub(super) trait Probe: Send + Sync {
    /// Opens a device and asks what it can do. Does not change it.
    ///
    /// # Errors
    /// It cannot be opened, or is no video device.
    fn ask(&self, path: &Path) -> io::Result<Answer>;
}

/// Asks devices, but none that streams: some drivers of vendors stop when somebody else opens and closes theirs.
pub(super) struct Inquiry {
    probe: Box<dyn Probe>,
    answers: Mutex<HashMap<PathBuf, Answer>>,
}

impl Inquiry {
    pub(super) fn new(probe: impl Probe + 'static) -> Self {
        Self {
            probe: Box::new(probe),
            answers: Mutex::default(),
        }
    }

    /// What a device says, or said before one of our pipelines had it (`held`).
    ///
    /// # Errors
    /// It cannot be opened, or is no video device.
    pub(super) fn ask(&self, path: &Path, held: bool) -> io::Result<Answer> {
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if held {
            let known = answers().get(path).cloned();
            return Ok(known.unwrap_or(Answer {
                captures: true,
                ..Answer::default()
            }));
        }
        // Not under the lock: a device may take its time.
        let answer = self.probe.ask(path)?;
        answers().insert(path.to_owned(), answer.clone());
        Ok(answer)
    }
}

/// What a device said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) driver: String,
    pub(super) card: String,
    /// Such as `usb-0000:00:14.0-2` or `platform:vdin`.
    pub(super) bus: String,
    /// Whether pictures can be taken from it.
    pub(super) captures: bool,
    pub(super) formats: Vec<Format>,
    /// What comes in through the cable; `None` where there is no such question to ask.
    pub(super) signal: Option<Incoming>,
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

/// What comes in through a cable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Incoming {
    /// Nothing: no cable, or a source that is off.
    Nothing,
    /// Something the receiver cannot hold on to.
    Unstable,
    /// Pictures.
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

    /// 60 for 59.94, too: that is what people call it, and `rate` has the other.
    fn shown_rate(&self) -> String {
        format!("{:.0}", self.rate)
    }
}
