//! What the tools share. Read [`Gstreamer`].

use std::sync::Arc;

use crate::config::Config;
use crate::hotplug::Hotplug;
use crate::instance::Instances;
use crate::judge::Judge;
use crate::policy::Policy;

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
