//! Deliveries from the bus to the toolboxes and to the configuration.

use ovos_toolbox_wire::Object;

use bus::Message;

/// Receives the messages other than requests that the router passes on.
pub(super) trait Deliveries: Send + Sync + 'static {
    /// Delivers a message of a topic that a toolbox subscribed to, or an answer that a toolbox waits for.
    fn deliver(&self, message: &Message);
    /// Reports `configuration.updated`: the files may have changed.
    fn configuration_updated(&self);
    /// Reports `configuration.patch`: a change that is in no file.
    fn configuration_patched(&self, head: &Message, data: &Object);
    /// Reports `configuration.patch.clear`: the files apply again.
    fn configuration_patches_cleared(&self);
}

/// Reads a message for toolboxes, and delivers it.
pub(super) fn deliver(deliveries: &dyn Deliveries, text: &str) {
    match Message::parse(text) {
        Ok(message) => deliveries.deliver(&message),
        Err(error) => tracing::debug!(%error, "dropped a malformed message for a toolbox"),
    }
}
