//! Tools that behave and misbehave on request, for the service's tests.
//!
//! `plain` has the tools that a Python twin has, too; `assemble` moves a simulated machine; `machine` is that machine
//! and the log of its commands with their times; `probe` has tools by which tests inspect the toolbox. Read
//! `Testbed`.

#![forbid(unsafe_code)]

mod assemble;
mod machine;
mod plain;
mod probe;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use ovos_toolbox_sdk::prelude::*;

use machine::Machine;

/// The build: tests make several that differ in this.
const VERSION: &str = match option_env!("TESTBED_VERSION") {
    Some(version) => version,
    None => "1",
};

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Returned by the tool `version`.
    greeting: String,
    /// Every motor command is appended to this file as `<monotonic ns> <kind> <subsystem> <call id>/<action id>`.
    motor_log: Option<PathBuf>,
    /// `open` fails with this message.
    refuse_open: Option<String>,
    /// `resume` is refused until the tool `configure` says otherwise.
    refuse_resume: bool,
    /// A reload is refused until the tool `configure` says otherwise.
    refuse_close: bool,
    /// Says that the machine is simulated, as it is.
    simulated: bool,
    /// How many `grown_<n>` tools there are from the start.
    grown: u32,
    /// How many bytes the description of each of them has, at least.
    grown_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            greeting: "hello".to_string(),
            motor_log: None,
            refuse_open: None,
            refuse_resume: false,
            refuse_close: false,
            simulated: true,
            grown: 0,
            grown_bytes: 0,
        }
    }
}

struct Testbed {
    greeting: String,
    machine: Machine,
    refuse_resume: AtomicBool,
    refuse_close: AtomicBool,
    marks: AtomicU64,
    grown: Mutex<u32>,
    grown_bytes: usize,
    last_message: Mutex<probe::LastMessage>,
}

impl Toolbox for Testbed {
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            version: VERSION.to_string(),
            exclusive: option_env!("TESTBED_EXCLUSIVE").is_some(),
            subscribes: vec!["testbed.message".to_string(), "testbed.other".to_string()],
            requests: vec!["testbed.question".to_string()],
            ..manifest!("testbed")
        }
    }

    async fn open(host: Host, config: Config) -> Result<Self, ToolError> {
        if let Some(reason) = config.refuse_open {
            return Err(ToolError::msg(reason));
        }
        if config.simulated {
            host.simulator("");
        }
        Ok(Self {
            greeting: config.greeting,
            machine: Machine::open(config.motor_log.as_deref())?,
            refuse_resume: AtomicBool::new(config.refuse_resume),
            refuse_close: AtomicBool::new(config.refuse_close),
            marks: AtomicU64::new(0),
            grown: Mutex::new(config.grown),
            grown_bytes: config.grown_bytes,
            last_message: Mutex::default(),
        })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        let mut tools = plain::tools();
        tools.extend(assemble::tools());
        tools.extend(probe::tools(self));
        tools
    }

    fn actions(&self) -> Vec<ActionHandler<Self>> {
        let mut actions = assemble::actions();
        actions.extend(probe::actions());
        actions
    }

    fn halt(&self, halt: &Halt) -> Result<(), ToolError> {
        let kind = if halt.emergency { "emergency" } else { "halt" };
        for subsystem in &halt.subsystems {
            self.machine.command(kind, subsystem, "-")?;
        }
        Ok(())
    }

    fn resume(&self) -> Result<(), ToolError> {
        probe::allowed(&self.refuse_resume, "the button is still pressed")
    }

    fn message(&self, topic: &str, data: Value) {
        probe::remember(self, topic, data);
    }

    fn may_close(&self) -> Result<(), ToolError> {
        probe::allowed(&self.refuse_close, "recording")
    }

    fn safe_stop(config: Config) -> Result<(), ToolError> {
        Machine::open(config.motor_log.as_deref())?.command("emergency", "all", "safe_stop")
    }
}

export_toolbox!(Testbed);
