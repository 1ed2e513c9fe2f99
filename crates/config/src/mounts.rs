//! The servers of the Model Context Protocol that are mounted as toolboxes, `service.mounts.<name>`.
//!
//! A mount is written in one of three forms: as other hosts write a server in their `mcpServers`, as `ovos-mcp-toolbox` writes it,
//! or with keys that neither has. An error in a mount affects only that mount. Each field of [`MountConfig`] is a key; the
//! defaults are in its `Default`.

mod fields;
mod hidden;
mod other_hosts;
mod transport;
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_toolbox_wire::{Effect, is_toolbox_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::{ConfigError, ConfigErrors, Notice};
use super::layers::Stack;
use super::names::OURS;
use super::origin::{Setting, dotted};
use super::paths::{Environment, Xdg};
use super::reader::Reader;
use super::service::ServiceConfig;
use super::text::describe;
use super::toolbox::{Section, ToolFilter};
use hidden::{without, without_secrets};
use section::fields::optional_path;
use section::{ProgramConfig, ToolboxConfig};

pub use hidden::opaque_segments;
pub use transport::MountTransport;

/// The toolbox of `ovos-tool-adapters`. Its section is a mount if it names a server.
pub const ADAPTER: &str = "ovos-mcp-toolbox";

/// The key under which other hosts have their servers. The whole object may be pasted into `mounts`.
const OTHER_HOSTS: &str = "mcpServers";

/// Keys of other hosts that have no meaning here: the policy decides whether a call has to be confirmed.
const PASSED_OVER: [&str; 2] = ["autoApprove", "alwaysAllow"];

/// Keys whose values may be secret. A wrong value of `bearer_env` is usually the token itself.
const SECRET: &[&str] = &["env", "headers", "url", "bearer_env"];

/// One mounted server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountConfig {
    /// How the server is reached. Default: `http` if there is a `url`, else `stdio`.
    #[serde(deserialize_with = "fields::transport")]
    pub transport: Option<MountTransport>,
    /// Another name of `transport`.
    #[serde(rename = "type", deserialize_with = "fields::transport")]
    pub kind: Option<MountTransport>,
    /// The program to start: an absolute path, or a name that is searched in `PATH`.
    #[serde(deserialize_with = "fields::command")]
    pub command: Option<String>,
    /// The arguments of `command`.
    #[serde(deserialize_with = "fields::args")]
    pub args: Vec<String>,
    /// Variables added to the environment of the process. They may be secret and are never shown.
    #[serde(deserialize_with = "fields::variables")]
    pub env: BTreeMap<String, String>,
    /// The working directory of the process. Default: an empty folder.
    #[serde(deserialize_with = "optional_path")]
    pub cwd: Option<PathBuf>,
    /// The URL of the server. Its query may be secret and is never shown.
    #[serde(deserialize_with = "fields::address")]
    pub url: Option<String>,
    /// Headers of every request. Their values may be secret and are never shown.
    #[serde(deserialize_with = "fields::headers")]
    pub headers: BTreeMap<String, String>,
    /// The variable of the service's environment that holds the bearer token.
    #[serde(deserialize_with = "fields::variable")]
    pub bearer_env: Option<String>,
    /// How long a call may take, in seconds.
    #[serde(deserialize_with = "fields::seconds")]
    pub timeout: f64,
    /// How long the server may take from its start to its list of tools, in seconds.
    #[serde(deserialize_with = "fields::seconds")]
    pub startup_timeout: f64,
    /// Which tools of the server are mounted, by the names that the server gives them.
    #[serde(deserialize_with = "fields::filter")]
    pub tools: ToolFilter,
    /// The effects of tools, by the names that the server gives them. All other tools have the effect `write`.
    #[serde(deserialize_with = "fields::effects")]
    pub effects: BTreeMap<String, Effect>,
    /// Whether a tool that the server marks as read-only has the effect `read`.
    pub trust_hints: bool,
    /// Whether the server is mounted.
    pub enabled: bool,
    /// The opposite of `enabled`, as other hosts write it.
    pub disabled: bool,
    /// What the toolbox is for.
    #[serde(deserialize_with = "fields::description")]
    pub description: Option<String>,
    /// The shape of results.
    #[serde(deserialize_with = "section::fields::word")]
    pub output: MountOutput,
    /// The values of the variables that the keys of the mount name. They may be secret and are never shown. This field is not a
    /// key.
    #[serde(default, skip_serializing)]
    pub filled_in: Vec<String>,
    /// The file of the tokens with which the program signs in at a server with a URL. This field is not a key.
    #[serde(default, skip_serializing)]
    pub credentials: Option<PathBuf>,
}

/// The shape of a mount's results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountOutput {
    /// The structured result of the server, else `{content: its text}`. An error of the server is an error of the call.
    #[default]
    Structured,
    /// `{content, is_error, raw}`, as `ovos-mcp-toolbox` returns it.
    Adapter,
}

impl Default for MountConfig {
    fn default() -> Self {
        Self {
            transport: None,
            kind: None,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            bearer_env: None,
            timeout: 30.0,
            startup_timeout: 60.0,
            tools: ToolFilter::default(),
            effects: BTreeMap::new(),
            trust_hints: false,
            enabled: true,
            disabled: false,
            description: None,
            output: MountOutput::Structured,
            filled_in: Vec::new(),
            credentials: None,
        }
    }
}

impl MountConfig {
    /// Whether both `enabled` and `disabled` switch the mount on.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled && !self.disabled
    }

    /// Whether every request has a token that is written in the configuration.
    #[must_use]
    pub fn has_own_token(&self) -> bool {
        let is_token = |name: &String| name.eq_ignore_ascii_case("authorization");
        self.bearer_env.is_some() || self.headers.keys().any(is_token)
    }

    /// The mount `id` with the file of its tokens, in this state folder, if it may have one.
    #[must_use]
    pub fn with_credentials(&self, id: &str, state_dir: &Path) -> Self {
        let signs_in = self.transport == Some(MountTransport::Http) && !self.has_own_token();
        let file = || state_dir.join("mounts").join(format!("{id}.json"));
        Self {
            credentials: signs_in.then(file),
            ..self.clone()
        }
    }

    /// The configuration that the mounts program receives as the section of the toolbox.
    fn own(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut own)) => {
                own.insert("filled_in".to_owned(), json!(self.filled_in));
                if let Some(file) = &self.credentials {
                    own.insert("credentials".to_owned(), json!(file));
                }
                own
            }
            // A struct whose keys are strings always is an object.
            _ => Map::new(),
        }
    }
}

/// The program that offers one mounted server as a toolbox. `command` is the mounts program.
pub(super) fn program(id: &str, mount: &MountConfig, command: &str, env: &dyn Environment) -> ProgramConfig {
    let token = mount.bearer_env.as_ref();
    let token = token.and_then(|name| Some((name.clone(), env.var(name)?)));
    // The places of the certificates that https needs.
    let certificates = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    let certificates = certificates.map(|name| Some((name.to_owned(), env.var(name)?)));
    let server = mount.command.iter().chain(&mount.args).cloned();
    ProgramConfig {
        command: vec![command.to_owned()],
        args: vec!["--alone".to_owned(), id.to_owned()],
        env: token
            .into_iter()
            .chain(certificates.into_iter().flatten())
            .collect(),
        enabled: mount.is_enabled(),
        toolboxes: vec![id.to_owned()],
        mounted: Some(server.collect()),
        ..ProgramConfig::new(&format!("mounts/{id}"))
    }
}

/// The mounts by the id of their toolbox: each is a configuration or all its errors.
pub(super) type Mounts = BTreeMap<String, Result<Arc<MountConfig>, ConfigErrors>>;

/// Reads every mount. Also returns the values in force, without those that may be secret. A mount that cannot have its id causes a
/// notice, but no error for the service or for the mount that has this id.
pub(super) fn read(
    env: &dyn Environment,
    xdg: &Xdg,
    stack: &Stack,
    top: &mut Reader<'_>,
    notices: &mut Vec<Notice>,
) -> (Mounts, Vec<Setting>) {
    let (mut mounts, mut settings) = (Mounts::new(), Vec::new());
    let at = [&ServiceConfig::PATH[..], &["mounts"]].concat();
    let pasted = [&at[..], &[OTHER_HOSTS]].concat();
    let mut places: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for path in [at.clone(), pasted] {
        let written = top.written(&path);
        let names = written.iter().filter(|(_, entry)| !entry.is_null());
        let names = names.map(|(name, _)| name.clone());
        let names = names.filter(|name| path != at || name != OTHER_HOSTS).collect();
        places.push((path, names));
    }
    for (path, names) in &places {
        for name in names {
            let at = [&path[..], &[name.as_str()]].concat();
            let mut reader = Reader::new(stack, xdg, None);
            let id = toolbox_id(name);
            if !is_toolbox_id(&id) {
                let accepted = "a name that becomes a toolbox id: 1 to 64 letters, digits, _ and -, and neither `service` nor `all`";
                notices.push(left_out(stack, &at, format!("the name {name:?}"), accepted));
                continue;
            }
            if mounts.contains_key(&id) {
                let accepted =
                    "mount names that make different toolbox ids (in lower case, other characters become _)";
                let found = format!("a second mount that is toolbox {id:?}");
                notices.push(left_out(stack, &at, found, accepted));
                continue;
            }
            reader.secret = SECRET;
            let mut written = reader.written(&at);
            if path.last() == Some(&OTHER_HOSTS) {
                let ours = MountConfig::default().own();
                let (translated, unused) = other_hosts::translated(written, |key| ours.contains_key(key));
                written = translated;
                if !unused.is_empty() {
                    notices.push(Notice::NotUsed {
                        origin: stack.origin(&at),
                        key: dotted(at.iter().copied()),
                        unused,
                    });
                }
            }
            let mount = mount(&mut reader, &at, written, &[], env);
            let public = reader.settings.into_iter().map(without_secrets);
            settings.extend(public.map(|setting| without(setting, &mount.filled_in)));
            mounts.insert(id, ConfigErrors::check(Arc::new(mount), reader.errors));
        }
    }
    let at = ["PHAL", OURS, ADAPTER];
    let names_server = ["transport", "type", "command", "url"]
        .iter()
        .any(|key| stack.get(&[&at[..], &[key]].concat()).is_some());
    if names_server && !mounts.contains_key(ADAPTER) {
        let mut reader = Reader::new(stack, xdg, None);
        let hosts = ["isolation", "allow_sha256", "limits", "confine"];
        reader.secret = SECRET;
        let written = reader.written(&at);
        let mut mount = mount(&mut reader, &at, written, &hosts, env);
        if stack.get(&[&at[..], &["output"]].concat()).is_none() {
            mount.output = MountOutput::Adapter;
        }
        mounts.insert(
            ADAPTER.to_owned(),
            ConfigErrors::check(Arc::new(mount), reader.errors),
        );
    }
    (mounts, settings)
}

fn left_out(stack: &Stack, at: &[&str], found: String, accepted: &str) -> Notice {
    Notice::LeftOut(ConfigError::WrongValue {
        origin: stack.origin(at),
        key: dotted(at.iter().copied()),
        found,
        accepted: accepted.to_owned(),
    })
}

/// The id of the toolbox that a server of this name becomes. Other hosts allow names that are not valid ids.
fn toolbox_id(name: &str) -> String {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.to_ascii_lowercase()
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .collect()
}

fn mount(
    reader: &mut Reader<'_>,
    at: &[&str],
    mut written: Map<String, Value>,
    of_the_host: &[&str],
    env: &dyn Environment,
) -> MountConfig {
    let keys: Vec<String> = written
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, _)| key.clone())
        .collect();
    let (filled_in, missing) = variables::filled(&mut written, env);
    for variable in &missing {
        let below: Vec<&str> = variable.at.iter().map(String::as_str).collect();
        reader.wrong(&[at, &below].concat(), &variable.written, variable);
    }
    let (mut mount, mut rest) = reader.open(at, written, MountConfig::default());
    mount.filled_in = filled_in;
    for key in PASSED_OVER.iter().chain(of_the_host) {
        rest.shift_remove(*key);
    }
    reader.refuse(at, &mount, rest, &[]);
    if reader.stack.get(at).is_some_and(|written| !written.is_object()) {
        return mount;
    }
    let key = |key| [at, &[key]].concat();
    if let (Some(one), Some(other)) = (mount.transport, mount.kind)
        && one != other
    {
        let found = reader.stack.get(&key("type")).map_or_else(String::new, describe);
        reader.wrong(
            &key("type"),
            found,
            "the same value as `transport`, or only one of the two keys",
        );
    }
    let written = mount.transport.or(mount.kind);
    let guessed = match keys.iter().any(|key| key == "url") {
        true => MountTransport::Http,
        false => MountTransport::Stdio,
    };
    let transport = written.unwrap_or(guessed);
    (mount.transport, mount.kind) = (Some(transport), None);
    let wrote = |key: &str| keys.iter().any(|written| written == key);
    let (needed, what, others): (_, _, &[&str]) = match transport {
        MountTransport::Stdio => (
            "command",
            "a command to start, such as \"command\": \"uvx\", \"args\": [\"a-server\"]; or a \"url\"",
            &["url", "headers", "bearer_env"],
        ),
        MountTransport::Http => (
            "url",
            "the server's address, such as \"url\": \"http://127.0.0.1:8000/mcp\"",
            &["command", "args", "cwd"],
        ),
    };
    let needs = !wrote(needed);
    let strange: Vec<&str> = others.iter().copied().filter(|key| wrote(key)).collect();
    if needs {
        reader.wrong(at, format!("no {needed}"), what);
    }
    for other in strange {
        let how = match transport {
            MountTransport::Stdio => "a server that is started (stdio)",
            MountTransport::Http => "a server with a URL (http)",
        };
        reader.wrong(&key(other), "the key", format!("no such key for {how}"));
    }
    mount
}

/// Reads the section of a mount. The keys of the host are in the section of the toolbox, as for any toolbox; all others are in
/// `service.mounts`.
pub(super) fn section(
    xdg: &Xdg,
    stack: &Stack,
    id: &str,
    service: &ServiceConfig,
    mount: &Result<Arc<MountConfig>, ConfigErrors>,
) -> Result<Arc<Section>, ConfigErrors> {
    let mount = mount.as_ref().map_err(Clone::clone)?;
    if let Some(error) = (id != ADAPTER).then(|| stray(stack, id)).flatten() {
        return Err(ConfigErrors::from(error));
    }
    let section = Section::read(xdg, stack, id, service)?;
    let toolbox = ToolboxConfig {
        enabled: section.toolbox.enabled && mount.is_enabled(),
        // `env` of the mount applies to the server and not to the program that starts it.
        env: BTreeMap::new(),
        own: mount.with_credentials(id, &service.state_dir).own(),
        ..section.toolbox.clone()
    };
    let settings = section.settings.iter().cloned().map(without_secrets).collect();
    Ok(Arc::new(Section {
        toolbox,
        settings,
        ..Section::clone(&section)
    }))
}

/// Returns the error for a key in the toolbox's section that belongs into the mount.
fn stray(stack: &Stack, id: &str) -> Option<ConfigError> {
    let path = ["PHAL", OURS, id];
    let written = stack.get(&path)?.as_object()?;
    let host = [
        "enabled",
        "isolation",
        "limits",
        "tools",
        "confine",
        "allow_sha256",
    ];
    let key = written.keys().find(|key| !host.contains(&key.as_str()))?;
    let at = [&path[..], &[key.as_str()]].concat();
    Some(ConfigError::WrongValue {
        origin: stack.origin(&at),
        key: dotted(at),
        found: "the key".to_owned(),
        accepted: format!("the keys of the mount in service.mounts.{id}"),
    })
}
