//! Where the way of a joint ends, as a measurement has shown it.

/// One end of a joint's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) step: i64,
    /// Whether the joint pressed there.
    pub(super) felt: bool,
}
