//! The section of one toolbox: the checked keys of the host, and all others, which are the toolbox's own and are
//! passed on unchanged. A wrong section affects only that toolbox. Each field is a key with its unit and range; its
//! default stands in [`Section::read`] or in a `Default`.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::is_toolbox_id;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::confinement;
use super::error::{ConfigError, ConfigErrors};
use super::layers::Stack;
use super::names::OURS;
use super::origin::{Setting, dotted};
use super::paths::Xdg;
use super::reader::Reader;
use super::service::{CallLimits, ServiceConfig};
use section::fields::{Millis, checked};
use section::pattern::{matches, names_tool};
use section::{Confine, ToolboxConfig};

/// A key that is accepted and has no effect any more.
pub(super) const RETIRED: &str = "isolation";

/// The section of one toolbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The toolbox's id, the key of the section.
    pub id: String,
    /// The keys that the host obeys.
    pub toolbox: ToolboxConfig,
    /// `limits`.
    pub limits: ToolboxLimits,
    /// `tools`: which of its tools are visible on the bus.
    pub tools: ToolFilter,
    /// Host keys in force and the toolbox's own top-level keys, with origins.
    pub settings: Vec<Setting>,
}

/// `limits`: the service's limits with the overrides of this toolbox, and its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolboxLimits {
    /// The limits of its calls.
    #[serde(flatten)]
    pub calls: CallLimits,
    /// The memory limit of its process, in MiB.
    #[serde(deserialize_with = "mebibytes")]
    pub memory_mb: Option<u64>,
    /// The time limit for opening it and listing its tools.
    #[serde(rename = "open_ms", with = "Millis::<100, 600_000>")]
    pub open: Duration,
    /// The time limit for closing it, after which it is abandoned.
    #[serde(rename = "close_ms", with = "Millis::<100, 600_000>")]
    pub close: Duration,
}

impl Default for ToolboxLimits {
    fn default() -> Self {
        Self {
            calls: CallLimits::default(),
            memory_mb: None,
            open: Duration::from_secs(10),
            close: Duration::from_secs(10),
        }
    }
}

/// `tools {allow, deny}`: names of tools; `*` matches any run of characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFilter {
    /// If present, only tools that match one of these exist; also applies to steps of other tools.
    #[serde(deserialize_with = "names")]
    pub allow: Option<Vec<String>>,
    /// Tools that match one of these do not exist, even if they match `allow`; also applies to steps of other tools.
    #[serde(deserialize_with = "names")]
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Whether the tool is visible on the bus.
    #[must_use]
    pub fn permits(&self, tool: &str) -> bool {
        self.forbidden_by(tool).is_none()
    }

    /// Whether the filter of a list of several toolboxes permits this tool.
    #[must_use]
    pub fn permits_tool(&self, toolbox_id: &str, tool: &str) -> bool {
        let is_in = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| names_tool(pattern, toolbox_id, tool))
        };
        !is_in(&self.deny) && self.allow.as_deref().is_none_or(is_in)
    }

    /// Returns the key of the toolbox's section that hides the tool, if one does.
    #[must_use]
    pub fn forbidden_by(&self, tool: &str) -> Option<&'static str> {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        if is_in(&self.deny) {
            Some("tools.deny")
        } else if self.allow.as_deref().is_none_or(is_in) {
            None
        } else {
            Some("tools.allow")
        }
    }
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

impl Section {
    /// Reads the section of a toolbox; without one, the defaults and the service's values hold.
    pub(super) fn read(
        xdg: &Xdg,
        stack: &Stack,
        id: &str,
        service: &ServiceConfig,
    ) -> Result<Arc<Self>, ConfigErrors> {
        let path = ["PHAL", OURS, id];
        if let Some(reason) = id_problem(id) {
            return Err(ConfigErrors::from(ConfigError::ToolboxId {
                origin: stack.origin(&path),
                key: dotted(["PHAL", OURS]),
                name: id.to_owned(),
                reason,
            }));
        }
        let at = |keys: &[&'static str]| [&path[..], keys].concat();
        // The origin of a key that is absent here is that of the service's key, or a default if the service has no such key.
        let mut reader = Reader::new(stack, xdg, Some(&ServiceConfig::PATH));
        let written = reader.written(&path);
        let (host, mut own) = reader.open(&path, written, ToolboxConfig::default());
        for part in ["limits", "tools", "confine", RETIRED] {
            own.shift_remove(part);
        }
        for value in own.values_mut() {
            *value = reader.below_home(value);
        }
        let limits = ToolboxLimits {
            calls: service.limits.clone(),
            ..ToolboxLimits::default()
        };
        let limits = reader.closed(&at(&["limits"]), limits);
        let tools = reader.closed(&at(&["tools"]), ToolFilter::default());
        let written = stack.get(&at(&["confine"])).filter(|written| !written.is_null());
        let asked_for = written.filter(|written| **written != Value::Bool(false));
        let default = written
            .is_none()
            .then(|| confinement::default(id, &own, &host.env, xdg))
            .flatten();
        let confine = (asked_for.is_some() || default.is_some()).then(|| {
            let defaults = default.unwrap_or_default();
            Confine {
                default: defaults.default.clone(),
                ..reader.closed(&at(&["confine"]), defaults)
            }
        });

        let mut settings = reader.settings;
        settings.extend(own.iter().map(|(key, value)| {
            let path = ["PHAL", OURS, id, key.as_str()];
            Setting {
                key: dotted(path),
                value: value.clone(),
                origin: stack.origin(&path),
            }
        }));
        let toolbox = ToolboxConfig {
            allow_sha256: host
                .allow_sha256
                .iter()
                .map(|hash| hash.to_ascii_lowercase())
                .collect(),
            confine,
            own,
            ..host
        };
        let section = Self {
            id: id.to_owned(),
            toolbox,
            limits,
            tools,
            settings,
        };
        ConfigErrors::check(Arc::new(section), reader.errors)
    }
}

fn mebibytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    checked(
        from,
        "a whole number of MiB from 16 to 1048576",
        |mb: Option<u64>| mb.is_none_or(|mb| (16..=1_048_576).contains(&mb)).then_some(mb),
    )
}

fn names<'de, D: Deserializer<'de>, T: From<Vec<String>> + Default>(from: D) -> Result<T, D::Error> {
    let accepted = "a list of tool names, * for any run of characters";
    checked(from, accepted, |names: Option<Vec<String>>| match names {
        Some(names) => names.iter().all(|name| !name.is_empty()).then(|| names.into()),
        None => Some(T::default()),
    })
}
