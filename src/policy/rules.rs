//! The rules: which calls run, which have to be confirmed first, and which are refused.

use std::fmt;

use ovos_toolbox_wire::Effect;

use super::principal::Principal;
use config::{Backend, Caller, Decide, Rule, Who};

/// The call that is decided on, before it runs.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The maker of the call.
    pub principal: &'a Principal,
    /// The toolbox that owns the tool.
    pub toolbox_id: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// What the tool does to the world.
    pub effect: Effect,
    /// Whether everything that the call drives has said that it is simulated.
    pub simulated: bool,
}

/// A decision, and the rule that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens to the call.
    pub decide: Decide,
    /// The rule.
    pub place: Place,
    /// The reason that the rule gives.
    pub reason: Option<String>,
}

/// The place of a rule, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the configuration.
    Configured(usize),
    /// Among the built-in rules.
    BuiltIn(usize),
    /// No rule decided: the call is a stop, on which no rule decides.
    Nowhere,
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured(at) => write!(to, "rule {at} of service.policy"),
            Self::BuiltIn(at) => write!(to, "built-in rule {at}"),
            Self::Nowhere => write!(to, "no rule"),
        }
    }
}

/// The rules that follow the configured ones. The last one applies to every call.
#[must_use]
pub fn built_in() -> Vec<Rule> {
    let doors = |effects: &[Effect], backend, decide, reason: Option<&str>| Rule {
        who: Some(vec![Who::any(Caller::Door)]),
        tools: None,
        effects: Some(effects.to_vec()),
        backend,
        decide,
        reason: reason.map(str::to_owned),
    };
    let changes = [Effect::Write, Effect::Motion];
    let unsure = "it may change or move what is no simulator";
    let operators = "an emergency stop is lifted by an operator";
    vec![
        doors(&[Effect::Read, Effect::Safe], None, Decide::Allow, None),
        doors(&changes, Some(Backend::Simulated), Decide::Allow, None),
        doors(&changes, None, Decide::Confirm, Some(unsure)),
        doors(&[Effect::Resume], None, Decide::Deny, Some(operators)),
        Rule {
            who: None,
            tools: None,
            effects: None,
            backend: None,
            decide: Decide::Allow,
            reason: None,
        },
    ]
}

/// Decides on a call. The first rule whose keys all match decides; the configured rules come before the built-in ones.
///
/// No rule decides on a `stop`. A `safe` tool never has to be confirmed. A `resume` cannot be confirmed: only operators may
/// resume.
#[must_use]
pub fn decide(configured: &[Rule], built_in: &[Rule], question: &Question<'_>) -> Decision {
    let nowhere = Decision {
        decide: Decide::Allow,
        place: Place::Nowhere,
        reason: None,
    };
    if question.effect == Effect::Stop {
        return nowhere;
    }
    let configured = (1..).map(Place::Configured).zip(configured);
    let built_in = (1..).map(Place::BuiltIn).zip(built_in);
    let Some((place, rule)) = configured
        .chain(built_in)
        .find(|(_, rule)| applies(rule, question))
    else {
        // The last built-in rule applies to every call. If no rule applied, nothing would be known to be allowed.
        return Decision {
            decide: Decide::Deny,
            ..nowhere
        };
    };
    Decision {
        decide: match (rule.decide, question.effect) {
            (Decide::Confirm, Effect::Safe) => Decide::Allow,
            (Decide::Confirm, Effect::Resume) => Decide::Deny,
            (decide, _) => decide,
        },
        place,
        reason: rule.reason.clone(),
    }
}

fn applies(rule: &Rule, question: &Question<'_>) -> bool {
    let Principal { kind, name } = question.principal;
    let asks = |who: &Who| who.means(*kind, name);
    let backend = if question.simulated {
        Backend::Simulated
    } else {
        Backend::Hardware
    };
    rule.who.as_deref().is_none_or(|who| who.iter().any(asks))
        && rule
            .effects
            .as_deref()
            .is_none_or(|effects| effects.contains(&question.effect))
        && rule.backend.is_none_or(|of_rule| of_rule == backend)
        && rule.names(question.toolbox_id, question.tool)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn principal(kind: Caller, name: &str) -> Principal {
        Principal {
            kind,
            name: name.to_owned(),
        }
    }

    fn ask<'a>(principal: &'a Principal, effect: Effect, simulated: bool) -> Question<'a> {
        Question {
            principal,
            toolbox_id: "robot",
            tool: "wave",
            effect,
            simulated,
        }
    }

    #[test]
    fn built_in_rules_change_nothing_for_the_bus_and_hold_doors_to_simulators() {
        use Decide::{Allow, Confirm, Deny};
        use Effect::{Motion, Read, Resume, Safe, Stop, Write};
        // The columns: kind, effect, decision on a simulator, decision on hardware.
        let doors = [
            (Read, Allow, Allow),
            (Write, Allow, Confirm),
            (Motion, Allow, Confirm),
            (Safe, Allow, Allow),
            (Stop, Allow, Allow),
            (Resume, Deny, Deny),
        ];
        for (effect, simulated, hardware) in doors {
            for kind in Caller::ALL {
                let who = principal(kind, "x");
                let expected = if kind == Caller::Door {
                    [simulated, hardware]
                } else {
                    [Allow, Allow]
                };
                let found = [true, false].map(|sim| decide(&[], &built_in(), &ask(&who, effect, sim)).decide);
                assert_eq!(found, expected, "{kind:?} {effect:?}");
            }
        }
    }

    #[test]
    fn the_first_rule_that_matches_in_full_decides() {
        let rules = json!([
            {"who": "door:mcp", "tools": ["robot__wave"], "effects": ["motion"], "backend": "hardware",
             "decide": "allow", "reason": "seen to be harmless"},
            {"who": ["hive", "bus:bad-*"], "decide": "deny"},
            {"tools": ["w*e"], "decide": "confirm"},
        ]);
        let rules: Vec<Rule> = rules
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| serde_json::from_value(rule.clone()).unwrap())
            .collect();
        for (kind, name, effect, simulated, decided, place) in [
            (
                Caller::Door,
                "mcp",
                Effect::Motion,
                false,
                Decide::Allow,
                Place::Configured(1),
            ),
            (
                Caller::Door,
                "mcp",
                Effect::Motion,
                true,
                Decide::Confirm,
                Place::Configured(3),
            ),
            (
                Caller::Door,
                "voice",
                Effect::Motion,
                false,
                Decide::Confirm,
                Place::Configured(3),
            ),
            (
                Caller::Hive,
                "mcp",
                Effect::Read,
                true,
                Decide::Deny,
                Place::Configured(2),
            ),
            (
                Caller::Bus,
                "bad-skill",
                Effect::Safe,
                true,
                Decide::Deny,
                Place::Configured(2),
            ),
            (
                Caller::Bus,
                "skill",
                Effect::Safe,
                false,
                Decide::Allow,
                Place::Configured(3),
            ),
            (
                Caller::Bus,
                "skill",
                Effect::Resume,
                false,
                Decide::Deny,
                Place::Configured(3),
            ),
            (
                Caller::Hive,
                "x",
                Effect::Stop,
                false,
                Decide::Allow,
                Place::Nowhere,
            ),
        ] {
            let who = principal(kind, name);
            let found = decide(&rules, &built_in(), &ask(&who, effect, simulated));
            assert_eq!(
                (found.decide, found.place),
                (decided, place),
                "{who} {effect:?} {simulated}"
            );
        }
        let none = decide(&[], &[], &ask(&principal(Caller::Bus, ""), Effect::Read, true));
        assert_eq!(
            none.decide,
            Decide::Deny,
            "without a rule nothing is known to be allowed"
        );
    }

    #[test]
    fn the_rules_of_the_readme_hold_skills_and_satellites_and_spare_the_command_line() {
        let readme = include_str!("../../README.md");
        let (_, rules) = readme.split_once("{\"policy\": ").unwrap();
        let (rules, _) = rules.split_once("}\n```").unwrap();
        let rules: Vec<Rule> = serde_json::from_str(rules).unwrap();
        for (context, decided) in [
            (json!({"source": "skill-lights"}), Decide::Confirm),
            (json!({}), Decide::Confirm),
            (
                json!({"source": "skill-lights", "peer": "kitchen::1"}),
                Decide::Confirm,
            ),
            (
                json!({"source": "ovos-tools-cli", "peer": "kitchen::1"}),
                Decide::Confirm,
            ),
            (json!({"source": "ovos-tools-mcp"}), Decide::Confirm),
            (json!({"source": "ovos-tools-cli"}), Decide::Allow),
        ] {
            let who = Principal::of(context.as_object().unwrap());
            let on = |simulated| decide(&rules, &built_in(), &ask(&who, Effect::Motion, simulated)).decide;
            assert_eq!((on(false), on(true)), (decided, Decide::Allow), "{context}");
        }
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let who = prop::option::of(prop::sample::select(vec![
            "door", "door:mcp", "bus", "hive", "hive:abc", "bus:a*",
        ]));
        let tools = prop::option::of(prop::sample::select(vec!["wave", "robot__*", "other", "*"]));
        let effect = prop::sample::select(vec!["read", "write", "motion", "safe", "resume"]);
        let effects = prop::option::of(prop::collection::vec(effect, 1..4));
        let backend = prop::option::of(prop::sample::select(vec!["simulated", "hardware"]));
        let decide = prop::sample::select(vec!["allow", "confirm", "deny"]);
        (who, tools, effects, backend, decide).prop_map(|(who, tools, effects, backend, decide)| {
            let mut rule = json!({"decide": decide});
            if let Some(who) = who {
                rule["who"] = json!(who);
            }
            if let Some(tools) = tools {
                rule["tools"] = json!([tools]);
            }
            if let Some(effects) = effects {
                rule["effects"] = json!(effects);
            }
            if let Some(backend) = backend {
                rule["backend"] = json!(backend);
            }
            serde_json::from_value(rule).unwrap()
        })
    }

    proptest! {
        #[test]
        fn what_a_rule_decides_is_what_it_says_and_nothing_before_it_matches(
            rules in prop::collection::vec(rule(), 0..6),
            kind in prop::sample::select(Caller::ALL.to_vec()),
            name in prop::sample::select(vec!["", "mcp", "abc"]),
            effect in prop::sample::select(Effect::ALL.to_vec()),
            simulated: bool,
        ) {
            let who = principal(kind, name);
            let question = ask(&who, effect, simulated);
            let found = decide(&rules, &built_in(), &question);
            if effect == Effect::Stop {
                prop_assert_eq!(found.decide, Decide::Allow);
                return Ok(());
            }
            prop_assert!(effect != Effect::Safe || found.decide != Decide::Confirm, "a safe tool is never confirmed");
            prop_assert!(effect != Effect::Resume || found.decide != Decide::Confirm, "a resume is never confirmed");
            // Without the rule that decided, and the rules after it, the decision is different or comes from a built-in rule.
            match found.place {
                Place::Configured(at) => {
                    let alone = decide(&rules[at - 1..at], &[], &question);
                    prop_assert_eq!(alone.place, Place::Configured(1), "the rule matches by itself");
                    for earlier in &rules[..at - 1] {
                        let earlier = decide(std::slice::from_ref(earlier), &[], &question);
                        prop_assert_eq!(earlier.place, Place::Nowhere, "an earlier rule matches, too");
                    }
                }
                Place::BuiltIn(_) => {
                    let without = decide(&[], &built_in(), &question);
                    prop_assert_eq!(without, found, "rules that do not match change nothing");
                }
                Place::Nowhere => prop_assert!(false, "the built-in rules decide on every call"),
            }
        }
    }
}
