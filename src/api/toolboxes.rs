//! What the API asks of the toolboxes and the service.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::Effect;

use crate::policy::Backends;
use crate::registry::Tool;
use client::payload::{OffToolbox, ReloadOutcome, StatusResponse};

/// The toolboxes and the service, as far as the API needs them.
pub trait Toolboxes: Send + Sync + 'static {
    /// Loads, replaces and removes toolboxes until they match the plugin folders. Resolves after the swap.
    fn reload(&self) -> BoxFuture<'_, ReloadOutcome>;
    /// Returns the service, its connection, every toolbox, loaded or not, the files that could not be loaded, and the
    /// configuration keys whose new values take effect only when their toolbox is reloaded or the service restarts. Latches, calls
    /// and counters are left out: the API adds them.
    fn status(&self) -> StatusResponse;
    /// Returns what this generation of a toolbox has reported about the machines that it drives.
    fn backends(&self, toolbox_id: &str, generation: u64) -> Backends;
    /// Returns why tools of this effect are refused, if the configuration with which the toolbox was loaded could not be read.
    fn closed(&self, _toolbox_id: &str, _effect: Effect) -> Option<String> {
        None
    }
    /// What the configuration can say of a tool whose effect nothing states, for the person who is asked about it.
    fn note(&self, _tool: &Tool) -> Option<String> {
        None
    }
    /// The toolboxes that are installed and not loaded, although nothing is wrong with them.
    fn off(&self) -> Arc<[OffToolbox]> {
        Arc::default()
    }
    /// Records the latches, so that they survive a restart of the service. The error tells why they are not recorded, or that the
    /// outcome is not known yet: the wait for the disk is as short as the wait for a toolbox.
    fn latches_changed(&self) -> BoxFuture<'_, Result<(), String>>;
}
