//! What the toolbox asks its judge, and what that says.
//!
//! Plain types. Read [`Question`], then [`JudgeMessage`].

use ovos_toolbox_sdk::prelude::*;
use serde_json::value::RawValue;

use crate::catalog::Media;
use crate::holders::Holders;

/// A question with its number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NumberedQuestion {
    pub(crate) id: u64,
    pub(crate) question: Question,
    pub(crate) holders: Holders,
}

/// A question that only GStreamer can answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// Whether a pipeline can be started.
    Pipeline(String),
    /// The data sheet of an element.
    Element(String),
    /// Which elements there are.
    Elements(Search),
    /// Which encoders there are: of a codec, or one by name.
    Encoders { encoder: String, media: Media },
    /// A summary of the machine.
    Board,
    /// The cameras and HDMI inputs.
    Video,
    /// The microphones and loudspeakers.
    Audio,
    /// Nothing: the judge says which devices there are.
    Devices,
}

/// What elements have to have; everything that is given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Search {
    pub(crate) words: Vec<String>,
    pub(crate) class: Vec<String>,
    pub(crate) caps: Option<String>,
    /// Of source pads; false: of sink pads.
    pub(crate) source: Option<bool>,
    /// GStreamer's number of the lowest rank.
    pub(crate) rank: Option<i32>,
    pub(crate) limit: usize,
}

/// What the judge says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum JudgeMessage {
    /// The answer to a question.
    Answer {
        id: u64,
        answer: Result<Box<RawValue>, ToolError>,
    },
    /// The devices of GStreamer's monitor, once it has started.
    Present(Vec<MonitoredDevice>),
    /// One of them came.
    Came(MonitoredDevice),
    /// One of them went.
    Went(MonitoredDevice),
}

/// A device of GStreamer's monitor, as its events name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct MonitoredDevice {
    pub(crate) name: String,
    pub(crate) class: String,
}
