//! Which motion to end.

/// Which motion to end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halt {
    /// Subsystem names; `["all"]` for everything.
    pub subsystems: Vec<String>,
    /// True: act as the configuration says for an emergency. False: hold position with power.
    pub emergency: bool,
}

impl Halt {
    pub(crate) fn new(subsystems: Vec<String>, emergency: bool) -> Self {
        Self {
            subsystems,
            emergency,
        }
    }

    /// Whether the halt ends the motion of `subsystem`: it names the subsystem, or covers it by `all` or `<unit>/all`.
    #[must_use]
    pub fn includes(&self, subsystem: &str) -> bool {
        self.subsystems.iter().any(|halted| overlap(halted, subsystem))
    }
}

/// Whether two subsystems overlap: equal, or one is the `all` of the other.
fn overlap(a: &str, b: &str) -> bool {
    let covers = |all: &str, one: &str| {
        all == "all"
            || all
                .strip_suffix("/all")
                .is_some_and(|unit| one.strip_prefix(unit).is_some_and(|rest| rest.starts_with('/')))
    };
    a == b || covers(a, b) || covers(b, a)
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn subsystems_overlap_by_name_unit_and_all() {
        for (a, b, expected) in [
            ("left_arm", "left_arm", true),
            ("left_arm", "right_arm", false),
            ("all", "left_arm", true),
            ("all", "two/flight", true),
            ("two/all", "two/flight", true),
            ("two/all", "twofold/flight", false),
            ("two/all", "one/flight", false),
            ("two/flight", "all", true),
        ] {
            assert_eq!(overlap(a, b), expected, "{a} and {b}");
            assert_eq!(overlap(b, a), expected, "{b} and {a}");
        }
    }
}
