//! Decides which calls of one answer run together. Pure.

use ovos_toolbox_wire::Effect;

/// The properties of a call that decide which other calls it may run together with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) toolbox_id: String,
    pub(crate) effect: Effect,
    /// The subsystems that its plan holds.
    pub(crate) subsystems: Vec<String>,
}

impl Claim {
    /// Whether two calls may run at the same time: either both only read, or both hold subsystems and share none. A call that
    /// changes something and holds nothing runs alone, because its dependencies are unknown.
    fn goes_with(&self, other: &Self) -> bool {
        match (self.effect, other.effect) {
            (Effect::Read, Effect::Read) => true,
            (Effect::Read, _) | (_, Effect::Read) => false,
            _ if self.subsystems.is_empty() || other.subsystems.is_empty() => false,
            _ => !self.shares(other),
        }
    }

    /// Whether two calls share a subsystem. A call that holds nothing may concern its whole toolbox.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        let (own, theirs) = (&self.subsystems, &other.subsystems);
        let together = || {
            own.iter()
                .any(|own| theirs.iter().any(|theirs| conflict(own, theirs)))
        };
        self.toolbox_id == other.toolbox_id && (own.is_empty() || theirs.is_empty() || together())
    }
}

/// Whether two subsystems of a toolbox are the same, or one contains the other.
fn conflict(a: &str, b: &str) -> bool {
    let unit = |subsystem: &str| subsystem.split_once('/').map(|(unit, _)| unit.to_owned());
    let covers = |whole: &str, part: &str| {
        whole == "all"
            || whole
                .strip_suffix("/all")
                .is_some_and(|of| unit(part).as_deref() == Some(of))
    };
    a == b || covers(a, b) || covers(b, a)
}

/// Returns the calls in batches, in order. The calls of a batch run together. The numbers are positions of calls.
pub(crate) fn batches(claims: &[Claim]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        match batches.last_mut() {
            Some(batch) if batch.iter().all(|other| claim.goes_with(&claims[*other])) => batch.push(at),
            _ => batches.push(vec![at]),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(toolbox: &str, effect: Effect, subsystems: &[&str]) -> Claim {
        Claim {
            toolbox_id: toolbox.to_owned(),
            effect,
            subsystems: subsystems.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn what_shares_nothing_runs_together_and_the_rest_in_order() {
        let read = || claim("robot", Effect::Read, &[]);
        let moves = |subsystem| claim("robot", Effect::Motion, &[subsystem]);
        for (claims, expected) in [
            (vec![read(), read()], vec![vec![0, 1]]),
            (vec![moves("left_arm"), moves("right_arm")], vec![vec![0, 1]]),
            (vec![moves("left_arm"), moves("left_arm")], vec![vec![0], vec![1]]),
            (vec![moves("all"), moves("left_arm")], vec![vec![0], vec![1]]),
            (vec![moves("five/arm"), moves("six/all")], vec![vec![0, 1]]),
            (vec![moves("six/arm"), moves("six/all")], vec![vec![0], vec![1]]),
            // A read that follows a motion is meant to happen after it.
            (vec![moves("left_arm"), read()], vec![vec![0], vec![1]]),
            (
                vec![moves("a"), claim("log", Effect::Write, &[]), moves("b")],
                vec![vec![0], vec![1], vec![2]],
            ),
            (
                vec![
                    claim("a", Effect::Motion, &["x"]),
                    claim("b", Effect::Safe, &["x"]),
                ],
                vec![vec![0, 1]],
            ),
        ] {
            assert_eq!(batches(&claims), expected, "{claims:?}");
        }
    }
}
