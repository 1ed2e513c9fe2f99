//! `service.policy`: the rules of who may call which tools. This file says how rules are written; the service's
//! `policy` says what they mean.

use std::fmt;

use ovos_toolbox_wire::Effect;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::pattern::matches;
use section::fields::checked;

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
    /// Names of tools, alone or as `<toolbox_id>__<name>`; `*` matches any run of characters.
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
    #[serde(deserialize_with = "decide")]
    pub decide: Decide,
    /// The reason, which the answer to a refused call contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// A program that connects a kind of client to the tools, such as `mcp`.
    Door,
    /// A HiveMind satellite.
    Hive,
    /// Everything else on the bus.
    Bus,
}

impl Caller {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Door, Self::Hive, Self::Bus];

    /// The word for it in a rule.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Door => "door",
            Self::Hive => "hive",
            Self::Bus => "bus",
        }
    }
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
        let kind = Caller::ALL.into_iter().find(|known| known.as_str() == kind)?;
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
        self.tools.as_deref().is_none_or(|patterns| {
            let alias = format!("{toolbox_id}__{tool}");
            patterns
                .iter()
                .any(|pattern| matches(pattern, tool) || matches(pattern, &alias))
        })
    }
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
    let accepted = "`who`: door, hive or bus, each also with a name as in door:mcp, or a list of them";
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

fn decide<'de, D: Deserializer<'de>>(from: D) -> Result<Decide, D::Error> {
    let all = [Decide::Allow, Decide::Confirm, Decide::Deny];
    checked(from, "`decide`: allow, confirm or deny", |word: String| {
        all.into_iter().find(|known| known.as_str() == word)
    })
}

/// Returns a list that has at least one entry. An empty list is refused, because it would match no call.
fn some<T>(list: Vec<T>) -> Option<Option<Vec<T>>> {
    (!list.is_empty()).then_some(Some(list))
}
