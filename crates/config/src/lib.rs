//! The configuration: the mycroft.conf stack as OVOS reads it, and its meaning for this service.
//!
//! Reading has two stages. [`Stack`] holds the written values: the layers, after the administrator's protections,
//! merged, with the file of every value. [`Config`] holds their meaning: checked values, durations and paths; read
//! that type first. Every key is a field of a struct, which states its unit and range; a value of the struct holds the
//! defaults (`service.rs`, `toolbox.rs`, `address.rs`, `logging.rs`).
//!
//! Only [`ProcessEnvironment`] reads the process environment. Nothing here writes a file or uses the bus.
//!
//! ```no_run
//! use ovos_tools_config::{Config, Overrides, ProcessEnvironment};
//!
//! let config = Config::load(&ProcessEnvironment, &Overrides::default(), None)?;
//! println!("the bus is {}; at most {} calls at a time", config.bus.url, config.service.max_calls);
//! # Ok::<(), ovos_tools_config::ConfigErrors>(())
//! ```

mod address;
mod atomic_write;
mod backends;
mod config;
mod confinement;
mod decision;
mod doors;
mod edit;
mod embedded_bus;
mod error;
mod installed;
mod last_good;
mod layers;
mod lockdown;
mod logging;
mod merge;
mod mounts;
mod names;
mod origin;
mod overrides;
mod patch;
mod paths;
mod policy;
mod principal;
mod programs;
mod reader;
mod section_cache;
mod service;
mod text;
mod toolbox;
mod yaml;

pub use address::BusConfig;
pub use atomic_write::{StagedFile, write_atomically};
pub use backends::Backends;
pub use config::{Activation, Changes, Config};
pub use decision::{Decision, Question, RuleNumber, built_in, decide};
pub use doors::{
    AgentBudgets, AgentDoor, Allowed, CallStyle, ConsoleDoor, Doors, HumeVoice, Interrupt, LongCalls,
    McpDoor, OpenAiVoice, ScheduleDoor, SignIn, Toolset, VoiceDoor, is_this_machine, speech_service,
};
pub use edit::set as set_in_text;
pub use embedded_bus::EmbeddedBus;
pub use error::{ConfigError, ConfigErrors, Notice, StandsIn};
pub use installed::{Inventory, suggestion};
pub use layers::{Layer, LayerState, Stack};
pub use lockdown::{BrokenFile, Lockdown};
pub use logging::{LogConfig, LogLevel};
pub use mounts::{ADAPTER, MountConfig, MountOutput, MountTransport, opaque_segments};
pub use names::{OURS, SERVICE_NAME};
pub use origin::{Origin, Setting};
pub use overrides::Overrides;
pub use patch::{Patch, PatchReport};
pub use paths::{Environment, LayerKind, ProcessEnvironment, Xdg};
pub use policy::{Backend, Decide, Rule, Who, refused_work};
pub use principal::{Asker, Caller, Principal, UnclearAsker};
pub use reader::nearest;
pub use section::{Confine, DefaultConfinement, ProgramConfig, PythonConfig, Switch, ToolboxConfig};
pub use service::{CallLimits, OnBusLoss, ServiceConfig};
pub use toolbox::{Section, ToolFilter, ToolboxLimits};
