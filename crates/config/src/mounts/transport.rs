//! How a mounted server is reached.

use serde::{Deserialize, Serialize};

/// How a mounted server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountTransport {
    /// The server is a process, which reads and writes lines.
    Stdio,
    /// The server has a URL.
    Http,
}
