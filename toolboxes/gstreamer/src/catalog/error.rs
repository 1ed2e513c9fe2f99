//! Why an element has no data sheet.

/// The element does not exist or cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CatalogError {
    /// No factory has this name.
    #[error("no element '{0}'")]
    Unknown(String),
    /// The plugin could not be loaded, or the element refused.
    #[error("element '{name}' is installed and cannot be made: {reason}")]
    Broken {
        /// The factory.
        name: String,
        /// GStreamer's message.
        reason: String,
    },
}
