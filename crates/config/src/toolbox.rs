//! The section of one toolbox: the checked keys of the host, and all others, which are the toolbox's own and are
//! passed on unchanged. A wrong section affects only that toolbox.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::is_toolbox_id;
use serde_json::{Map, Value, json};

use super::OURS;
use super::error::{ConfigError, ConfigErrors};
use super::layers::Stack;
use super::origin::{Setting, dotted};
use super::paths::Xdg;
use super::section::Section;
use super::service::{CallLimits, Isolation, ServiceConfig};
use super::text::describe;

/// The configuration of one toolbox.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolboxConfig {
    /// Its id, the key of the section.
    pub id: String,
    /// `enabled`: whether it is loaded. Default true.
    pub enabled: bool,
    /// `isolation`: `process` or `in_process`. Default: the service's `isolation`.
    pub isolation: Isolation,
    /// `limits`: the service's limits with the overrides of this toolbox.
    pub limits: CallLimits,
    /// `limits.memory_mb`: the memory limit of its process, in MiB; needs `isolation` `process`. Default none, 16 to
    /// 1048576.
    pub memory_mb: Option<u64>,
    /// `limits.open_ms`: the time limit for opening it and listing its tools. Default 10000, 100 to 600000.
    pub open: Duration,
    /// `limits.close_ms`: the time limit for closing it, after which it is abandoned. Default 10000, 100 to 600000.
    pub close: Duration,
    /// `confine`: what its process may access; needs `isolation` `process`. Default none: everything the service may
    /// access.
    pub confine: Option<Confine>,
    /// `tools`: which of its tools are visible on the bus.
    pub tools: ToolFilter,
    /// `allow_sha256`: if not empty, only plugin files with one of these hashes are loaded. Lower-case hex.
    pub allow_sha256: Vec<String>,
    /// `env`: variables added to the environment of its process; needs `isolation` `process`. Default none.
    pub env: BTreeMap<String, String>,
    /// All other keys: the toolbox's own configuration, checked by the schema of its manifest.
    pub own: Map<String, Value>,
    /// Host keys in force and the top-level keys of `own`, with origins.
    pub settings: Vec<Setting>,
}

/// Confinement of a toolbox's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confine {
    /// `paths_rw`: files and folders the process may write. Default none.
    pub paths_rw: Vec<PathBuf>,
    /// `paths_ro`: files and folders the process may read, in addition to those every program needs. Default none.
    pub paths_ro: Vec<PathBuf>,
    /// `network`: whether the process may use the network. Default false.
    pub network: bool,
    /// `devices`: device files the process may open. Default none.
    pub devices: Vec<PathBuf>,
}

/// `tools {allow, deny}`: names of tools; `*` matches any run of characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// If present, only tools that match one of these exist; also applies to steps of other tools.
    pub allow: Option<Vec<String>>,
    /// Tools that match one of these do not exist, even if they match `allow`; also applies to steps of other tools.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Whether the tool is visible on the bus.
    #[must_use]
    pub fn permits(&self, tool: &str) -> bool {
        self.forbidden_by(tool).is_none()
    }

    /// Returns the key of the toolbox's section that hides the tool, if one does.
    #[must_use]
    pub fn forbidden_by(&self, tool: &str) -> Option<&'static str> {
        let listed = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        if listed(&self.deny) {
            Some("tools.deny")
        } else if self.allow.as_deref().is_none_or(listed) {
            None
        } else {
            Some("tools.allow")
        }
    }
}

/// Whether `name` matches `pattern`; `*` matches any run of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((prefix, mut patterns)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(prefix) else {
        return false;
    };
    while let Some((middle, tail)) = patterns.split_once('*') {
        let Some(at) = rest.find(middle) else { return false };
        rest = &rest[at + middle.len()..];
        patterns = tail;
    }
    rest.ends_with(patterns)
}

/// Returns why `id` is not a valid toolbox_id, if it is not.
fn id_problem(id: &str) -> Option<&'static str> {
    if is_toolbox_id(id) {
        None
    } else if matches!(id, "service" | "all") {
        Some("the name is reserved")
    } else {
        Some("it may hold lower-case letters, digits, _ and - only, at most 64")
    }
}

impl ToolboxConfig {
    /// Reads the section of a toolbox; without one, the defaults and the service's values hold.
    pub(super) fn read(
        xdg: &Xdg,
        stack: &Stack,
        id: &str,
        service: &ServiceConfig,
    ) -> Result<Arc<Self>, ConfigErrors> {
        let path = ["PHAL", OURS, id];
        if let Some(reason) = id_problem(id) {
            let key = dotted(["PHAL", OURS]);
            return Err(ConfigError::ToolboxId {
                origin: stack.origin(&path),
                key,
                name: id.to_owned(),
                reason,
            }
            .into());
        }
        let mut section = Section::new(stack, xdg, &path).inheriting(&ServiceConfig::PATH);
        let it = &mut section;
        let isolation = it.word("isolation", service.isolation);
        // The service section has no `enabled`, so its origin can only be this section or the default.
        let enabled = it.flag("enabled", true);
        let hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let pins = it.texts(
            "allow_sha256",
            Some(Vec::new()),
            "a list of SHA-256 hashes, each 64 hexadecimal digits",
            hash,
        );
        let env = it.take(
            "env",
            BTreeMap::new(),
            "an object of variable names and texts",
            variables,
            |env| json!(env),
        );
        let own_sections = ["limits", "confine", "tools"];
        let mut own = section.rest();
        own_sections.iter().for_each(|name| {
            own.shift_remove(*name);
        });

        let mut limits_section =
            Section::new(stack, xdg, &[path[0], path[1], id, "limits"]).inheriting(&ServiceConfig::PATH);
        let limits = CallLimits::read(&mut limits_section, &service.limits);
        let memory = |value: &Value| {
            value
                .as_u64()
                .filter(|mb| (16..=1_048_576).contains(mb))
                .map(Some)
        };
        let memory_mb = limits_section.take(
            "memory_mb",
            None,
            "a whole number of MiB from 16 to 1048576",
            memory,
            |mb| json!(mb),
        );
        let open = limits_section.millis("open_ms", Duration::from_secs(10), 100..=600_000);
        let close = limits_section.millis("close_ms", Duration::from_secs(10), 100..=600_000);
        limits_section.refuse_rest();

        let mut tools = Section::new(stack, xdg, &[path[0], path[1], id, "tools"]);
        let names = "a list of tool names, * for any run of characters";
        let filter = ToolFilter {
            allow: tools.texts("allow", None, names, |name| !name.is_empty()),
            deny: tools
                .texts("deny", Some(Vec::new()), names, |name| !name.is_empty())
                .unwrap_or_default(),
        };
        tools.refuse_rest();

        let mut cage = Section::new(stack, xdg, &[path[0], path[1], id, "confine"]);
        let confine = cage.is_written().then(|| Confine {
            paths_rw: cage.paths("paths_rw", Vec::new()),
            paths_ro: cage.paths("paths_ro", Vec::new()),
            network: cage.flag("network", false),
            devices: cage.paths("devices", Vec::new()),
        });
        cage.refuse_rest();

        let mut settings = Vec::new();
        let mut errors = Vec::new();
        for part in [section, limits_section, tools, cage] {
            settings.extend(part.settings);
            // If the section is not an object, each of its parts reports it; keep one error.
            errors.extend(
                part.errors
                    .into_iter()
                    .filter(|error| !errors.contains(error))
                    .collect::<Vec<_>>(),
            );
        }
        // Loading a toolbox without a protection that its section asks for would be worse than not loading it.
        let needs_process = [
            (&["confine"][..], confine.is_some()),
            (&["limits", "memory_mb"], memory_mb.is_some()),
            (&["env"], !env.is_empty()),
        ];
        for (key, _) in needs_process
            .iter()
            .filter(|(_, set)| *set && isolation == Isolation::InProcess)
        {
            let path = [&path, *key].concat();
            errors.push(ConfigError::WrongValue {
                origin: stack.origin(&path),
                found: stack.get(&path).map_or_else(String::new, describe),
                key: dotted(path),
                accepted: "nothing unless isolation is \"process\": it needs a process of its own".to_owned(),
            });
        }
        settings.extend(own.iter().map(|(key, value)| {
            let path = ["PHAL", OURS, id, key.as_str()];
            Setting {
                key: dotted(path),
                value: value.clone(),
                origin: stack.origin(&path),
            }
        }));
        let config = Self {
            id: id.to_owned(),
            enabled,
            isolation,
            limits,
            memory_mb,
            open,
            close,
            confine,
            tools: filter,
            allow_sha256: pins
                .unwrap_or_default()
                .iter()
                .map(|hash| hash.to_ascii_lowercase())
                .collect(),
            env,
            own,
            settings,
        };
        ConfigErrors::check(Arc::new(config), errors)
    }
}

fn variables(value: &Value) -> Option<BTreeMap<String, String>> {
    let name_is_good = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let entry = |(name, value): (&String, &Value)| {
        let value = value
            .as_str()
            .filter(|text| !text.contains('\0') && name_is_good(name))?;
        Some((name.clone(), value.to_owned()))
    };
    value.as_object()?.iter().map(entry).collect()
}
