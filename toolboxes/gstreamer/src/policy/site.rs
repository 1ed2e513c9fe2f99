//! Where a value stands that is judged.

use super::access::Role;

/// Where a value stands.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) role: Role,
    /// The port that belongs to a host.
    pub(super) port: Option<u16>,
    /// Whether the element is one of `allow_elements`.
    pub(super) allowed: bool,
    pub(super) depth: usize,
}

impl Site {
    /// A value that stands by itself inside another one.
    pub(super) fn inside(self) -> Self {
        Self {
            role: Role::Unknown,
            port: None,
            depth: self.depth + 1,
            ..self
        }
    }
}
