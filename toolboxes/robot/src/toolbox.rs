//! The toolbox: the robots of the configuration behind one set of tools.
//!
//! Owns opening, halting and closing them. Read [`Robots`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use ovos_toolbox_sdk::prelude::*;

use crate::adapter::around::driver::SimDriver;
use crate::adapter::{ActionError, Adapter, BackendState, Notice, Notify};
use crate::backends::Backends;
use crate::capability::Capabilities;
use crate::choice::Choice;
use crate::conduct::Stop;
use crate::config::{Config, RobotConfig};
use crate::driver::{DrivenRobot, Driver};
use crate::error::tool_error;
use crate::kind::plain;
use crate::limits::narrow;
use crate::model::soundness::words;
use crate::model::{Model, ModelError};
use crate::places::Places;
use crate::policy::PolicyTable;
use crate::recogniser::{self, Recogniser};
use crate::recognition;
use crate::robots::{Robots, each};
use crate::run::run;
use crate::sentences;
use crate::shelf::Shelf;
use crate::state_file;
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
        let data_dir = config.data_dir();
        let shelf = Shelf::open(config.robots_dir.as_deref());
        let backends: Arc<Backends> = Arc::default();
        let mut units = Vec::with_capacity(robots.len());
        let mut known = Vec::with_capacity(robots.len());
        for (name, robot) in &robots {
            check_name(name)?;
            let chosen = chosen(name, robot, &shelf);
            let state = match &chosen {
                Ok(chosen) if chosen.simulated => BackendState::Simulated,
                _ => BackendState::Connecting,
            };
            backends.add(name, state);
            known.push((name, robot, chosen));
        }
        let asked: Vec<String> = robots
            .values()
            .filter_map(|robot| robot.kind.as_deref().map(plain))
            .collect();
        for trouble in shelf.troubles(&asked) {
            tracing::warn!("left out: {trouble}");
            backends.left_out(trouble);
        }
        for (name, robot, chosen) in known {
            let made = match &chosen {
                Ok(chosen) => make(name, robot, chosen, notify(&host, &backends, name)),
                Err(error) => Err(error.clone()),
            };
            units.push(match made {
                Ok((model, adapter)) => {
                    let folder = data_dir.as_ref().map(|folder| folder.join(name));
                    keep_file(name, robot, &shelf, folder.as_deref());
                    let places = Places::open(folder.as_deref());
                    Unit::new(name, model, adapter, several).remembering(places)
                }
                // The others serve; `connect` tells why this one does not.
                Err(error) if several => {
                    let model = chosen.map(|chosen| chosen.model).unwrap_or_default();
                    Unit::refused(name, model, error.message().to_owned())
                }
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
        let name = args.get("robot").and_then(Value::as_str);
        sentences::of(tool, args, self.unit(name).ok())
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
        let shelf = &Shelf::open(config.robots_dir.as_deref());
        let data_dir = &config.data_dir();
        let data_dir = data_dir.as_deref();
        // In parallel: the last robot must not wait for the others.
        let stopped: Vec<Result<(), ActionError>> = std::thread::scope(|scope| {
            let robots: Vec<_> = config
                .robots
                .iter()
                .map(|(name, robot)| {
                    let folder = data_dir.map(|folder| folder.join(name));
                    scope.spawn(move || bring_to_rest(name, robot, shelf, folder.as_deref()))
                })
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

/// Brings one machine to rest without an instance. Where its owner's file is broken by now, the copy of when it was driven says how.
fn bring_to_rest(
    name: &str,
    robot: &RobotConfig,
    shelf: &Shelf,
    folder: Option<&Path>,
) -> Result<(), ActionError> {
    let known = chosen(name, robot, shelf).or_else(|error| {
        let copy = last_good(robot, shelf, folder).filter(|copy| copy.exists());
        let kind = copy
            .map(|copy| copy.to_string_lossy().into_owned())
            .ok_or(error)?;
        tracing::warn!(
            robot = name,
            copy = kind,
            "its file cannot be used: stopped as its last good copy says"
        );
        let robot = RobotConfig {
            kind: Some(kind),
            ..robot.clone()
        };
        chosen(name, &robot, shelf)
    });
    let known = known.map_err(|error| ActionError::Refused(error.message().to_owned()))?;
    known
        .driver
        .safe_stop(known.driven(name, &known.model.capabilities))
}

/// Where the last good copy of a robot's own file is.
fn last_good(robot: &RobotConfig, shelf: &Shelf, folder: Option<&Path>) -> Option<PathBuf> {
    let file = shelf.file(robot.kind.as_deref()?)?;
    Some(folder?.join("last-good").join(file.file_name()?))
}

/// Keeps a copy of the file of a robot that is driven.
fn keep_file(name: &str, robot: &RobotConfig, shelf: &Shelf, folder: Option<&Path>) {
    let file = robot.kind.as_deref().and_then(|kind| shelf.file(kind));
    let Some((file, copy)) = file.zip(last_good(robot, shelf, folder)) else {
        return;
    };
    let kept = state_file::read(&file).and_then(|text| state_file::write(&copy, &text));
    if let Err(error) = kept {
        tracing::warn!(robot = name, %error, "no copy of its file: a stop after a crash needs the file itself");
    }
}

/// A robot of the configuration, before it is driven.
struct Setup {
    driver: Box<dyn Driver>,
    /// Equipped, and not yet fitted to its channels.
    model: Model,
    stop: Stop,
    simulated: bool,
}

impl Setup {
    fn driven<'a>(&'a self, name: &'a str, capabilities: &'a Capabilities) -> DrivenRobot<'a> {
        DrivenRobot {
            name,
            model: &self.model,
            capabilities,
            stop: &self.stop,
        }
    }
}

/// The kind of a robot, with the changes of its section.
fn chosen(name: &str, robot: &RobotConfig, shelf: &Shelf) -> Result<Setup, ToolError> {
    let choice = Choice::of(robot).map_err(|error| ToolError::bad_args(format!("robots.{name}: {error}")))?;
    let kind = shelf.find(&choice.kind).map_err(|error| refused(name, &error))?;
    let driver = kind.driver(&choice.channels, choice.key);
    let mut driver = driver.map_err(|error| refused(name, &error))?;
    let mut stop = kind.stop.clone();
    if choice.simulated {
        let config = robot.sim.clone();
        driver = Box::new(SimDriver {
            config,
            own: driver,
            in_catalogue: choice.in_catalogue,
        });
    }
    stop.emergency = robot.estop.or(stop.emergency);
    if let Some(now) = choice.respelled {
        tracing::warn!(
            robot = name,
            "the keys `adapter` and `{}` are written as {now} now",
            choice.key
        );
    }
    Ok(Setup {
        model: kind.model(driver.as_ref()),
        driver,
        stop,
        simulated: choice.simulated,
    })
}

/// The model of a robot, narrowed and extended by its configuration, and what drives it.
fn make(
    name: &str,
    robot: &RobotConfig,
    known: &Setup,
    notify: Notify,
) -> Result<(Model, Arc<dyn Adapter>), ToolError> {
    let mut model = known
        .driver
        .fit(known.model.clone())
        .map_err(|error| refused(name, &error))?;
    // A limit that no adapter checks would mislead its owner.
    let knows = known.simulated || model.capabilities.services.position;
    if robot.bounds.radius.is_some() && !knows {
        return Err(ToolError::bad_args(format!(
            "robots.{name}.bounds.radius: this robot does not know where its base is; leave it out"
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
    capabilities.policies = policies(name, robot, &capabilities)?;
    model.capabilities.policies.clone_from(&capabilities.policies);
    let adapter = known.driver.drive(known.driven(name, &capabilities), notify);
    Ok((model, adapter.map_err(tool_error)?))
}

/// The programs that may have a robot for a time.
fn policies(
    name: &str,
    robot: &RobotConfig,
    parts: &Capabilities,
) -> Result<BTreeMap<String, PolicyTable>, ToolError> {
    let wrong = |why: String| ToolError::bad_args(format!("robots.{name}.policies{why}"));
    if !robot.policies.is_empty() && !parts.services.lends {
        return Err(wrong(
            ": only a robot of Feetech or Dynamixel servos can be given to another program; leave it out"
                .to_owned(),
        ));
    }
    for (policy, table) in &robot.policies {
        table.check().map_err(|why| wrong(format!(".{policy}{why}")))?;
    }
    words("policies", robot.policies.keys().map(String::as_str)).map_err(|why| wrong(format!(": {why}")))?;
    Ok(robot.policies.clone())
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
export_toolbox!(Robots, roles: ["policy" => crate::policy::keep]);
