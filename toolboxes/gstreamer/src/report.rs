//! What a running pipeline says of itself: its phase, its messages, what flows.
//!
//! These types pass from a pipeline's process to the toolbox, and from there into the tools' answers. Read [`Phase`], then
//! [`Clockwork`].

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// On its way to `playing`, or waiting for its first data.
    Starting,
    /// Data flows.
    Playing,
    /// It plays, and for some seconds no data has come to a sink.
    Stalled,
    /// Held by `pause_pipeline`.
    Paused,
    /// Its files are being finished.
    Stopping,
    /// Failed, and started again when the wait is over.
    Restarting,
    /// Over: it came to its end or was stopped.
    Ended,
    /// Over: it failed.
    Failed,
}

impl Phase {
    /// Whether the instance has ended.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed)
    }
}

/// Something a pipeline said.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Said")]
pub(crate) struct Message {
    /// `error`, `warning`, `info`, `eos`, `element` or `state`.
    pub(crate) kind: String,
    /// Which element.
    pub(crate) element: String,
    /// What it said.
    pub(crate) message: String,
    /// What it adds for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) debug: Option<String>,
    /// Seconds since the instance was started.
    pub(crate) at_s: f64,
}

impl Message {
    /// One line: element, message, and the last line of the debug text, which often has a file's name.
    pub(crate) fn line(&self) -> String {
        let adds = self.debug.as_deref().and_then(|debug| debug.split_once('\n'));
        match adds.map(|(_, adds)| adds.trim()).filter(|adds| !adds.is_empty()) {
            Some(adds) => format!("{}: {} ({adds})", self.element, self.message),
            None => format!("{}: {}", self.element, self.message),
        }
    }
}

/// How far a pipeline is, asked of its elements.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Clockwork {
    /// Seconds played.
    pub(crate) position_s: Option<f64>,
    /// Seconds in all, when it has an end.
    pub(crate) duration_s: Option<f64>,
    /// From capture to presentation, in milliseconds.
    pub(crate) latency_ms: Option<f64>,
    /// Whether its source is live.
    pub(crate) live: Option<bool>,
    /// Frames that were left out: by sinks and encoders because they were late, or that a live source did not give although
    /// its caps state the rate.
    pub(crate) dropped_frames: u64,
    /// What goes through it.
    pub(crate) flows: Vec<Flow>,
}

/// What flowed through one place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Flow {
    /// The element's name in this pipeline.
    pub(crate) element: String,
    /// Its kind, such as `srtsink`.
    pub(crate) factory: String,
    /// `sink`: what arrived there. `encoder`, `source`: the video frames that left it.
    pub(crate) place: Place,
    /// Buffers since the pipeline was started; of an encoder or a source these are frames.
    pub(crate) buffers: u64,
    /// Bytes since the pipeline was started.
    pub(crate) bytes: u64,
    /// Bits per second over the last seconds.
    pub(crate) bitrate: f64,
    /// Buffers per second over the last seconds.
    pub(crate) rate: f64,
    /// Frames per second that its caps state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nominal_rate: Option<f64>,
    /// Seconds since the last buffer, or since the start if there was none.
    pub(crate) idle_s: f64,
}

/// Where something is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// The end of the pipeline.
    Sink,
    /// Behind a video encoder.
    Encoder,
    /// Behind a video source.
    Source,
}

/// A compressed picture in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) path: PathBuf,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) element: String,
}

/// The graph of a pipeline.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Drawing {
    /// In the DOT language.
    pub(crate) dot: String,
    /// The names of the elements.
    pub(crate) elements: Vec<String>,
}

/// A file that was recorded while its pipeline played on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedFile {
    pub(crate) path: PathBuf,
    /// Why the file is not complete, if it is not.
    pub(crate) trouble: Option<String>,
}
