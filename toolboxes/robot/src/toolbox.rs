//! The toolbox: the robots of the configuration behind one set of tools.
//!
//! Owns opening, halting and closing them. Read [`Robots`].

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use ovos_toolbox_sdk::prelude::*;

use crate::adapter::booster_k1::{self, BoosterK1};
use crate::adapter::johnny5::{self, Johnny5};
use crate::adapter::unitree_g1::{self, UnitreeG1};
use crate::adapter::{ActionError, Adapter, BackendState, Notice, Notify, sim};
use crate::backends::Backends;
use crate::config::{AdapterKind, Config, RobotConfig};
use crate::error::tool_error;
use crate::limits::narrow;
use crate::model::{Model, ModelError};
use crate::recogniser::{self, Recogniser};
use crate::recognition;
use crate::robots::{Robots, each};
use crate::run::run;
use crate::sentences;
use crate::step;
use crate::subsystem::Subsystem;
use crate::tools;
use crate::unit::Unit;

impl Toolbox for Robots {
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            guide: include_str!("../GUIDE.md").to_string(),
            // A serial port can be opened only once.
            exclusive: true,
            simulated_by_default: true,
            subscribes: vec![recogniser::ANNOUNCED.to_string()],
            requests: vec![recogniser::TOPIC.to_string()],
            ..manifest!("robot")
        }
    }

    async fn open(host: Host, config: Config) -> Result<Self, ToolError> {
        let mut robots = config.robots.clone();
        if robots.is_empty() {
            robots.insert("sim".to_string(), RobotConfig::default());
        }
        let several = robots.len() > 1;
        let backends: Arc<Backends> = Arc::default();
        for (name, robot) in &robots {
            check_name(name)?;
            let state = match robot.adapter {
                AdapterKind::Sim => BackendState::Simulated,
                _ => BackendState::Connecting,
            };
            backends.add(name, state);
        }
        let mut units = Vec::with_capacity(robots.len());
        for (name, robot) in &robots {
            units.push(match make(name, robot, notify(&host, &backends, name)) {
                Ok((model, adapter)) => Unit::new(name, model, adapter, several),
                // The others serve; `connect` tells why this one does not.
                Err(error) if several => Unit::refused(name, plain(robot)?, error.message().to_owned()),
                Err(error) => return Err(error),
            });
        }
        // A robot that is away does not keep the others from working: its adapter goes on trying.
        let connected = join_all(units.iter().map(|unit| unit.adapter.connect())).await;
        for (unit, connected) in units.iter().zip(connected) {
            if let Err(error) = connected {
                tracing::warn!(robot = unit.name, %error, "not connected");
                let reason = match error {
                    ActionError::NotConnected { reason, .. } => reason,
                    other => other.to_string(),
                };
                backends.tell(&host, &unit.name, BackendState::Lost, &reason);
            }
        }
        backends.tell_simulated(&host);
        // There is at least one robot.
        let first = units.first().map_or("", |unit| unit.name.as_str());
        let recogniser = Recogniser::sought(host, first);
        Ok(Self::new(units, &config, recogniser))
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        tools::all(self)
    }

    fn actions(&self) -> Vec<ActionHandler<Self>> {
        let names = step::NAMES
            .iter()
            .chain(&step::FILE_NAMES)
            .chain(&recognition::TOOLS);
        names.map(|name| ActionHandler::new(name, run)).collect()
    }

    fn sentences(&self, tool: &str, args: &Object) -> BTreeMap<String, String> {
        sentences::of(tool, args)
    }

    fn halt(&self, halt: &Halt) -> Result<(), ToolError> {
        each(self.units().iter().map(|unit| {
            let parts = halted(unit, halt);
            if parts.is_empty() {
                return Ok(());
            }
            unit.halt(&parts, halt.emergency)
        }))
    }

    fn message(&self, topic: &str, _: Value) {
        if topic == recogniser::ANNOUNCED {
            self.recogniser().announced();
        }
    }

    fn resume(&self) -> Result<(), ToolError> {
        self.reset_all()
    }

    fn safe_stop(config: Config) -> Result<(), ToolError> {
        // In parallel: the last robot must not wait for the others.
        let stopped: Vec<Result<(), ActionError>> = std::thread::scope(|scope| {
            let robots: Vec<_> = config
                .robots
                .iter()
                .map(|(name, robot)| scope.spawn(move || bring_to_rest(name, robot)))
                .collect();
            let ended = |robot: std::thread::ScopedJoinHandle<'_, _>| {
                let panicked = |_| Err(ActionError::Refused("the safe stop panicked".to_string()));
                robot.join().unwrap_or_else(panicked)
            };
            robots.into_iter().map(ended).collect()
        });
        each(stopped.into_iter())
    }

    async fn close(&self) {
        join_all(self.units().iter().map(|unit| unit.adapter.close())).await;
    }
}

fn halted(unit: &Unit, halt: &Halt) -> Vec<Subsystem> {
    let parts = Subsystem::EACH.into_iter();
    parts
        .filter(|part| halt.includes(&unit.subsystem(*part)))
        .collect()
}

/// Brings one machine to rest without an instance.
fn bring_to_rest(name: &str, robot: &RobotConfig) -> Result<(), ActionError> {
    match robot.adapter {
        // A simulated robot has ended with its process.
        AdapterKind::Sim => Ok(()),
        AdapterKind::Johnny5 => johnny5::safe_stop(name, &robot.johnny5, robot.estop),
        AdapterKind::BoosterK1 => booster_k1::safe_stop(name, &robot.booster_k1, robot.estop),
        AdapterKind::UnitreeG1 => unitree_g1::safe_stop(name, &robot.unitree_g1, robot.estop),
    }
}

/// The model of a robot's kind without what its section says of it.
fn plain(robot: &RobotConfig) -> Result<Model, ToolError> {
    let model = match robot.adapter {
        AdapterKind::Sim => sim::model(&sim::SimConfig::default()),
        AdapterKind::Johnny5 => johnny5::model(&johnny5::Johnny5Config::default()),
        AdapterKind::BoosterK1 => booster_k1::model(&booster_k1::BoosterK1Config::default()),
        AdapterKind::UnitreeG1 => unitree_g1::model(&unitree_g1::UnitreeG1Config::default()),
    };
    model.map_err(|error| ToolError::msg(error.to_string()))
}

/// The model of a robot, narrowed and extended by its configuration, and what drives it.
fn make(name: &str, robot: &RobotConfig, notify: Notify) -> Result<(Model, Arc<dyn Adapter>), ToolError> {
    let mut model = match robot.adapter {
        AdapterKind::Sim => sim::model(&robot.sim),
        AdapterKind::Johnny5 => johnny5::model(&robot.johnny5),
        AdapterKind::BoosterK1 => booster_k1::model(&robot.booster_k1),
        AdapterKind::UnitreeG1 => unitree_g1::model(&robot.unitree_g1),
    }
    .map_err(|error| refused(name, &error))?;
    // A limit that no adapter checks would mislead its owner.
    if robot.bounds.radius.is_some() && robot.adapter != AdapterKind::Sim {
        return Err(ToolError::bad_args(format!(
            "robots.{name}.bounds.radius: only the simulator knows where its base is; leave it out"
        )));
    }
    let mut capabilities = model.capabilities.clone();
    narrow(name, &mut capabilities, &robot.bounds).map_err(tool_error)?;
    let dropped = model.narrow(capabilities.clone());
    if !dropped.is_empty() {
        tracing::warn!(robot = name, poses = ?dropped, "poses beyond `bounds` were left out");
    }
    if let Some(path) = &robot.poses {
        model.load(path).map_err(|error| refused(name, &error))?;
    }
    let adapter: Arc<dyn Adapter> = match robot.adapter {
        AdapterKind::Sim => {
            Arc::new(sim::Sim::new(name, &robot.sim, capabilities, robot.estop).map_err(tool_error)?)
        }
        AdapterKind::Johnny5 => Arc::new(
            Johnny5::new(name, &robot.johnny5, capabilities, robot.estop, notify).map_err(tool_error)?,
        ),
        AdapterKind::BoosterK1 => {
            let adapter = BoosterK1::new(name, &robot.booster_k1, capabilities, robot.estop, notify);
            Arc::new(adapter.map_err(tool_error)?)
        }
        AdapterKind::UnitreeG1 => {
            let adapter = UnitreeG1::new(name, &robot.unitree_g1, capabilities, robot.estop, notify);
            Arc::new(adapter.map_err(tool_error)?)
        }
    };
    Ok((model, adapter))
}

fn refused(name: &str, error: &ModelError) -> ToolError {
    ToolError::bad_args(format!("robots.{name}: {error}"))
}

/// Checks the name of a robot, which becomes part of subsystem names and of a path.
fn check_name(name: &str) -> Result<(), ToolError> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.len() <= 40 && name != "all" && name.bytes().all(legal) {
        return Ok(());
    }
    Err(ToolError::bad_args(format!(
        "robots: {name:?} cannot be the name of a robot: expected 1 to 40 letters, digits, _ and -, and not all"
    )))
}

fn notify(host: &Host, backends: &Arc<Backends>, name: &str) -> Notify {
    let (host, backends, name) = (host.clone(), Arc::clone(backends), name.to_string());
    Arc::new(move |notice| match notice {
        Notice::Backend { state, reason } => backends.tell(&host, &name, state, &reason),
        Notice::Latched { reason } => host.latched(&format!("{name}: {reason}")),
    })
}

#[cfg(feature = "toolbox")]
export_toolbox!(Robots);
