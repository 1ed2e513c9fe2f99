//! The instance, as its tools see it.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::channels::Channels;
use crate::config::Config;
use crate::graph::JoinedGraph;
use crate::moving::Moving;
use crate::pursuit::Pursuits;

/// Topics that are read at the same time.
pub(crate) const READERS: usize = 8;
/// What a call takes beside what it does: joining the graph, waiting for a listener, its end.
const BESIDE: f64 = 20.0;

/// The toolbox's instance.
pub struct Ros {
    pub(crate) config: Config,
    pub(crate) joined: Arc<JoinedGraph>,
    pub(crate) moving: Arc<Moving>,
    pub(crate) pursuits: Arc<Pursuits>,
    pub(crate) channels: Channels,
    pub(crate) readers: Arc<Semaphore>,
    pub(crate) host: Host,
}

impl Ros {
    /// A place among the readers.
    ///
    /// # Errors
    /// There are as many as are allowed.
    pub(crate) fn reading(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        Arc::clone(&self.readers).try_acquire_owned().map_err(|_| {
            ToolError::busy(format!(
                "{READERS} topics are read at the same time, which is the most: try again soon"
            ))
        })
    }
}

/// The time limit of an action that takes so many seconds by itself, in milliseconds.
pub(crate) fn limit_ms(seconds: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(seconds + BESIDE).as_millis()).unwrap_or(u64::MAX)
}
