//! Why a call is refused or ended. Read [`Refusal`].

/// Why a call is refused or ended: a stable code and a sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{msg}")]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) msg: String,
}

impl Refusal {
    /// Whether a call that ends with it commands nothing more: another party flies, or a stop has ended the call.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self.code,
            "pilot_override" | "failsafe" | "stopped" | "cancelled" | "closed"
        )
    }
}

/// Returns a [`Refusal`] as an error.
pub(crate) fn refuse<T>(code: &'static str, msg: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        code,
        msg: msg.into(),
    })
}
