//! How a robot is stopped, as its file says it.
//!
//! Owns what an emergency does with the motors, and the order in which parts are brought to rest. Pure. Read [`Stop`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::Capabilities;
use crate::subsystem::Subsystem;

/// What an emergency stop does with the motors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estop {
    /// Hold position with power.
    Hold,
    /// Switch the power off: arms sink, a legged robot falls.
    TorqueOff,
    /// Give way slowly.
    Damp,
}

/// The table `stop` of a robot's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// What an emergency does. Default: what is safe for the driver.
    pub emergency: Option<Estop>,
    /// The parts in the order in which they come to rest, those of a group together: every part of the robot, the base first and
    /// alone. Without an order the base comes first, and then all others together.
    pub order: Vec<Vec<Subsystem>>,
}

impl Stop {
    /// Checks the order against the parts that there are.
    ///
    /// # Errors
    /// A part is left out, is named twice, or is none of the robot's, or something comes before the base; with the key.
    pub(crate) fn check(&self, parts: &Capabilities) -> Result<(), String> {
        let mut seen = Vec::new();
        for part in self.order.iter().flatten() {
            if *part == Subsystem::All || !parts.has(*part) {
                let has: Vec<&str> = parts.subsystems().into_iter().map(Subsystem::as_str).collect();
                return Err(format!(
                    "stop.order: the robot has no {part}; it has {}",
                    has.join(", ")
                ));
            }
            if seen.contains(part) {
                return Err(format!("stop.order: {part} is named twice"));
            }
            seen.push(*part);
        }
        if self.order.iter().any(Vec::is_empty) {
            return Err(
                "stop.order: a group is empty; expected lists of parts such as [[\"base\"], [\"right_arm\"]]"
                    .to_owned(),
            );
        }
        let left_out = parts.subsystems().into_iter().find(|part| !seen.contains(part));
        if let Some(part) = left_out.filter(|_| !self.order.is_empty()) {
            return Err(format!(
                "stop.order: {part} is left out; name every part of the robot, or leave `order` out"
            ));
        }
        let first = self.order.first().map(Vec::as_slice).unwrap_or_default();
        if seen.contains(&Subsystem::Base) && first != [Subsystem::Base] {
            return Err(
                "stop.order: base has to be the first group, alone: what drives is stopped before all else"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// These parts in groups, in the order in which they come to rest.
    pub(crate) fn groups(&self, parts: &[Subsystem]) -> Vec<Vec<Subsystem>> {
        let mut groups: BTreeMap<usize, Vec<Subsystem>> = BTreeMap::new();
        for part in parts {
            groups.entry(self.place(*part)).or_default().push(*part);
        }
        groups.into_values().collect()
    }

    /// The place of a part in the order; parts that are not named share the last place.
    pub(crate) fn place(&self, part: Subsystem) -> usize {
        let at = self.order.iter().position(|group| group.contains(&part));
        at.unwrap_or(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::{Base, Lift};

    #[test]
    fn an_order_names_parts_that_there_are_and_the_base_first() {
        let parts = Capabilities {
            base: Some(Base::default()),
            lift: Some(Lift::default()),
            gantry: Some(Vec::new()),
            ..Capabilities::default()
        };
        for (order, wrong) in [
            (r#"[["base"], ["gantry"], ["lift"]]"#, None),
            (r#"[["base"], ["gantry", "lift"]]"#, None),
            (r#"[["lift"], ["gantry"]]"#, Some("base is left out")),
            (r#"[["base"], ["gantry"]]"#, Some("lift is left out")),
            (r#"[["base"], [], ["gantry", "lift"]]"#, Some("a group is empty")),
            ("[]", None),
            (
                r#"[["lift"], ["base"], ["gantry"]]"#,
                Some("base has to be the first"),
            ),
            (
                r#"[["base", "lift"], ["gantry"]]"#,
                Some("base has to be the first"),
            ),
            (r#"[["gantry"], ["gantry"]]"#, Some("named twice")),
            (r#"[["hitch"]]"#, Some("has no hitch; it has base, lift, gantry")),
        ] {
            let stop: Stop = toml::from_str(&format!("order = {order}")).unwrap();
            match (stop.check(&parts), wrong) {
                (Ok(()), None) => {}
                (Err(error), Some(wrong)) => assert!(error.contains(wrong), "{order}: {error}"),
                (found, _) => panic!("{order}: {found:?}"),
            }
        }
        let stop: Stop = toml::from_str(r#"order = [["base"], ["lift"]]"#).unwrap();
        let places = [Subsystem::Base, Subsystem::Lift, Subsystem::Gantry].map(|part| stop.place(part));
        assert_eq!(places, [0, 1, 2]);
        let parts = [Subsystem::Gantry, Subsystem::Lift, Subsystem::Base];
        let groups = [[Subsystem::Base], [Subsystem::Lift], [Subsystem::Gantry]];
        assert_eq!(stop.groups(&parts), groups);
        // Without an order all come to rest at once.
        assert_eq!(Stop::default().groups(&parts), [parts]);
    }
}
