//! `service.policy`: the rules of who may call which tools. This file says how rules are written, `decision` what they mean; `backends`
//! is what they know of a toolbox. The service and a host of the fabric decide by them.

use std::fmt;

use ovos_toolbox_wire::Effect;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::principal::{Asker, Caller, Principal};
use section::fields::checked;
use section::pattern::{matches, names_tool};

/// The effects that rules can name. `stop` is missing: a stop always runs.
const EFFECTS: [Effect; 5] = [
    Effect::Read,
    Effect::Write,
    Effect::Motion,
    Effect::Safe,
    Effect::Resume,
];

/// One rule. It applies to a call if every key that the rule has matches the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The callers.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "callers"
    )]
    pub who: Option<Vec<Who>>,
    /// Names of tools, alone or as `<toolbox_id>__<name>`; `*` matches any run of characters. Also what doors do for others:
    /// `agent.run`, `voice.join`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "tools")]
    pub tools: Option<Vec<String>>,
    /// What the tools do to the world.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "effects"
    )]
    pub effects: Option<Vec<Effect>>,
    /// Whether the call drives a simulator or hardware.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "backend"
    )]
    pub backend: Option<Backend>,
    /// What happens to the call.
    #[serde(deserialize_with = "verdict")]
    pub decide: Decide,
    /// The reason, which the answer to a refused call contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What happens to a call, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// The call runs.
    Allow,
    /// The call runs when a person has confirmed it.
    Confirm,
    /// The call is refused.
    Deny,
}

impl Decide {
    /// The word for it in a rule.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Confirm => "confirm",
            Self::Deny => "deny",
        }
    }
}

/// Whether a call drives a simulator or hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A simulator. The toolbox itself says that it is one.
    Simulated,
    /// Everything else.
    Hardware,
}

/// Callers of one kind: `door`, `door:mcp`, `bus:skill-*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The kind.
    pub kind: Caller,
    /// Their names; `*` matches any run of characters.
    pub name: String,
}

impl Who {
    /// Every caller of a kind.
    #[must_use]
    pub fn any(kind: Caller) -> Self {
        Self {
            kind,
            name: "*".to_owned(),
        }
    }

    /// Whether the pattern includes a caller of this kind and name.
    #[must_use]
    pub fn means(&self, kind: Caller, name: &str) -> bool {
        self.kind == kind && matches(&self.name, name)
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':').unwrap_or((text, "*"));
        let kind = Caller::parse(kind)?;
        (!name.is_empty()).then(|| Self {
            kind,
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Who {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.kind.as_str())?;
        match self.name.as_str() {
            "*" => Ok(()),
            name => write!(to, ":{name}"),
        }
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Rule {
    /// Whether the rule applies to this tool.
    #[must_use]
    pub fn names(&self, toolbox_id: &str, tool: &str) -> bool {
        let named = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| names_tool(pattern, toolbox_id, tool))
        };
        self.tools.as_deref().is_none_or(named)
    }

    /// Whether the rule applies to this principal.
    #[must_use]
    pub fn is_about(&self, principal: &Principal) -> bool {
        let is_one = |who: &Who| who.means(principal.kind, &principal.name);
        self.who.as_deref().is_none_or(|who| who.iter().any(is_one))
    }

    /// Whether the rule permits a principal to have a door do this work; `None` if it does not decide on that. A rule for effects or
    /// backends decides on the calls of the work. So does one that has every call confirmed; one that has the work itself confirmed
    /// refuses it, because there is no plan that a person could confirm.
    fn permits_work(&self, principal: &Principal, work: &str) -> Option<bool> {
        if self.effects.is_some() || self.backend.is_some() || !self.is_about(principal) {
            return None;
        }
        let names_it = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, work));
        match (self.decide, self.tools.as_deref()) {
            (Decide::Confirm, None) => None,
            (_, Some(patterns)) if !names_it(patterns) => None,
            (decide, _) => Some(decide == Decide::Allow),
        }
    }
}

/// Returns the reason why these rules refuse a door's work for an asker, if they do. `work` is the topic without `ovos.tools.`,
/// such as `agent.run`.
#[must_use]
pub fn refused_work(rules: &[Rule], asker: &Asker, work: &str) -> Option<String> {
    asker.all().find_map(|principal| {
        let mut deciding = (1..).zip(rules).filter_map(|(at, rule)| {
            let permits = rule.permits_work(principal, work)?;
            Some((at, rule, permits))
        });
        let (at, rule, permits) = deciding.next()?;
        let reason = rule.reason.as_deref().map(|reason| format!(": {reason}"));
        let reason = reason.unwrap_or_default();
        (!permits).then(|| format!("{principal} may not use '{work}' (rule {at} of service.policy){reason}"))
    })
}

/// The list of rules. The error names the rule by its number.
pub(super) fn rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    let written: Vec<Value> = checked(from, "a list of rules", Some)?;
    let read = |(at, rule): (usize, &Value)| {
        if !rule.is_object() {
            return Err(D::Error::custom(format_args!(
                "expected rule {} to be an object",
                at + 1
            )));
        }
        Rule::deserialize(rule).map_err(|error| {
            let why = error.to_string();
            let why = why.split_once("expected ").map_or(why.as_str(), |(_, why)| why);
            D::Error::custom(format_args!("expected in rule {}: {why}", at + 1))
        })
    };
    written.iter().enumerate().map(read).collect()
}

fn callers<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Who>>, D::Error> {
    let accepted =
        "`who`: door, hive, bus or machine, each also with a name as in door:mcp, or a list of them";
    checked(from, accepted, |written: Value| {
        let who = |value: &Value| Who::parse(value.as_str()?);
        some(match &written {
            Value::Array(items) => items.iter().map(who).collect::<Option<_>>()?,
            one => vec![who(one)?],
        })
    })
}

fn tools<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let accepted = "`tools`: a list of tool names, * for any run of characters";
    checked(from, accepted, |names: Vec<String>| {
        names
            .iter()
            .all(|name| !name.is_empty())
            .then(|| some(names))
            .flatten()
    })
}

fn effects<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Effect>>, D::Error> {
    let accepted = "`effects`: a list of read, write, motion, safe and resume (a stop always runs)";
    checked(from, accepted, |words: Vec<String>| {
        let effect = |word: &String| EFFECTS.into_iter().find(|effect| effect.as_str() == word);
        some(words.iter().map(effect).collect::<Option<_>>()?)
    })
}

fn backend<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Backend>, D::Error> {
    checked(
        from,
        "`backend`: simulated or hardware",
        |word: String| match word.as_str() {
            "simulated" => Some(Some(Backend::Simulated)),
            "hardware" => Some(Some(Backend::Hardware)),
            _ => None,
        },
    )
}

fn verdict<'de, D: Deserializer<'de>>(from: D) -> Result<Decide, D::Error> {
    let all = [Decide::Allow, Decide::Confirm, Decide::Deny];
    checked(from, "`decide`: allow, confirm or deny", |word: String| {
        all.into_iter().find(|known| known.as_str() == word)
    })
}

/// Returns a list that has at least one entry. An empty list is refused, because it would match no call.
fn some<T>(list: Vec<T>) -> Option<Option<Vec<T>>> {
    (!list.is_empty()).then_some(Some(list))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn rules_decide_on_the_work_of_doors() {
        let hive = json!({"source": "x", "peer": "kitchen::1"});
        let behind = json!({"source": "ovos-tools-x", "on_behalf": ["hive:kitchen"]});
        let bus = json!({"source": "skill"});
        let rule = |more: serde_json::Value| {
            let mut rule = json!({"who": "hive"});
            rule.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            rule
        };
        for (rules, refused) in [
            (vec![], false),
            (vec![rule(json!({"decide": "deny"}))], true),
            (
                vec![rule(json!({"decide": "deny", "tools": ["agent.run"]}))],
                true,
            ),
            (
                vec![rule(json!({"decide": "deny", "tools": ["agent.*", "x"]}))],
                true,
            ),
            (
                vec![rule(json!({"decide": "deny", "tools": ["voice.join"]}))],
                false,
            ),
            (
                vec![rule(json!({"decide": "deny", "tools": ["robot__*"]}))],
                false,
            ),
            // A person cannot confirm work that has no plan.
            (
                vec![rule(json!({"decide": "confirm", "tools": ["agent.run"]}))],
                true,
            ),
            // These rules decide on each call of the work.
            (vec![rule(json!({"decide": "confirm"}))], false),
            (
                vec![rule(json!({"decide": "deny", "effects": ["motion"]}))],
                false,
            ),
            (
                vec![rule(json!({"decide": "deny", "backend": "hardware"}))],
                false,
            ),
            (
                vec![
                    rule(json!({"decide": "allow", "tools": ["agent.run"]})),
                    rule(json!({"decide": "deny"})),
                ],
                false,
            ),
            (
                vec![
                    rule(json!({"decide": "confirm"})),
                    rule(json!({"decide": "deny", "reason": "no"})),
                ],
                true,
            ),
        ] {
            let rules: Vec<Rule> = rules
                .iter()
                .map(|rule| serde_json::from_value(rule.clone()).unwrap())
                .collect();
            for (context, refused) in [(&hive, refused), (&behind, refused), (&bus, false)] {
                let asker = Asker::of(context.as_object().unwrap()).unwrap();
                let found = refused_work(&rules, &asker, "agent.run");
                assert_eq!(found.is_some(), refused, "{rules:?} {asker}: {found:?}");
                assert!(found.is_none_or(|why| why.contains("'agent.run'") && why.contains("hive:kitchen")));
            }
        }
    }
}
