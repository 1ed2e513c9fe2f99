//! What a request over HTTP may do, and what a message needs. Pure. The policy of the service decides beside it.

use std::collections::BTreeSet;

use config::{McpDoor, Principal, SignIn};
use door::{Listing, LongCallTool, OwnTool as _, StopTool};
use ovos_toolbox_wire::{Effect, Object};
use serde_json::Value;

use crate::listing::{self, Owner};
use crate::signed::Claims;

/// The scopes of the door, as access tokens name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// To look: lists, resources, and tools that change nothing.
    Read,
    /// To change something, or to bring a machine to safety.
    Act,
    /// To move a machine.
    Move,
}

impl Scope {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Act, Self::Move];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Act => "act",
            Self::Move => "move",
        }
    }

    /// What a tool of this effect needs. A stop needs none.
    fn of(effect: Effect) -> Option<Self> {
        match effect {
            Effect::Stop => None,
            Effect::Read => Some(Self::Read),
            Effect::Write | Effect::Safe => Some(Self::Act),
            Effect::Motion | Effect::Resume => Some(Self::Move),
        }
    }
}

/// Several scopes.
pub(crate) type Scopes = BTreeSet<Scope>;

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// For whom it counts, if its token was made by the issuer: the principal that the owner has written for it.
    pub(crate) principal: Option<Principal>,
    pub(crate) scopes: Scopes,
    /// Whether the owner has let its sender in. All others may only stop.
    pub(crate) is_known: bool,
}

impl Grant {
    /// That of the owner's own token, and of every client where none is asked for.
    pub(crate) fn of_owner() -> Self {
        Self {
            principal: None,
            scopes: Scope::ALL.into(),
            is_known: true,
        }
    }

    /// That of a token whose claims hold.
    pub(crate) fn of_claims(claims: &Claims, config: &SignIn) -> Self {
        let mut entries = config.allow.iter();
        let entry = entries.find(|entry| entry.is_about(&claims.sub, claims.client()));
        let named: Vec<&str> = claims.scopes().collect();
        let scopes = Scope::ALL
            .into_iter()
            .filter(|scope| named.contains(&scope.as_str()));
        Self {
            principal: entry.map(|entry| entry.principal.clone()),
            scopes: scopes.filter(|_| entry.is_some()).collect(),
            is_known: entry.is_some(),
        }
    }

    /// The keys of the context of calls that are made for it.
    pub(crate) fn context(&self) -> Option<Object> {
        let mut context = Object::new();
        let principal = self.principal.clone()?;
        config::Asker::from(principal).mark(&mut context);
        Some(context)
    }
}

/// The scopes that a message needs. A tool that is not in the list needs all that any tool could need.
pub(crate) fn needed(message: &Value, listing: &Listing, config: &McpDoor) -> Scopes {
    let method = message["method"].as_str().unwrap_or_default();
    match method {
        "ping" | "notifications/cancelled" | "tasks/cancel" => Scopes::new(),
        "tools/call" => {
            let params = &message["params"];
            let name = params["name"].as_str().unwrap_or_default();
            let called = Called { listing, config };
            called.needs(name, &params["arguments"], true)
        }
        _ => [Scope::Read].into(),
    }
}

struct Called<'a> {
    listing: &'a Listing,
    config: &'a McpDoor,
}

impl Called<'_> {
    /// `wraps`: whether the tool may be one that stands for others.
    fn needs(&self, name: &str, arguments: &Value, wraps: bool) -> Scopes {
        let all = || Scope::ALL.into();
        let needs = match listing::owner(self.listing, self.config, name) {
            Some(Owner::Door(_) | Owner::Calls(LongCallTool::Cancel)) => None,
            Some(Owner::Calls(_) | Owner::Find) => Some(Scope::Read),
            Some(Owner::Schedule(tool)) => Scope::of(tool.effect()),
            Some(Owner::Toolbox(tool)) => Scope::of(tool.effect),
            Some(Owner::Steps) => {
                let steps = arguments["steps"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let names = steps.iter().map(|step| step["name"].as_str().unwrap_or_default());
                // A run that names a stop of the door is that stop and nothing else.
                if names.clone().any(|name| StopTool::named(name).is_some()) {
                    return Scopes::new();
                }
                return names
                    .flat_map(|name| self.needs(name, &Value::Null, false))
                    .collect();
            }
            Some(Owner::Call) if wraps => {
                let name = arguments["name"].as_str().unwrap_or_default().trim();
                return self.needs(name, &arguments["arguments"], name != door::find::CALL_TOOL);
            }
            Some(Owner::Call) | None => return all(),
        };
        needs.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use config::Allowed;
    use door::find::CALL_TOOL;
    use serde_json::json;

    use super::*;
    use crate::listing::definitions::of;

    fn listing_of(tools: &[(&str, Effect)]) -> Listing {
        let tools = tools.iter().map(|(name, effect)| of("arm", name, name, *effect));
        listing::definitions::listing(tools, &[])
    }

    fn scopes(text: &str) -> Scopes {
        let named = |scope: &Scope| text.split(' ').any(|word| word == scope.as_str());
        Scope::ALL.into_iter().filter(named).collect()
    }

    #[test]
    fn a_message_needs_what_its_tool_does() {
        let listing = listing_of(&[
            ("look", Effect::Read),
            ("say", Effect::Write),
            ("wave", Effect::Motion),
            ("land", Effect::Safe),
            ("halt", Effect::Stop),
        ]);
        let config = McpDoor {
            find_tools: true,
            run_steps: true,
            schedule: true,
            ..McpDoor::default()
        };
        let call = |name: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let wrapped = |name: &str| call(CALL_TOOL, json!({"name": name}));
        let steps = |names: &[&str]| {
            let steps: Vec<Value> = names
                .iter()
                .map(|name| json!({"id": name, "name": name}))
                .collect();
            call("run_steps", json!({"steps": steps}))
        };
        for (message, expected) in [
            (json!({"method": "initialize"}), "read"),
            (json!({"method": "tools/list"}), "read"),
            (json!({"method": "resources/read"}), "read"),
            (json!({"id": 1, "result": {}}), "read"),
            (json!({"method": "ping"}), ""),
            (json!({"method": "tasks/cancel"}), ""),
            (call("look", json!({})), "read"),
            (call("say", json!({})), "act"),
            (call("land", json!({})), "act"),
            (call("wave", json!({})), "move"),
            (call("halt", json!({})), ""),
            (call("stop_moving", json!({})), ""),
            (call("wait_call", json!({})), "read"),
            (call("cancel_call", json!({})), ""),
            (call("find_tools", json!({})), "read"),
            (call("schedule_call", json!({"name": "look"})), "move"),
            (call("list_schedules", json!({})), "read"),
            (call("unknown", json!({})), "read act move"),
            (wrapped("wave"), "move"),
            (wrapped(" look "), "read"),
            (wrapped("halt"), ""),
            (wrapped("unknown"), "read act move"),
            (wrapped(CALL_TOOL), "read act move"),
            (steps(&["look", "say"]), "read act"),
            (steps(&["look", "wave"]), "read move"),
            (steps(&["unknown"]), "read act move"),
            (steps(&["run_steps"]), ""),
            (steps(&["unknown", "stop_moving"]), ""),
            (steps(&["halt", "wave"]), "move"),
        ] {
            assert_eq!(needed(&message, &listing, &config), scopes(expected), "{message}");
        }
    }

    #[test]
    fn a_token_counts_for_whom_the_owner_wrote_and_for_no_name_of_its_own() {
        let entry = |subject: Option<&str>, client: Option<&str>, principal: &str| Allowed {
            subject: subject.map(str::to_owned),
            client: client.map(str::to_owned),
            principal: Principal::parse(principal).expect("a principal"),
        };
        let config = SignIn {
            issuer: "https://issuer.test".to_owned(),
            public_url: "https://robot.test/mcp".to_owned(),
            allow: vec![
                entry(Some("ada"), Some("tablet"), "door:tablet"),
                entry(Some("ada"), None, "door:ada"),
                entry(None, Some("home"), "hive:home"),
            ],
        };
        let admin = json!({"name": "door:admin", "principal": "door:admin", "on_behalf": ["bus"], "preferred_username": "ada"});
        for (subject, client, principal) in [
            ("ada", None, Some("door:ada")),
            ("ada", Some("tablet"), Some("door:tablet")),
            ("ada", Some("home"), Some("door:ada")),
            ("bob", Some("home"), Some("hive:home")),
            ("bob", None, None),
            ("Ada", None, None),
            ("home", None, None),
            ("door:admin", Some("door:admin"), None),
        ] {
            let mut written = admin.clone();
            for (key, value) in [
                ("iss", json!("i")),
                ("aud", json!("a")),
                ("exp", json!(1)),
                ("sub", json!(subject)),
            ] {
                written[key] = value;
            }
            written["scope"] = json!("read move admin");
            if let Some(client) = client {
                written["client_id"] = json!(client);
            }
            let claims: Claims = serde_json::from_value(written).expect("claims");
            let grant = Grant::of_claims(&claims, &config);
            let found = grant.principal.as_ref().map(ToString::to_string);
            assert_eq!(found.as_deref(), principal, "{subject} {client:?}");
            assert_eq!(grant.is_known, principal.is_some());
            assert_eq!(
                grant.scopes,
                scopes(if principal.is_some() { "read move" } else { "" })
            );
            let context = grant.context().map(Value::Object);
            assert_eq!(
                context,
                principal.map(|principal| json!({"on_behalf": [principal]}))
            );
        }
    }
}
