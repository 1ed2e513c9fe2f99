//! The rules: which calls run, which have to be confirmed first, and which are refused.

use std::fmt;

use ovos_toolbox_wire::Effect;

use super::policy::{Backend, Decide, Rule, Who};
use super::principal::{Caller, Principal};

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
    pub rule: RuleNumber,
    /// The reason that the rule gives.
    pub reason: Option<String>,
}

/// The place of a rule, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleNumber {
    /// In the configuration.
    Configured(usize),
    /// Among the built-in rules.
    BuiltIn(usize),
    /// No rule decided: the call is a stop, on which no rule decides.
    Nowhere,
}

impl fmt::Display for RuleNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured(at) => write!(to, "rule {at} of service.policy"),
            Self::BuiltIn(at) => write!(to, "built-in rule {at}"),
            Self::Nowhere => write!(to, "no rule"),
        }
    }
}

/// The rules that follow the configured ones. The last one applies to every call. With `operator_tools` bus clients may lift every
/// stop.
#[must_use]
pub fn built_in(operator_tools: bool) -> Vec<Rule> {
    let rule = |who: &[Caller], effects: &[Effect], backend, decide, reason: Option<&str>| Rule {
        who: Some(who.iter().copied().map(Who::any).collect()),
        tools: None,
        effects: Some(effects.to_vec()),
        backend,
        decide,
        reason: reason.map(str::to_owned),
    };
    let (door, bus) = (&[Caller::Door][..], &[Caller::Bus][..]);
    let changes = [Effect::Write, Effect::Motion];
    let resume = [Effect::Resume];
    let hardware = Some(Backend::Hardware);
    let unsure = "it may change or move something real, not a simulator";
    let operators = "only an operator can lift an emergency stop: run `ovos-tools resume TOOLBOX STOP_ID` on the service's \
        machine (`ovos-tools status` shows both)";
    let of_bus = "over the bus, only stops of simulators can be lifted: run `ovos-tools resume TOOLBOX STOP_ID` on the \
        service's machine, or set service.operator_tools to true";
    let mut rules = vec![
        rule(door, &[Effect::Read, Effect::Safe], None, Decide::Allow, None),
        rule(door, &changes, Some(Backend::Simulated), Decide::Allow, None),
        rule(door, &changes, None, Decide::Confirm, Some(unsure)),
        rule(
            &[Caller::Door, Caller::Hive],
            &resume,
            None,
            Decide::Deny,
            Some(operators),
        ),
    ];
    if !operator_tools {
        rules.push(rule(bus, &resume, hardware, Decide::Deny, Some(of_bus)));
    }
    rules.push(Rule {
        who: None,
        tools: None,
        effects: None,
        backend: None,
        decide: Decide::Allow,
        reason: None,
    });
    rules
}

/// Decides on a call. The first rule whose keys all match decides; the configured rules come before the built-in ones.
///
/// No rule decides on a `stop`. A `safe` tool never has to be confirmed. A `resume` cannot be confirmed, because only operators may
/// resume, and configured rules can only narrow who may: the built-in rules decide, too. For a `resume` a
/// configured rule counts only if it denies or lists the effect, and its `backend` is ignored.
#[must_use]
pub fn decide(configured: &[Rule], built_in: &[Rule], question: &Question<'_>) -> Decision {
    if question.effect == Effect::Stop {
        return Decision {
            decide: Decide::Allow,
            rule: RuleNumber::Nowhere,
            reason: None,
        };
    }
    let mut configured = (1..).map(RuleNumber::Configured).zip(configured);
    let mut built_in = (1..).map(RuleNumber::BuiltIn).zip(built_in);
    let resumes = question.effect == Effect::Resume;
    let narrows = |rule: &Rule| {
        let named = rule
            .effects
            .as_ref()
            .is_some_and(|effects| effects.contains(&Effect::Resume));
        rule.decide == Decide::Deny || named
    };
    let chosen = configured.find(|(_, rule)| {
        let on_backend = resumes || is_on(rule, question);
        applies(rule, question) && on_backend && (!resumes || narrows(rule))
    });
    let mut built_in = || built_in.find(|(_, rule)| applies(rule, question) && is_on(rule, question));
    let decided = |chosen: Option<(RuleNumber, &Rule)>| match chosen {
        Some((number, rule)) => Decision {
            decide: match (rule.decide, question.effect) {
                (Decide::Confirm, Effect::Safe) => Decide::Allow,
                (Decide::Confirm, Effect::Resume) => Decide::Deny,
                (decide, _) => decide,
            },
            rule: number,
            reason: rule.reason.clone(),
        },
        // Not reached: the last built-in rule applies to every call. Denied to be safe.
        None => Decision {
            decide: Decide::Deny,
            rule: RuleNumber::Nowhere,
            reason: None,
        },
    };
    match chosen {
        None => decided(built_in()),
        Some(_) if !resumes => decided(chosen),
        Some(_) => {
            let (narrower, usual) = (decided(chosen), decided(built_in()));
            if narrower.decide >= usual.decide {
                narrower
            } else {
                usual
            }
        }
    }
}

/// Whether a rule applies to a call, whatever its backend is.
fn applies(rule: &Rule, question: &Question<'_>) -> bool {
    let named = |effects: &Vec<Effect>| effects.contains(&question.effect);
    rule.is_about(question.principal)
        && rule.effects.as_ref().is_none_or(named)
        && rule.names(question.toolbox_id, question.tool)
}

/// Whether a rule applies to the backend of a call.
fn is_on(rule: &Rule, question: &Question<'_>) -> bool {
    let backend = if question.simulated {
        Backend::Simulated
    } else {
        Backend::Hardware
    };
    rule.backend.is_none_or(|of_rule| of_rule == backend)
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
        use Decide::{Allow, Confirm};
        use Effect::{Motion, Read, Safe, Stop, Write};
        // The columns: kind, effect, decision on a simulator, decision on hardware.
        let doors = [
            (Read, Allow, Allow),
            (Write, Allow, Confirm),
            (Motion, Allow, Confirm),
            (Safe, Allow, Allow),
            (Stop, Allow, Allow),
        ];
        for (effect, simulated, hardware) in doors {
            for kind in Caller::ALL {
                let who = principal(kind, "x");
                let expected = if kind == Caller::Door {
                    [simulated, hardware]
                } else {
                    [Allow, Allow]
                };
                let found =
                    [true, false].map(|sim| decide(&[], &built_in(false), &ask(&who, effect, sim)).decide);
                assert_eq!(found, expected, "{kind:?} {effect:?}");
            }
        }
    }

    #[test]
    fn rules_only_narrow_who_may_resume() {
        let rule = |rule: serde_json::Value| vec![serde_json::from_value::<Rule>(rule).unwrap()];
        // The columns: rules; whether a bus client may resume a simulator, and hardware; the same with operator_tools.
        let rows = [
            (vec![], [true, false], [true, true]),
            (rule(json!({"decide": "allow"})), [true, false], [true, true]),
            (
                rule(json!({"effects": ["resume"], "decide": "allow"})),
                [true, false],
                [true, true],
            ),
            // It says nothing about a resume.
            (rule(json!({"decide": "confirm"})), [true, false], [true, true]),
            (
                rule(json!({"effects": ["motion"], "decide": "deny"})),
                [true, false],
                [true, true],
            ),
            (
                rule(json!({"who": "bus:other", "decide": "deny"})),
                [true, false],
                [true, true],
            ),
            (
                rule(json!({"tools": ["other__*"], "decide": "deny"})),
                [true, false],
                [true, true],
            ),
            (
                rule(json!({"effects": ["resume"], "decide": "confirm"})),
                [false; 2],
                [false; 2],
            ),
            (
                rule(json!({"who": "bus", "decide": "deny"})),
                [false; 2],
                [false; 2],
            ),
            (
                rule(json!({"tools": ["robot__*"], "decide": "deny"})),
                [false; 2],
                [false; 2],
            ),
            (
                rule(json!({"backend": "hardware", "decide": "deny"})),
                [false; 2],
                [false; 2],
            ),
        ];
        for (rules, usual, operators) in rows {
            for (operator_tools, expected) in [(false, usual), (true, operators)] {
                let may = |kind, simulated| {
                    let who = principal(kind, "x");
                    let question = ask(&who, Effect::Resume, simulated);
                    decide(&rules, &built_in(operator_tools), &question).decide == Decide::Allow
                };
                let bus = [true, false].map(|simulated| may(Caller::Bus, simulated));
                assert_eq!(bus, expected, "{rules:?} {operator_tools}");
                for kind in [Caller::Door, Caller::Hive] {
                    assert!(!may(kind, true) && !may(kind, false), "{kind:?} {rules:?}");
                }
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
                RuleNumber::Configured(1),
            ),
            (
                Caller::Door,
                "mcp",
                Effect::Motion,
                true,
                Decide::Confirm,
                RuleNumber::Configured(3),
            ),
            (
                Caller::Door,
                "voice",
                Effect::Motion,
                false,
                Decide::Confirm,
                RuleNumber::Configured(3),
            ),
            (
                Caller::Hive,
                "mcp",
                Effect::Read,
                true,
                Decide::Deny,
                RuleNumber::Configured(2),
            ),
            (
                Caller::Bus,
                "bad-skill",
                Effect::Safe,
                true,
                Decide::Deny,
                RuleNumber::Configured(2),
            ),
            (
                Caller::Bus,
                "skill",
                Effect::Safe,
                false,
                Decide::Allow,
                RuleNumber::Configured(3),
            ),
            (
                Caller::Bus,
                "skill",
                Effect::Resume,
                true,
                Decide::Allow,
                RuleNumber::BuiltIn(6),
            ),
            (
                Caller::Hive,
                "x",
                Effect::Stop,
                false,
                Decide::Allow,
                RuleNumber::Nowhere,
            ),
        ] {
            let who = principal(kind, name);
            let found = decide(&rules, &built_in(false), &ask(&who, effect, simulated));
            assert_eq!(
                (found.decide, found.rule),
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
        let readme = include_str!("../../../README.md");
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
            let on =
                |simulated| decide(&rules, &built_in(false), &ask(&who, Effect::Motion, simulated)).decide;
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
            let found = decide(&rules, &built_in(false), &question);
            if effect == Effect::Resume {
                // `rules_only_narrow_who_may_resume` says what decides on it.
                prop_assert!(found.decide != Decide::Confirm, "a resume is never confirmed");
                let usual = decide(&[], &built_in(false), &question);
                prop_assert!(found.decide >= usual.decide, "no rule widens who may resume");
                return Ok(());
            }
            if effect == Effect::Stop {
                prop_assert_eq!(found.decide, Decide::Allow);
                return Ok(());
            }
            prop_assert!(effect != Effect::Safe || found.decide != Decide::Confirm, "a safe tool is never confirmed");
            // Without the rule that decided, and the rules after it, the decision is different or comes from a built-in rule.
            match found.rule {
                RuleNumber::Configured(at) => {
                    let alone = decide(&rules[at - 1..at], &[], &question);
                    prop_assert_eq!(alone.rule, RuleNumber::Configured(1), "the rule matches by itself");
                    for earlier in &rules[..at - 1] {
                        let earlier = decide(std::slice::from_ref(earlier), &[], &question);
                        prop_assert_eq!(earlier.rule, RuleNumber::Nowhere, "an earlier rule matches, too");
                    }
                }
                RuleNumber::BuiltIn(_) => {
                    let without = decide(&[], &built_in(false), &question);
                    prop_assert_eq!(without, found, "rules that do not match change nothing");
                }
                RuleNumber::Nowhere => prop_assert!(false, "the built-in rules decide on every call"),
            }
        }
    }
}
