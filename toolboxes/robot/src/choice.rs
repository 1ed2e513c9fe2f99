//! Which kind of robot a section asks for, in today's spelling or in the one before.
//!
//! Owns what the keys `adapter`, `johnny5`, `booster_k1`, `unitree_g1` and `sim.model` mean now. Pure. Read [`Choice`].

use ovos_toolbox_sdk::prelude::*;
use serde_json::{Value, json};

use crate::config::{AdapterKind, RobotConfig};

/// What a robot's section asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// The name of the robot's file.
    pub(crate) kind: String,
    /// Changes to its channels.
    pub(crate) channels: Object,
    /// The key of the changes, for errors.
    pub(crate) key: &'static str,
    /// A simulator takes the place of the hardware.
    pub(crate) simulated: bool,
    /// It is the simulated robot of the catalogue, which has everything: no kind was asked for.
    pub(crate) in_catalogue: bool,
    /// The section in today's spelling, where it is written in the one before.
    pub(crate) respelled: Option<Value>,
}

impl Choice {
    /// What a section asks for.
    ///
    /// # Errors
    /// It says the same in both spellings, or a word of the old one is unknown.
    pub(crate) fn of(robot: &RobotConfig) -> Result<Self, String> {
        let both = |new: &str, old: &str, what: &str| {
            Err(format!(
                "`{old}` is the old form of `{new}`, and only one may be given: remove `{old}`; {what}"
            ))
        };
        if robot.kind.is_some() {
            let before = [
                ("adapter", robot.adapter.is_some()),
                ("johnny5", !robot.johnny5.is_empty()),
                ("booster_k1", !robot.booster_k1.is_empty()),
                ("unitree_g1", !robot.unitree_g1.is_empty()),
                ("sim.model", robot.sim.model.is_some()),
            ];
            if let Some((old, _)) = before.into_iter().find(|(_, given)| *given) {
                return both("kind", old, "its keys belong into `channels`");
            }
        }
        if robot.adapter.is_some() && !robot.channels.is_empty() {
            return both("channels", "adapter", "name the robot with `kind`");
        }
        if robot.adapter.is_some() && robot.simulated.is_some() {
            return both("simulated", "adapter", "name the robot with `kind`");
        }
        if robot.kind.is_some() || robot.adapter.is_none() {
            return Ok(Self::in_todays_spelling(robot));
        }
        let adapter = robot.adapter.unwrap_or_default();
        let (mut channels, key) = match adapter {
            AdapterKind::Sim => (Object::new(), "sim"),
            AdapterKind::Johnny5 => (robot.johnny5.clone(), "johnny5"),
            AdapterKind::BoosterK1 => (robot.booster_k1.clone(), "booster_k1"),
            AdapterKind::UnitreeG1 => (robot.unitree_g1.clone(), "unitree_g1"),
        };
        let kind = match adapter {
            AdapterKind::Sim => robot.sim.model.unwrap_or_default().kind(),
            AdapterKind::Johnny5 => word(
                &mut channels,
                "johnny5.layout",
                &[("johnny5", "johnny5"), ("so101", "so101"), ("lekiwi", "lekiwi")],
            )?,
            AdapterKind::BoosterK1 => word(
                &mut channels,
                "booster_k1.profile",
                &[("topics", "booster_k1_topics"), ("booster_rpc", "booster_k1")],
            )?,
            AdapterKind::UnitreeG1 => "unitree_g1",
        };
        let simulated = adapter == AdapterKind::Sim;
        let mut respelled = json!({ "kind": kind });
        if !channels.is_empty() {
            respelled["channels"] = json!(channels);
        }
        Ok(Self {
            kind: kind.to_owned(),
            channels,
            key,
            simulated,
            in_catalogue: simulated,
            respelled: (!simulated).then_some(respelled),
        })
    }

    /// Without a kind it is the simulated robot that has everything.
    fn in_todays_spelling(robot: &RobotConfig) -> Self {
        let of_simulator = || robot.sim.model.unwrap_or_default().kind().to_owned();
        Self {
            kind: robot.kind.clone().unwrap_or_else(of_simulator),
            channels: robot.channels.clone(),
            key: "channels",
            simulated: robot.simulated.unwrap_or(robot.kind.is_none()),
            in_catalogue: robot.kind.is_none(),
            respelled: None,
        }
    }
}

/// Takes a word of the old spelling out of a section: the kind that it means, or the first one.
fn word(section: &mut Object, key: &str, known: &[(&str, &'static str)]) -> Result<&'static str, String> {
    let last = key.rsplit('.').next().unwrap_or(key);
    let usual = known.first().map_or("", |(_, kind)| *kind);
    let Some(given) = section.remove(last) else {
        return Ok(usual);
    };
    let found = known.iter().find(|(word, _)| given.as_str() == Some(*word));
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        format!("{key}: {given}, expected one of {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_mean_the_same() {
        for (section, kind, simulated, respelled) in [
            (json!({}), "johnny5", true, json!(null)),
            (json!({"kind": "so101"}), "so101", false, json!(null)),
            (
                json!({"kind": "so101", "simulated": true}),
                "so101",
                true,
                json!(null),
            ),
            (
                json!({"adapter": "sim", "sim": {"model": "unitree_g1"}}),
                "unitree_g1",
                true,
                json!(null),
            ),
            (
                json!({"adapter": "johnny5", "johnny5": {"layout": "lekiwi", "baud": 500_000}}),
                "lekiwi",
                false,
                json!({"kind": "lekiwi", "channels": {"baud": 500_000}}),
            ),
            (
                json!({"adapter": "johnny5"}),
                "johnny5",
                false,
                json!({"kind": "johnny5"}),
            ),
            (
                json!({"adapter": "booster_k1", "booster_k1": {"ros": {"domain": 7}}}),
                "booster_k1_topics",
                false,
                json!({"kind": "booster_k1_topics", "channels": {"ros": {"domain": 7}}}),
            ),
            (
                json!({"adapter": "booster_k1", "booster_k1": {"profile": "booster_rpc"}}),
                "booster_k1",
                false,
                json!({"kind": "booster_k1"}),
            ),
        ] {
            let choice = Choice::of(&serde_json::from_value(section.clone()).unwrap()).unwrap();
            assert_eq!(
                (choice.kind.as_str(), choice.simulated),
                (kind, simulated),
                "{section}"
            );
            assert_eq!(json!(choice.respelled), respelled, "{section}");
        }
    }

    #[test]
    fn what_is_said_twice_or_means_nothing_is_refused() {
        for (section, expected) in [
            (json!({"kind": "so101", "adapter": "sim"}), "remove `adapter`"),
            (
                json!({"kind": "so101", "johnny5": {"baud": 1}}),
                "remove `johnny5`; its keys belong into `channels`",
            ),
            (
                json!({"kind": "so101", "sim": {"model": "unitree_g1"}}),
                "remove `sim.model`",
            ),
            (
                json!({"adapter": "johnny5", "channels": {"baud": 1}}),
                "remove `adapter`; name the robot with `kind`",
            ),
            (
                json!({"adapter": "johnny5", "simulated": true}),
                "remove `adapter`",
            ),
            (
                json!({"adapter": "johnny5", "johnny5": {"layout": "six"}}),
                "johnny5.layout: \"six\", expected one of johnny5, so101, lekiwi",
            ),
        ] {
            let error = Choice::of(&serde_json::from_value(section).unwrap()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
