//! How the arguments of a call are read. Read [`Reading`].

use ovos_toolbox_wire::Effect;

/// The handling of undeclared arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// They are dropped.
    Drop,
    /// They are a problem.
    Refuse,
}

/// How arguments are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// To the letter of the schema, converted as pydantic converts: for schemas that were written for another service.
    /// Undeclared arguments are dropped, or refused where `additionalProperties` is `false`.
    Letter(Unknown),
    /// For the tools of toolboxes that were written for this service. What clients and models write in another form is
    /// read where it can mean one thing only: `null` as not given, the JSON text of a list or an object as that, a word
    /// in another case. A flag is no number. Undeclared arguments are refused where the tool moves or changes something,
    /// and ignored elsewhere, whatever `additionalProperties` says: only `true` or a schema declares them.
    Native {
        /// The effect of the tool.
        effect: Effect,
        /// Whether `null` counts as not given where the schema does not allow it. A value that another tool returned is
        /// no such form: a motion must not begin with a default in its place.
        null_is_absent: bool,
    },
}

impl Reading {
    /// The reading of a native tool's arguments as a client wrote them.
    #[must_use]
    pub fn native(effect: Effect) -> Self {
        Self::Native {
            effect,
            null_is_absent: true,
        }
    }

    pub(super) fn is_native(self) -> bool {
        matches!(self, Self::Native { .. })
    }

    pub(super) fn skips_null(self) -> bool {
        matches!(
            self,
            Self::Native {
                null_is_absent: true,
                ..
            }
        )
    }

    pub(super) fn unknown(self) -> Unknown {
        match self {
            Self::Letter(unknown) => unknown,
            Self::Native { effect, .. } => match effect {
                Effect::Write | Effect::Motion => Unknown::Refuse,
                Effect::Read | Effect::Safe | Effect::Stop | Effect::Resume => Unknown::Drop,
            },
        }
    }

    /// Whether an optional argument that does not fit is ignored, too.
    pub(super) fn forgives(self) -> bool {
        match self {
            Self::Letter(_) => false,
            Self::Native { effect, .. } => matches!(effect, Effect::Safe | Effect::Stop),
        }
    }
}
