//! Why something is not allowed, and the line of the configuration that would allow it.

use ovos_toolbox_sdk::prelude::{ToolError, json};

/// Why a pipeline is not allowed, and what would allow it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{element} is not allowed: {reason} (see `{key}` in the configuration of gstreamer{})", self.advice())]
pub(crate) struct Refusal {
    /// The element, or `pipeline`; empty until [`Refusal::on`].
    pub(crate) element: String,
    /// The refused property, if a property was refused.
    pub(crate) property: Option<String>,
    /// The reason, without the element's name.
    pub(crate) reason: String,
    /// The configuration key that would have to change.
    pub(crate) key: &'static str,
    /// The key with a value that allows it, where there is one.
    pub(crate) line: Option<String>,
}

impl Refusal {
    pub(super) fn new(reason: impl Into<String>, key: &'static str) -> Self {
        Self {
            element: String::new(),
            property: None,
            reason: reason.into(),
            key,
            line: None,
        }
    }

    /// States the element and the property, unless the refusal is of an inner one.
    pub(super) fn on(mut self, element: &str, property: Option<&str>) -> Self {
        if self.element.is_empty() {
            element.clone_into(&mut self.element);
            self.property = property.map(str::to_owned);
        }
        self
    }

    /// States the line: what the list has now, and what was refused.
    pub(super) fn allowed_by<T: ToString>(mut self, now: &[T], more: &str) -> Self {
        let mut list: Vec<String> = now.iter().map(ToString::to_string).collect();
        list.push(more.to_owned());
        self.line = Some(format!("\"{}\": {}", self.key, json!(list)));
        self
    }

    fn advice(&self) -> String {
        let line = self.line.as_ref();
        line.map_or_else(String::new, |line| format!("; this line allows it: {line}"))
    }
}

impl Refusal {
    /// The refusal as a call's error.
    pub(crate) fn denial(&self) -> ToolError {
        let data = json!({"element": self.element, "property": self.property, "key": self.key});
        ToolError::new("PermissionError", self).with_data(data)
    }
}
