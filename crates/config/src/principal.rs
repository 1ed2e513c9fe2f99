//! The principal of a request: who makes it, and for whom, as far as its context says. Read [`Asker::of`].

use std::fmt;

use ovos_toolbox_wire::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::text::describe;

/// The key of the context that names those for whom a request is made.
const ON_BEHALF: &str = "on_behalf";

/// How many principals a request may have. A door that is asked by a door that is asked by a satellite has three.
const MOST: usize = 8;

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
    /// Another machine that uses a toolbox of this one, where `ovos-tools fabric host` decides.
    Machine,
}

impl Caller {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Door, Self::Hive, Self::Bus, Self::Machine];

    /// The word for it in a rule.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Door => "door",
            Self::Hive => "hive",
            Self::Bus => "bus",
            Self::Machine => "machine",
        }
    }

    /// The kind of this word.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}

/// The prefix of `context.source` in the programs of this project.
const OURS: &str = "ovos-tools-";

/// The name of the program among them that is not a door: people use it.
const COMMAND_LINE: &str = "cli";

/// The maker of a request. It is only a claim, because the sender of a message writes its context.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    /// The kind.
    pub kind: Caller,
    /// The name; empty if there is none.
    pub name: String,
}

impl Principal {
    /// The principal that the context of a request names.
    #[must_use]
    pub fn of(context: &Object) -> Self {
        let text = |key: &str| context.get(key).and_then(Value::as_str).unwrap_or_default();
        let (peer, source) = (text("peer"), text("source"));
        if !peer.is_empty() {
            // A hub writes `peer` as <name>::<session>, whatever the satellite sent.
            let name = peer.split_once("::").map_or(peer, |(name, _)| name);
            return Self::new(Caller::Hive, name);
        }
        match source.strip_prefix(OURS) {
            Some(door) if !door.is_empty() && door != COMMAND_LINE => Self::new(Caller::Door, door),
            _ => Self::new(Caller::Bus, source),
        }
    }

    /// Reads what the display of a principal writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        Some(Self::new(Caller::parse(kind)?, name))
    }

    fn new(kind: Caller, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.kind.as_str())?;
        match self.name.as_str() {
            "" => Ok(()),
            name => write!(to, ":{name}"),
        }
    }
}

/// Those who want a call: the maker of the request, and those on whose behalf it is made. A call is permitted if it is permitted
/// to all of them, so a claim to ask for others gains nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asker {
    principal: Principal,
    on_behalf: Vec<Principal>,
}

/// The error that a context does not say clearly for whom a request is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'on_behalf' in the context must be a list of at most {} of door, hive, bus and machine, each with a name as in hive:kitchen, got \
     {found}",
    MOST - 1
)]
pub struct UnclearAsker {
    found: String,
}

impl Asker {
    /// The asker that the context of a request names.
    ///
    /// # Errors
    /// The context has an `on_behalf` that cannot be read.
    pub fn of(context: &Object) -> Result<Self, UnclearAsker> {
        let principal = Principal::of(context);
        let Some(written) = context.get(ON_BEHALF).filter(|written| !written.is_null()) else {
            return Ok(principal.into());
        };
        let unclear = || UnclearAsker {
            found: describe(written),
        };
        let named = written.as_array().filter(|named| named.len() < MOST);
        let named = named.ok_or_else(unclear)?.iter();
        let named = named.map(|one| Principal::parse(one.as_str()?));
        let on_behalf = named.collect::<Option<_>>().ok_or_else(unclear)?;
        Ok(Self { principal, on_behalf })
    }

    /// The maker of the request.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Those on whose behalf it is made.
    #[must_use]
    pub fn on_behalf(&self) -> &[Principal] {
        &self.on_behalf
    }

    /// All principals, the maker of the request first.
    pub fn all(&self) -> impl Iterator<Item = &Principal> {
        std::iter::once(&self.principal).chain(&self.on_behalf)
    }

    /// Whether all principals of another asker are among those of this one: what is refused to the other one is refused to this one,
    /// whomever else it claims to ask for.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        other.all().all(|one| self.all().any(|own| own == one))
    }

    /// Adds to a context that its request is made on behalf of this asker.
    pub fn mark(&self, context: &mut Object) {
        let all: Vec<String> = self.all().map(ToString::to_string).collect();
        context.insert(ON_BEHALF.to_owned(), json!(all));
    }
}

impl From<Principal> for Asker {
    fn from(principal: Principal) -> Self {
        Self {
            principal,
            on_behalf: Vec::new(),
        }
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.principal)?;
        self.on_behalf
            .iter()
            .try_for_each(|other| write!(to, " for {other}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_context_names_its_principal() {
        for (context, principal) in [
            (json!({}), "bus"),
            (json!({"source": "skill-lights"}), "bus:skill-lights"),
            (json!({"source": ["a", "b"]}), "bus"),
            (json!({"source": "ovos-tools-mcp"}), "door:mcp"),
            (json!({"source": "ovos-tools-cli"}), "bus:ovos-tools-cli"),
            (json!({"source": "ovos-tools-"}), "bus:ovos-tools-"),
            (
                json!({"source": "kitchen::1", "peer": "kitchen::1"}),
                "hive:kitchen",
            ),
            // A satellite that claims to be a door is still a satellite.
            (
                json!({"source": "ovos-tools-mcp", "peer": "kitchen::1"}),
                "hive:kitchen",
            ),
            (json!({"source": "x", "peer": ""}), "bus:x"),
            (json!({"source": "local"}), "bus:local"),
        ] {
            let found = Principal::of(context.as_object().unwrap());
            assert_eq!(found.to_string(), principal, "{context}");
        }
    }

    #[test]
    fn a_context_names_those_for_whom_it_asks() {
        for (on_behalf, asker) in [
            (json!(null), Some("door:agent")),
            (json!([]), Some("door:agent")),
            (json!(["hive:kitchen"]), Some("door:agent for hive:kitchen")),
            (json!(["bus", "hive"]), Some("door:agent for bus for hive")),
            (json!(["bus:a:b"]), Some("door:agent for bus:a:b")),
            (json!("hive:kitchen"), None),
            (json!(["local"]), None),
            (json!(["kitchen"]), None),
            (json!([5]), None),
            (json!({"kind": "hive"}), None),
            (json!(vec!["bus"; 8]), None),
            (json!(true), None),
        ] {
            let context = json!({"source": "ovos-tools-agent", "on_behalf": on_behalf});
            let found = Asker::of(context.as_object().unwrap());
            let found = found.as_ref().map(ToString::to_string);
            assert_eq!(found.as_deref().ok(), asker, "{on_behalf}");
            let Ok(asker) = Asker::of(context.as_object().unwrap()) else {
                assert!(found.is_err_and(|error| error.to_string().starts_with("'on_behalf'")));
                continue;
            };
            // What is made for the asker is made for all of them.
            let mut next = json!({"source": "ovos-tools-voice"}).as_object().unwrap().clone();
            asker.mark(&mut next);
            let next = Asker::of(&next).unwrap().to_string();
            assert_eq!(next, format!("door:voice for {asker}"));
        }
    }
}
