//! Why a calculation has no result.

/// Why a calculation has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MathError {
    #[error("syntax error at character {at}: {expected}")]
    Syntax { at: usize, expected: String },
    #[error("{what}: at most {limit}, got {found}")]
    TooLarge {
        what: &'static str,
        limit: usize,
        found: usize,
    },
    #[error("unknown name {name}; available: {known}")]
    UnknownName { name: String, known: &'static str },
    #[error("{function} takes {expected}, got {found}")]
    ArgumentCount {
        function: String,
        expected: &'static str,
        found: usize,
    },
    #[error("{function} is not defined for {value}")]
    Domain { function: &'static str, value: f64 },
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result is too large")]
    Overflow,
    #[error("the result is not a number")]
    NotANumber,
    #[error("unknown unit {unit:?}; known are {known}")]
    UnknownUnit { unit: String, known: String },
    #[error("cannot convert {from} ({from_category}) to {to} ({to_category})")]
    IncompatibleUnits {
        from: String,
        from_category: &'static str,
        to: String,
        to_category: &'static str,
    },
}

/// Refuses infinite values and values that are not a number, because JSON has neither.
pub(crate) fn finite(value: f64) -> Result<f64, MathError> {
    if value.is_nan() {
        return Err(MathError::NotANumber);
    }
    if value.is_infinite() {
        return Err(MathError::Overflow);
    }
    Ok(value)
}
