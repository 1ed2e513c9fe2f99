//! Whether the service brings a bus of its own.

use serde::{Deserialize, Serialize};

/// Whether the service runs a messagebus itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddedBus {
    /// Never; the service is only a client.
    Never,
    /// If the configured address is local and nothing listens on it.
    Auto,
    /// Always; a port in use is an error.
    Always,
}
