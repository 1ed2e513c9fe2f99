//! Which subsystems exclude each other.
//!
//! A subsystem is `name` or, with several machines, `unit/name`. `all` conflicts with every subsystem and `unit/all`
//! with every one of that unit. This module compares names only. Read [`Claim`].

use std::collections::BTreeSet;

/// The subsystem that conflicts with every other.
pub(crate) const ALL: &str = "all";

/// The subsystems that a name stands for.
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

/// A set of subsystems that a call needs or holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim(BTreeSet<String>);

impl Claim {
    /// The subsystems, sorted.
    #[must_use]
    pub fn to_vec(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }

    /// Adds subsystems.
    pub(crate) fn add(&mut self, names: &[String]) {
        self.0.extend(names.iter().cloned());
    }

    /// Whether the claim has no subsystem.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether two calls cannot hold the two claims at the same time.
    ///
    /// Looks up each name of the smaller claim in the larger one. A comparison of all pairs of two claims with
    /// thousands of names would keep the reservations locked for seconds.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        let (few, many) = if self.0.len() <= other.0.len() {
            (self, other)
        } else {
            (other, self)
        };
        let everything = many.0.contains(ALL) && !few.is_empty();
        everything || few.0.iter().any(|name| many.meets(name))
    }

    /// Whether `name` conflicts with a name of this claim. The caller checks whether the claim has `all`.
    fn meets(&self, name: &str) -> bool {
        match scope(name) {
            Scope::Everything => !self.is_empty(),
            Scope::Unit(unit) => {
                let prefix = format!("{unit}/");
                let first = self.0.range(prefix.clone()..).next();
                first.is_some_and(|first| first.starts_with(&prefix))
            }
            Scope::One(None) => self.0.contains(name),
            Scope::One(Some(unit)) => self.0.contains(name) || self.0.contains(&format!("{unit}/{ALL}")),
        }
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
        let (nothing, all) = (Claim::default(), Claim::from_iter(["all"]));
        assert!(!nothing.conflicts(&all) && !all.conflicts(&nothing));
    }
}
