//! What is wrong at a place in a message.

/// A fault; without a reason the message is too large.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) path: String,
    pub(super) reason: Option<String>,
}

impl Fault {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            reason: Some(reason.into()),
        }
    }

    pub(super) fn size() -> Self {
        Self {
            path: String::new(),
            reason: None,
        }
    }

    /// The same, seen from the message or the list around it.
    pub(super) fn within(mut self, place: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{place}{dot}{}", self.path);
        self
    }

    pub(super) fn at(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }
}
