//! The service's own keys: `PHAL."ovos-phal-plugin-tools".service`. Each field of [`ServiceConfig`] is a key with its
//! unit and range; the defaults stand in [`ServiceConfig::defaults`] and [`CallLimits::default`].

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::address::BusConfig;
use super::embedded_bus::EmbeddedBus;
use super::error::ConfigError;
use super::names::OURS;
use super::overrides::Overrides;
use super::paths::{Environment, Xdg, installed_plugins};
use super::policy::{Rule, rules};
use super::reader::Reader;
use section::HiddenArguments;
use section::fields::{Millis, Whole, host, path, paths, texts, word};

/// Keys that are accepted and have no effect any more. The others concerned toolboxes inside the service, and every toolbox
/// runs in a process of its own.
pub(super) const RETIRED: [&str; 3] = ["isolation", "max_generations", LOG_CALLS];

/// It asked for a log of the calls, which is now part of every fact's.
pub(super) const LOG_CALLS: &str = "log_calls";

/// The checked keys of the service. Durations are written in whole milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceConfig {
    /// The folders searched for plugins, in this order; one path or a list.
    #[serde(deserialize_with = "paths")]
    pub plugins_dir: Vec<PathBuf>,
    /// Whether the service runs a messagebus itself.
    #[serde(deserialize_with = "word")]
    pub embedded_bus: EmbeddedBus,
    /// The delay before the first reconnect; it doubles with every attempt and varies by a fifth.
    #[serde(rename = "reconnect_first_ms", with = "Millis::<1, 600_000>")]
    pub reconnect_first: Duration,
    /// The address the embedded bus binds.
    #[serde(deserialize_with = "host")]
    pub embedded_bus_host: String,
    /// How many clients the embedded bus takes, and at most half as many as the service may open files.
    #[serde(with = "Whole::<8, 65_536>")]
    pub embedded_bus_clients: usize,
    /// How many of them may come from one address of another machine.
    #[serde(with = "Whole::<1, 65_536>")]
    pub embedded_bus_clients_per_address: usize,
    /// Host names, with or without a port, under which clients may reach the embedded bus, in addition to addresses and
    /// the names of this machine.
    #[serde(deserialize_with = "texts")]
    pub embedded_bus_http_hosts: Vec<String>,
    /// Origins of web pages that may use the embedded bus, such as `http://localhost:3000`.
    #[serde(deserialize_with = "texts")]
    pub embedded_bus_http_origins: Vec<String>,
    /// The limit of calls in flight, queued ones included; further ones get a `BusyError`. One toolbox may hold three
    /// quarters of the calls that the others do not use.
    #[serde(with = "Whole::<1, 65_536>")]
    pub max_calls: usize,
    /// The limits of calls that a toolbox can override in its `limits`.
    #[serde(flatten)]
    pub limits: CallLimits,
    /// The time limit for one `plan` or `conclude` of a toolbox.
    #[serde(rename = "plan_ms", with = "Millis::<1, 60_000>")]
    pub plan: Duration,
    /// What happens to running motion when the bus stays away.
    #[serde(deserialize_with = "word")]
    pub on_bus_loss: OnBusLoss,
    /// How long the bus may be away before `on_bus_loss` applies. A connected bus that is silent for this time, and
    /// for at least a second, counts as away.
    #[serde(rename = "on_bus_loss_ms", with = "Millis::<0, 600_000>")]
    pub on_bus_loss_after: Duration,
    /// How long running calls may continue when their toolbox is replaced.
    #[serde(rename = "drain_ms", with = "Millis::<0, 3_600_000>")]
    pub drain: Duration,
    /// Whether tools with effect `resume` may be invoked over the bus.
    pub operator_tools: bool,
    /// Who may call which tools. The first rule that matches decides; if none matches, the built-in rules decide.
    #[serde(deserialize_with = "rules")]
    pub policy: Vec<Rule>,
    /// How long a call waits to be confirmed.
    #[serde(rename = "confirm_ms", with = "Millis::<1000, 3_600_000>")]
    pub confirm: Duration,
    /// Whether the service also answers the status topics `mycroft.PHAL.*`.
    pub answer_as_phal: bool,
    /// The longest delay between reconnects, at least `reconnect_first_ms`.
    #[serde(rename = "reconnect_max_ms", with = "Millis::<1, 3_600_000>")]
    pub reconnect_max: Duration,
    /// How many megabytes the files of the facts, below `state_dir`, may take together: every step of every call. With 0
    /// none is written.
    #[serde(with = "Whole::<0, 100_000>")]
    pub facts_mb: u64,
    /// Names of arguments whose values no fact shows, in addition to those that the schemas of tools declare as secret.
    pub facts_hide: HiddenArguments,
    /// The folder of the state that must survive a restart (latches).
    #[serde(deserialize_with = "path")]
    pub state_dir: PathBuf,
    /// The folder for private copies of plugins, made before loading; the first candidate on a filesystem that allows
    /// execution is used.
    #[serde(rename = "stage_dir", deserialize_with = "paths")]
    pub stage_dirs: Vec<PathBuf>,
    /// The largest result of a tool, in bytes of JSON. At most 24 MiB: the bus disconnects senders of messages above 25 MB, and
    /// the message is larger than the result.
    #[serde(with = "Whole::<1024, 25_165_824>")]
    pub max_result_bytes: usize,
    /// The time limit for a child process that test-loads a plugin file. Another value than the default is the limit for the `hello`
    /// of a program, too, which has 30 s otherwise.
    #[serde(rename = "probe_ms", with = "Millis::<100, 60_000>")]
    pub probe: Duration,
    /// The number of failures within a minute after which a toolbox is not restarted until a reload; 0 means no limit.
    #[serde(with = "Whole::<0, 1000>")]
    pub max_failures: u32,
}

/// Limits of calls: service keys, each of which a toolbox can override in its `limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLimits {
    /// How many calls of one toolbox may wait for subsystems; further ones get a `BusyError`.
    #[serde(with = "Whole::<0, 65_536>")]
    pub max_waiting: usize,
    /// How long a call may wait for its subsystems.
    #[serde(rename = "max_wait_ms", with = "Millis::<0, 3_600_000>")]
    pub max_wait: Duration,
    /// The timeout of an action that sets none.
    #[serde(rename = "default_timeout_ms", with = "Millis::<1, 86_400_000>")]
    pub default_timeout: Duration,
    /// How long a toolbox has to report after a cancel before the action counts as abandoned.
    #[serde(rename = "grace_ms", with = "Millis::<0, 60_000>")]
    pub grace: Duration,
    /// How long a machine may take to come to rest after a halt.
    #[serde(rename = "settle_ms", with = "Millis::<0, 600_000>")]
    pub settle: Duration,
    /// The longest duration of an action with effect `safe`, which neither a timeout nor a cancel ends.
    #[serde(rename = "safe_limit_ms", with = "Millis::<1000, 3_600_000>")]
    pub safe_limit: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            max_waiting: 64,
            max_wait: Duration::from_secs(30),
            default_timeout: Duration::from_secs(10),
            grace: Duration::from_millis(500),
            settle: Duration::from_secs(3),
            safe_limit: Duration::from_secs(120),
        }
    }
}

/// What happens to running motion when the bus stays away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBusLoss {
    /// Motion calls are cancelled and their subsystems halted.
    Halt,
    /// Motion continues.
    Continue,
}

impl ServiceConfig {
    /// The path of the section.
    pub(super) const PATH: [&'static str; 3] = ["PHAL", OURS, "service"];

    /// The folder of content. It has a folder for each toolbox, named by its id, and one for the files that answers carry.
    #[must_use]
    pub fn content_dir(&self) -> PathBuf {
        self.state_dir.join("content")
    }

    /// The folder of the files that answers carry; no toolbox has this id.
    #[must_use]
    pub fn answered_content_dir(&self) -> PathBuf {
        self.content_dir().join("service")
    }

    fn defaults(env: &dyn Environment, xdg: &Xdg, bus: &BusConfig) -> Self {
        // A bus on this machine returns sooner, and an attempt to connect to it costs less.
        let (first, max) = if bus.is_local() { (200, 500) } else { (500, 2000) };
        let mut stage_dirs: Vec<PathBuf> = xdg.runtime_dir.iter().map(|dir| dir.join("ovos-tools")).collect();
        stage_dirs.push(xdg.cache_home.join("ovos-tools/stage"));
        Self {
            plugins_dir: std::iter::once(xdg.data_home.join("ovos-tools/plugins"))
                .chain(installed_plugins(env))
                .collect(),
            embedded_bus: EmbeddedBus::Never,
            reconnect_first: Duration::from_millis(first),
            embedded_bus_host: "127.0.0.1".to_owned(),
            embedded_bus_clients: 1024,
            embedded_bus_clients_per_address: 256,
            embedded_bus_http_hosts: Vec::new(),
            embedded_bus_http_origins: Vec::new(),
            max_calls: 4096,
            limits: CallLimits::default(),
            plan: Duration::from_secs(1),
            on_bus_loss: OnBusLoss::Halt,
            on_bus_loss_after: Duration::from_secs(1),
            drain: Duration::from_secs(10),
            operator_tools: false,
            policy: Vec::new(),
            confirm: Duration::from_secs(120),
            answer_as_phal: false,
            reconnect_max: Duration::from_millis(max),
            facts_mb: 32,
            facts_hide: HiddenArguments::default(),
            state_dir: xdg.state_home.join("ovos-tools"),
            stage_dirs,
            max_result_bytes: 8 << 20,
            probe: Duration::from_secs(5),
            max_failures: 5,
        }
    }

    /// Reads and checks the section.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        env: &dyn Environment,
        overrides: &Overrides,
        bus: &BusConfig,
    ) -> Self {
        let at = |key| [&Self::PATH[..], &[key]].concat();
        let mut written = reader.written(&Self::PATH);
        if !overrides.plugins.is_empty() {
            // Paths on the command line are relative to the working directory of the command, unlike paths in files.
            let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let dirs: Vec<PathBuf> = overrides.plugins.iter().map(absolute).collect();
            let dirs: Vec<Option<&str>> = dirs.iter().map(|dir| dir.to_str()).collect();
            written.insert("plugins_dir".to_owned(), json!(dirs));
            reader.set_by_option(&at("plugins_dir"), "--plugins");
        }
        if let Some(mode) = overrides.embedded_bus {
            written.insert("embedded_bus".to_owned(), json!(mode));
            reader.set_by_option(&at("embedded_bus"), "--embedded-bus");
        }
        let mut defaults = Self::defaults(env, reader.xdg, bus);
        // The default of the longest delay between reconnects must be at least the first delay, which a file may set.
        let mut once = Reader::new(reader.stack, reader.xdg, None);
        let (read_once, _) = once.open(&Self::PATH, written.clone(), defaults.clone());
        defaults.reconnect_max = defaults.reconnect_max.max(read_once.reconnect_first);
        let (config, rest) = reader.open(&Self::PATH, written, defaults);
        let elsewhere = [&["doors", "programs", "mounts"], &RETIRED[..]].concat();
        reader.refuse(&Self::PATH, &config, rest, &elsewhere);

        if config.reconnect_max < config.reconnect_first {
            let first = config.reconnect_first.as_millis();
            let accepted = format!("at least reconnect_first_ms ({first})");
            reader.wrong(
                &at("reconnect_max_ms"),
                config.reconnect_max.as_millis(),
                accepted,
            );
        }
        let may_open = match config.embedded_bus {
            EmbeddedBus::Never => false,
            EmbeddedBus::Auto => bus.is_local(),
            EmbeddedBus::Always => true,
        };
        if may_open && bus.url.scheme() == "wss" {
            reader.errors.push(ConfigError::EmbeddedTls {
                origin: reader.origin(&at("embedded_bus")),
                mode: json!(config.embedded_bus),
                url: bus.url.origin().ascii_serialization(),
            });
        }
        config
    }
}
