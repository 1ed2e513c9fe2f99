//! What the toolbox tells the process of a pipeline, and what that says.
//!
//! Plain types. Read [`Order`], then [`Word`].

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

use crate::config::Section;
use crate::report::{Clockwork, Phase};
use crate::uses::Uses;

/// The first thing that the process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) config: Section,
    pub(crate) pipeline: String,
}

/// What the process is told later.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Plays the pipeline, which has been made.
    Play,
    /// Carries out a command, and answers under this number.
    Do { id: u64, command: Command },
}

/// A caller's command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Ends the pipeline, with an end of stream first unless `grace` is zero.
    Stop { grace: Duration },
    /// Pauses the pipeline.
    Pause,
    /// Resumes it.
    Resume,
    /// Updates the status from the elements.
    Refresh,
    /// Sets a property. The answer is a [`Changed`].
    Set {
        element: String,
        property: String,
        value: Value,
    },
    /// Writes a picture of its video to a new file. The answer is a [`Picture`](crate::report::Picture).
    Picture {
        element: Option<String>,
        format: Format,
        path: PathBuf,
    },
    /// Records what is encoded to a new file, while it plays on.
    Record { path: PathBuf },
    /// Finishes the file of a recording; the only one if there is no path. The answer is a [`RecordedFile`](crate::report::RecordedFile).
    StopRecording { path: Option<PathBuf> },
    /// Draws its graph. The answer is a [`Drawing`](crate::report::Drawing).
    Draw {
        /// With what is negotiated between the elements.
        caps: bool,
        /// And with every property that was set.
        properties: bool,
    },
}

/// What the process says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The pipeline is made, and waits for [`Order::Play`]; or why there is none. The first word.
    Made(Result<MadePipeline, ToolError>),
    /// It is in another phase.
    Phase(Phase),
    /// An element said something; an `error` is why it fails.
    Said {
        kind: String,
        element: String,
        message: String,
        debug: Option<String>,
    },
    /// Its state, at least twice a second.
    Clock(Clockwork),
    /// Something for the bus.
    Event {
        kind: String,
        severity: Severity,
        data: Value,
    },
    /// An element has reached a state: 2 is READY, 4 is PLAYING.
    Reached { element: String, state: u8 },
    /// An element has a thread of its own.
    Thread(String),
    /// The answer to a command.
    Answer {
        id: u64,
        answer: Result<Value, ToolError>,
    },
    /// The end of the stream has gone through: the files are complete.
    Finished,
    /// It is over.
    Over(End),
}

/// A pipeline that was made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MadePipeline {
    pub(crate) uses: Uses,
    /// Its elements, in the order in which GStreamer starts them.
    pub(crate) elements: Vec<String>,
}

/// How one run of a pipeline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Stopped,
    Eos,
    Failed,
}

/// What setting a property did.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Changed {
    /// What it was.
    pub(crate) before: Value,
    /// What it is now; an element may round or limit what it is given.
    pub(crate) now: Value,
}

/// How a picture is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    // Small.
    #[default]
    Jpeg,
    // Without loss.
    Png,
}

impl Format {
    pub(crate) fn mime_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
        }
    }
}
