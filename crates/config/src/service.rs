//! The service's own keys: `PHAL."ovos-phal-plugin-tools".service`. [`ServiceConfig`] has their checked values; each
//! field names its key, unit, default and range.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::json;

use super::address::BusConfig;
use super::error::ConfigError;
use super::layers::Stack;
use super::origin::{Origin, Setting};
use super::paths::{Environment, Xdg, rooted};
use super::section::{Section, Words, show_paths};
use super::{OURS, Overrides};

/// The checked keys of the service. Durations are written in whole milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    /// `plugins_dir`: the folders searched for plugins, in this order; one path or a list. Default
    /// `$XDG_DATA_HOME/ovos-tools/plugins`, `/usr/local/lib/ovos-tools/plugins`, `/usr/lib/ovos-tools/plugins`.
    pub plugins_dir: Vec<PathBuf>,
    /// `isolation`: where toolboxes run if their section has no `isolation`. Default `process`.
    pub isolation: Isolation,
    /// `embedded_bus`: whether the service runs a messagebus itself. Default `never`.
    pub embedded_bus: EmbeddedBus,
    /// `embedded_bus_host`: the address the embedded bus binds. Default `127.0.0.1`.
    pub embedded_bus_host: String,
    /// `max_calls`: the limit of calls in flight, queued ones included; further ones get a `BusyError`. Default 4096,
    /// 1 to 65536.
    pub max_calls: usize,
    /// The limits of calls that a toolbox can override in its `limits`.
    pub limits: CallLimits,
    /// `plan_ms`: the time limit for one `plan` or `conclude` of a toolbox. Default 1000, 1 to 60000.
    pub plan: Duration,
    /// `on_bus_loss`: what happens to running motion when the bus stays away. Default `halt`.
    pub on_bus_loss: OnBusLoss,
    /// `on_bus_loss_ms`: how long the bus may be away before `on_bus_loss` applies. A connected bus that is silent
    /// for this time, and for at least a second, counts as away. Default 1000, 0 to 600000.
    pub on_bus_loss_after: Duration,
    /// `drain_ms`: how long running calls may continue when their toolbox is replaced. Default 10000, 0 to 3600000.
    pub drain: Duration,
    /// `max_generations`: how many copies of plugins may be loaded into the service over its life (they are never
    /// unloaded); beyond it a reload requires a restart. Default 64, 1 to 4096.
    pub max_generations: usize,
    /// `operator_tools`: whether tools with effect `resume` may be invoked over the bus. Default false.
    pub operator_tools: bool,
    /// `answer_as_phal`: whether the `mycroft.PHAL.*` status topics are answered too. Default false.
    pub answer_as_phal: bool,
    /// `reconnect_first_ms`: the delay before the first reconnect; it doubles with every attempt and varies by a
    /// fifth. Default 200 for a bus on this machine (by its address) and 500 for any other, 1 to 600000.
    pub reconnect_first: Duration,
    /// `reconnect_max_ms`: the longest delay between reconnects, at least `reconnect_first_ms`. Default 500 for a bus
    /// on this machine and 2000 for any other, or `reconnect_first_ms` if that is longer; 1 to 3600000.
    pub reconnect_max: Duration,
    /// `log_calls`: whether every call is logged, with its arguments and its outcome, in `calls.jsonl` below
    /// `state_dir`. For debugging. Default false.
    pub log_calls: bool,
    /// `state_dir`: the folder of the state that must survive a restart (latches). Default
    /// `$XDG_STATE_HOME/ovos-tools`.
    pub state_dir: PathBuf,
    /// `stage_dir`: the folder for private copies of plugins, made before loading; the first candidate on a
    /// filesystem that allows execution is used. Default `$XDG_RUNTIME_DIR/ovos-tools`, then
    /// `$XDG_CACHE_HOME/ovos-tools/stage`.
    pub stage_dirs: Vec<PathBuf>,
    /// `max_result_bytes`: the largest result of a tool, in bytes of JSON. Default 8388608 (8 MiB), 1024 to 25165824
    /// (24 MiB: with its envelope it still has to pass a bus that disconnects senders above 25 MB).
    pub max_result_bytes: usize,
    /// `probe_ms`: the time limit for a child process that test-loads a plugin file. Default 5000, 100 to 60000.
    pub probe: Duration,
    /// `max_failures`: the number of failures within a minute after which a toolbox is not restarted until a reload;
    /// 0 means no limit. Default 5, 0 to 1000.
    pub max_failures: u32,
}

/// Limits of calls: service keys, each of which a toolbox can override in its `limits`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimits {
    /// `max_waiting`: how many calls of one toolbox may wait for subsystems; further ones get a `BusyError`. Default
    /// 64, 0 to 65536.
    pub max_waiting: usize,
    /// `max_wait_ms`: how long a call may wait for its subsystems. Default 30000, 0 to 3600000.
    pub max_wait: Duration,
    /// `default_timeout_ms`: the timeout of an action that sets none. Default 10000, 1 to 86400000.
    pub default_timeout: Duration,
    /// `grace_ms`: how long a toolbox has to report after a cancel before the action counts as abandoned. Default
    /// 500, 0 to 60000.
    pub grace: Duration,
    /// `settle_ms`: how long a machine may take to come to rest after a halt. Default 3000, 0 to 600000.
    pub settle: Duration,
    /// `safe_limit_ms`: the longest duration of an action with effect `safe`, which neither a timeout nor a cancel
    /// ends. Default 120000, 1000 to 3600000.
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

impl CallLimits {
    pub(super) fn read(section: &mut Section<'_>, default: &Self) -> Self {
        Self {
            max_waiting: section.count("max_waiting", default.max_waiting, 0..=65_536),
            max_wait: section.millis("max_wait_ms", default.max_wait, 0..=3_600_000),
            default_timeout: section.millis("default_timeout_ms", default.default_timeout, 1..=86_400_000),
            grace: section.millis("grace_ms", default.grace, 0..=60_000),
            settle: section.millis("settle_ms", default.settle, 0..=600_000),
            safe_limit: section.millis("safe_limit_ms", default.safe_limit, 1_000..=3_600_000),
        }
    }
}

/// Where a toolbox runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a child process of its own.
    Process,
    /// Inside the service.
    InProcess,
}

impl Words for Isolation {
    const WORDS: &'static [(&'static str, Self)] =
        &[("process", Self::Process), ("in_process", Self::InProcess)];
}

/// Whether the service runs a messagebus itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddedBus {
    /// Never; the service is only a client.
    Never,
    /// If the configured address is local and nothing listens on it.
    Auto,
    /// Always; a port in use is an error.
    Always,
}

impl Words for EmbeddedBus {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("never", Self::Never),
        ("auto", Self::Auto),
        ("always", Self::Always),
    ];
}

/// What happens to running motion when the bus stays away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBusLoss {
    /// Motion calls are cancelled and their subsystems halted.
    Halt,
    /// Motion continues.
    Continue,
}

impl Words for OnBusLoss {
    const WORDS: &'static [(&'static str, Self)] = &[("halt", Self::Halt), ("continue", Self::Continue)];
}

macro_rules! from_word {
    ($($name:ty),*) => {$(
        impl FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::from_word(word).ok_or_else(|| format!("found {word:?}, expected {}", Self::accepted()))
            }
        }
    )*};
}
from_word!(Isolation, EmbeddedBus, OnBusLoss);

impl ServiceConfig {
    /// The path of the section.
    pub(super) const PATH: [&'static str; 3] = ["PHAL", OURS, "service"];

    /// Reads and checks the section.
    pub(super) fn read(
        env: &dyn Environment,
        xdg: &Xdg,
        stack: &Stack,
        overrides: &Overrides,
        bus: &BusConfig,
    ) -> (Self, Vec<Setting>, Vec<ConfigError>) {
        let mut section = Section::new(stack, xdg, &Self::PATH);
        let it = &mut section;

        let plugins_dir = match overrides.plugins.as_slice() {
            [] => it.paths(
                "plugins_dir",
                vec![
                    xdg.data_home.join("ovos-tools/plugins"),
                    rooted(env, "/usr/local/lib/ovos-tools/plugins"),
                    rooted(env, "/usr/lib/ovos-tools/plugins"),
                ],
            ),
            // Relative to the working directory of the command, unlike paths in files.
            given => {
                let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
                it.fixed(
                    "plugins_dir",
                    given.iter().map(absolute).collect(),
                    "--plugins",
                    |dirs: &Vec<PathBuf>| show_paths(dirs),
                )
            }
        };
        let embedded_bus = match overrides.embedded_bus {
            None => it.word("embedded_bus", EmbeddedBus::Never),
            Some(given) => it.fixed("embedded_bus", given, "--embedded-bus", |choice| {
                json!(choice.word())
            }),
        };
        let host = |value: &serde_json::Value| {
            value
                .as_str()
                .filter(|host| !host.trim().is_empty())
                .map(str::to_owned)
        };
        let (first, max) = if bus.is_local() { (200, 500) } else { (500, 2000) };
        let reconnect_first = it.millis("reconnect_first_ms", Duration::from_millis(first), 1..=600_000);
        let stage_default = xdg.runtime_dir.iter().map(|dir| dir.join("ovos-tools"));
        let stage_default = stage_default
            .chain([xdg.cache_home.join("ovos-tools/stage")])
            .collect();

        let config = Self {
            plugins_dir,
            isolation: it.word("isolation", Isolation::Process),
            embedded_bus,
            embedded_bus_host: it.take(
                "embedded_bus_host",
                "127.0.0.1".to_owned(),
                "a host name or address",
                host,
                |host| json!(host),
            ),
            max_calls: it.count("max_calls", 4096, 1..=65_536),
            limits: CallLimits::read(it, &CallLimits::default()),
            plan: it.millis("plan_ms", Duration::from_secs(1), 1..=60_000),
            on_bus_loss: it.word("on_bus_loss", OnBusLoss::Halt),
            on_bus_loss_after: it.millis("on_bus_loss_ms", Duration::from_secs(1), 0..=600_000),
            drain: it.millis("drain_ms", Duration::from_secs(10), 0..=3_600_000),
            max_generations: it.count("max_generations", 64, 1..=4096),
            operator_tools: it.flag("operator_tools", false),
            answer_as_phal: it.flag("answer_as_phal", false),
            reconnect_first,
            reconnect_max: it.millis(
                "reconnect_max_ms",
                Duration::from_millis(max).max(reconnect_first),
                1..=3_600_000,
            ),
            log_calls: it.flag("log_calls", false),
            state_dir: it.path("state_dir", xdg.state_home.join("ovos-tools")),
            stage_dirs: it.paths("stage_dir", stage_default),
            max_result_bytes: it.count("max_result_bytes", 8 << 20, 1024..=24 << 20),
            probe: it.millis("probe_ms", Duration::from_secs(5), 100..=60_000),
            max_failures: it
                .count("max_failures", 5, 0..=1000)
                .try_into()
                .unwrap_or(u32::MAX),
        };
        if config.reconnect_max < config.reconnect_first {
            let first = config.reconnect_first.as_millis();
            it.wrong(
                "reconnect_max_ms",
                config.reconnect_max.as_millis(),
                format!("at least reconnect_first_ms ({first})"),
            );
        }
        let may_open = match config.embedded_bus {
            EmbeddedBus::Never => false,
            EmbeddedBus::Auto => bus.is_local(),
            EmbeddedBus::Always => true,
        };
        if may_open && bus.url.scheme() == "wss" {
            let origin = match overrides.embedded_bus {
                Some(_) => Origin::Option("--embedded-bus"),
                None => stack.origin(&[&Self::PATH[..], &["embedded_bus"]].concat()),
            };
            it.errors.push(ConfigError::EmbeddedTls {
                origin,
                mode: config.embedded_bus.word(),
                url: bus.url.to_string(),
            });
        }
        it.refuse_rest();
        (config, section.settings, section.errors)
    }
}
