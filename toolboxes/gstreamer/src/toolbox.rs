//! What the tools share. Read [`Gstreamer`].

use std::sync::Arc;

use ovos_toolbox_sdk::prelude::ToolError;

use crate::config::Config;
use crate::hotplug::Hotplug;
use crate::instance::Instances;
use crate::judge::{AnswerText, Judge};
use crate::policy::Policy;
use crate::question::Question;

/// The toolbox: the judge of pipelines and the running ones. GStreamer is in their processes.
pub struct Gstreamer {
    pub(crate) config: Arc<Config>,
    /// Judges the files and devices of the tools themselves.
    pub(crate) policy: Policy,
    pub(crate) instances: Instances,
    pub(crate) judge: Arc<Judge>,
    /// Watches as long as the toolbox is there.
    pub(crate) _hotplug: Option<Hotplug>,
}

impl Gstreamer {
    /// Asks the judge.
    ///
    /// # Errors
    /// Those of the question; the judge cannot be started or crashed.
    ///
    /// # Cancel safety
    /// When dropped, the answer is discarded.
    pub(crate) async fn ask<T>(&self, question: Question) -> Result<AnswerText<T>, ToolError> {
        self.judge.ask(question, self.instances.holders()).await
    }
}
