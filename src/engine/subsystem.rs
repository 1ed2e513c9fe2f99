//! Which subsystems exclude each other.
//!
//! A subsystem is `name` or, with several machines, `unit/name`. `all` conflicts with every one and `unit/all` with
//! every one of that unit. Pure names: nothing here knows what they stand for. Read [`Claim`].

use std::collections::BTreeSet;

/// Conflicts with every subsystem.
pub(crate) const ALL: &str = "all";

/// A subsystem's name, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// Every subsystem.
    Everything,
    /// Every subsystem of one unit.
    Unit(&'a str),
    /// One subsystem and the unit it belongs to, if any.
    One(Option<&'a str>),
}

pub(crate) fn scope(subsystem: &str) -> Scope<'_> {
    if subsystem == ALL {
        return Scope::Everything;
    }
    match subsystem.split_once('/') {
        Some((unit, ALL)) => Scope::Unit(unit),
        Some((unit, _)) => Scope::One(Some(unit)),
        None => Scope::One(None),
    }
}

fn conflict(a: &str, b: &str) -> bool {
    let unit = |scope: Scope<'_>, other: Scope<'_>| match (scope, other) {
        (Scope::Unit(unit), Scope::One(Some(of)) | Scope::Unit(of)) => unit == of,
        _ => false,
    };
    match (scope(a), scope(b)) {
        (Scope::Everything, _) | (_, Scope::Everything) => true,
        (x, y) => a == b || unit(x, y) || unit(y, x),
    }
}

/// A set of subsystems that is wanted or held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim(BTreeSet<String>);

impl Claim {
    /// The subsystems, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The subsystems, sorted, as a list of their own.
    #[must_use]
    pub fn to_vec(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }

    /// Nothing is claimed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the two cannot be held at the same time.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.0.iter().any(|a| other.0.iter().any(|b| conflict(a, b)))
    }
}

impl<S: Into<String>> FromIterator<S> for Claim {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsystems_conflict_by_name_by_unit_and_by_all() {
        let rows = [
            ("left_arm", "left_arm", true),
            ("left_arm", "right_arm", false),
            ("all", "left_arm", true),
            ("all", "k1/base", true),
            ("k1/base", "k1/base", true),
            ("k1/base", "g1/base", false),
            ("k1/all", "k1/base", true),
            ("k1/all", "k1/all", true),
            ("k1/all", "g1/base", false),
            ("k1/all", "base", false),
            ("k1/base", "base", false),
        ];
        for (a, b, expected) in rows {
            let (left, right) = (Claim::from_iter([a]), Claim::from_iter([b]));
            assert_eq!(left.conflicts(&right), expected, "{a} with {b}");
            assert_eq!(right.conflicts(&left), expected, "{b} with {a}");
        }
        assert!(!Claim::default().conflicts(&Claim::from_iter(["all"])));
    }
}
