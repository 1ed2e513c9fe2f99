//! The principal of a request: who makes it, as far as its context says.

use std::fmt;

use ovos_toolbox_wire::Object;
use serde_json::Value;

use config::Caller;

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
}
