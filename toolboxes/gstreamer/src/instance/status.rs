//! The status of an instance.
//!
//! Owns the tools' answers: a list entry, and the full status. Read [`Status`].

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

use crate::config::Restart;
use crate::report::{Clockwork, Message, Phase};

/// One instance, as `get_running_instances` lists it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Summary {
    /// What the other tools call it.
    pub(crate) instance_id: String,
    /// Its name.
    pub(crate) name: String,
    /// What it was started from.
    pub(crate) pipeline: String,
    /// Where it is in its life.
    pub(crate) state: Phase,
    /// Whether an element holds its process up; a stop ends it all the same.
    pub(crate) stuck: bool,
    /// Seconds since it was started.
    pub(crate) uptime_s: f64,
    /// When it is started again.
    pub(crate) restart: Restart,
    /// Whether it is started with the toolbox.
    pub(crate) autostart: bool,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// Devices it holds.
    pub(crate) devices: Vec<String>,
    /// Files, or patterns of files, it writes.
    pub(crate) files: Vec<PathBuf>,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Why it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// Everything about one instance.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    #[serde(flatten)]
    pub(crate) summary: Summary,
    #[serde(flatten)]
    pub(crate) clockwork: Clockwork,
    /// Seconds since data began to flow.
    pub(crate) playing_s: Option<f64>,
    /// Whether the files were finished properly, once it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files_finished: Option<bool>,
    /// The last error with all it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<Message>,
    /// The last things its elements said, newest last.
    pub(crate) messages: Vec<Message>,
}

impl Summary {
    /// Whether it has this id or name.
    pub(super) fn is(&self, id: &str) -> bool {
        self.instance_id == id || self.name == id
    }
}
