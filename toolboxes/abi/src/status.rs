//! The values of [`Status`].

/// The result of a function: one of the constants of this module. An integer rather than an enum, because a foreign
/// library may return any value.
pub type Status = u32;

/// Done, or accepted.
pub const OK: Status = 0;
/// Failed.
pub const ERR: Status = 1;
/// The arguments cannot be used.
pub const BAD_ARGS: Status = 2;
/// Ended because of cancel or halt.
pub const CANCELLED: Status = 3;
/// Not possible now.
pub const BUSY: Status = 4;
/// The toolbox caught a panic or an exception.
pub const PANIC: Status = 5;
/// No such tool; from `plan` and `conclude`: the host handles this tool itself.
pub const UNKNOWN_TOOL: Status = 6;
