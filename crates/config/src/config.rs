//! The configuration in force: what the written values mean. Read [`Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::address::BusConfig;
use super::doors::Doors;
use super::error::{ConfigError, ConfigErrors, Notice};
use super::last_good::{self, LastGood};
use super::layers::{Layer, LayerState, Stack};
use super::lockdown::Lockdown;
use super::logging::LogConfig;
use super::mounts::{self, MountConfig};
use super::names::OURS;
use super::origin::{Origin, Setting, dotted};
use super::overrides::Overrides;
use super::paths::{Environment, Xdg, installed_plugins};
use super::programs;
use super::reader::Reader;
use super::section_cache::SectionCache;
use super::service::{self, ServiceConfig};
use super::toolbox::{self, Section};
use section::{ProgramConfig, PythonConfig};

/// The configuration in force. Immutable; share it as `Arc<Config>` and replace it as a whole.
#[derive(Debug, Clone)]
pub struct Config {
    /// The messagebus.
    pub bus: BusConfig,
    /// The service's own keys.
    pub service: ServiceConfig,
    /// The keys of the doors.
    pub doors: Doors,
    /// Logging.
    pub logging: LogConfig,
    /// The programs that are toolboxes, in the order of the files.
    pub programs: Vec<Arc<ProgramConfig>>,
    /// The Python interpreters whose toolboxes are hosted. They come after the programs.
    pub pythons: Vec<Arc<PythonConfig>>,
    /// The mounted servers by toolbox_id. An error prevents only that mount.
    pub mounts: BTreeMap<String, Result<Arc<MountConfig>, ConfigErrors>>,
    /// The sections with which the programs of mounted servers are opened, by toolbox_id. They do not apply to a plugin or
    /// another program with the same id.
    pub mounted: BTreeMap<String, Result<Arc<Section>, ConfigErrors>>,
    /// The sections of toolboxes by toolbox_id. An error prevents only that toolbox from being loaded.
    pub toolboxes: BTreeMap<String, Result<Arc<Section>, ConfigErrors>>,
    /// Problems to report to the operator; log them once logging has started.
    pub notices: Vec<Notice>,
    /// `--simulators`.
    simulators: bool,
    /// The folders of plugins that are packaged with the service and were not named on the command line.
    packaged: Vec<PathBuf>,
    settings: Vec<Setting>,
    /// The settings of the programs, which a reload brings into force.
    of_programs: Vec<Setting>,
    xdg: Xdg,
    stack: Stack,
    section_cache: SectionCache,
}

impl Config {
    /// Reads all files and checks the values that concern the service.
    ///
    /// For a re-read (`configuration.updated`) pass the configuration in force as `previous`: the last good content
    /// of a file that has become unreadable then stays in use. If this returns an error, keep `previous`.
    ///
    /// # Errors
    /// Every wrong value of the service's own keys, of the bus address and of the command line, all at once. Wrong
    /// sections of toolboxes, broken files and wrong log settings are not errors: see [`Config::toolboxes`] and
    /// [`Config::notices`].
    pub fn load(
        env: &dyn Environment,
        overrides: &Overrides,
        previous: Option<&Self>,
    ) -> Result<Arc<Self>, ConfigErrors> {
        let xdg = Xdg::new(env);
        if xdg.home.to_str().is_none() {
            return Err(ConfigErrors::from(ConfigError::WrongValue {
                origin: Origin::Variable("HOME"),
                key: "home directory".to_owned(),
                found: format!("{:?}", xdg.home),
                accepted: "a UTF-8 path, because the configuration is text".to_owned(),
            }));
        }
        let mut notices = Vec::new();
        let given_file = (overrides.config.as_deref(), overrides.given_may_be_copy);
        let stack = Stack::read(
            env,
            &xdg,
            given_file,
            previous.map(|config| &config.stack),
            &mut notices,
        )?;

        let mut reader = Reader::new(&stack, &xdg, None);
        let bus = BusConfig::read(&mut reader, overrides.bus.as_deref());
        let mut log_reader = Reader::new(&stack, &xdg, None);
        let logging = LogConfig::read(&mut log_reader, env);
        reader.settings.append(&mut log_reader.settings);
        notices.extend(log_reader.errors.into_iter().map(Notice::Defaulted));
        let service = ServiceConfig::read(&mut reader, env, overrides, &bus);
        let mut doors = Doors::read(&mut reader, &service);
        doors.console.start |= overrides.console;
        let mut program_reader = Reader::new(&stack, &xdg, None);
        let programs::Programs {
            commands: programs,
            pythons,
        } = programs::read(&mut program_reader);
        let (mounts, of_mounts) = mounts::read(env, &xdg, &stack, &mut program_reader, &mut notices);
        for error in program_reader.errors {
            // Both readers may report that a section around their keys is not an object.
            if !reader.errors.contains(&error) {
                reader.errors.push(error);
            }
        }
        let mut of_programs = program_reader.settings;
        of_programs.extend(of_mounts);
        let Reader { settings, errors, .. } = reader;

        let mut toolboxes = BTreeMap::new();
        for id in toolbox_ids(&stack) {
            toolboxes.insert(id.to_owned(), Section::read(&xdg, &stack, id, &service));
        }
        notices.extend(retired(&stack));
        let mounted = mounts.iter().map(|(id, mount)| {
            let section = mounts::section(&xdg, &stack, id, &service, mount);
            (id.clone(), section)
        });
        let mounted = mounted.collect();
        let config = Self {
            bus,
            service,
            doors,
            logging,
            programs,
            pythons,
            mounts,
            mounted,
            toolboxes,
            notices,
            simulators: overrides.simulators,
            packaged: match overrides.plugins.as_slice() {
                [] => installed_plugins(env),
                _ => Vec::new(),
            },
            settings,
            of_programs,
            xdg,
            stack,
            section_cache: SectionCache::default(),
        };
        ConfigErrors::check(Arc::new(config), errors)
    }

    /// Returns the programs that offer the mounted servers as toolboxes. `command` is the mounts program; the tokens of the
    /// servers are looked up in `env`.
    #[must_use]
    pub fn mount_programs(&self, command: &str, env: &dyn Environment) -> Vec<Arc<ProgramConfig>> {
        let broken = MountConfig::default();
        let mounts = self.mounts.iter().map(|(id, mount)| {
            // The errors of a mount are reported when its section is asked for.
            let mount = mount.as_ref().map_or(&broken, |mount| &**mount);
            Arc::new(mounts::program(id, mount, command, env))
        });
        mounts.collect()
    }

    /// Returns the configuration of one toolbox, even if it has no section.
    ///
    /// # Errors
    /// All errors of its section, or of the id itself.
    pub fn toolbox(&self, id: &str) -> Result<Arc<Section>, ConfigErrors> {
        match self.toolboxes.get(id) {
            Some(known) => known.clone(),
            None => self
                .section_cache
                .section(id, || Section::read(&self.xdg, &self.stack, id, &self.service)),
        }
    }

    /// Returns the section with which the program of a mounted server is opened.
    ///
    /// # Errors
    /// All errors of the mount and of the section of its toolbox.
    pub fn mounted(&self, id: &str) -> Result<Arc<Section>, ConfigErrors> {
        match self.mounted.get(id) {
            Some(known) => known.clone(),
            None => self.toolbox(id),
        }
    }

    /// The errors of the sections of toolboxes and of mounts, by toolbox_id.
    pub fn section_errors(&self) -> impl Iterator<Item = (&String, &ConfigErrors)> {
        let sections = self.toolboxes.iter();
        let sections = sections.filter_map(|(id, section)| Some((id, section.as_ref().err()?)));
        let mounts = self.mounted.iter().filter_map(|(id, section)| {
            let error = section.as_ref().err()?;
            let of_toolbox = self.toolboxes.get(id).and_then(|section| section.as_ref().err());
            (of_toolbox != Some(error)).then_some((id, error))
        });
        sections.chain(mounts)
    }

    /// All values in force with their origins: bus, logging, service, programs, then each toolbox that has a valid section.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        // For a mount, only `mounted` is used: its section has no secrets, but a mount with errors may have them in
        // `toolboxes`.
        let not_mounted = self
            .toolboxes
            .iter()
            .filter(|(id, _)| !self.mounted.contains_key(*id));
        let of_toolboxes = not_mounted
            .map(|(_, section)| section)
            .chain(self.mounted.values())
            .flatten()
            .flat_map(|toolbox| &toolbox.settings);
        self.settings.iter().chain(&self.of_programs).chain(of_toolboxes)
    }

    /// The written values and their files.
    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The files that could not be read at the start, because of which tools that change or move something are refused; `None` if
    /// all of them could be read.
    #[must_use]
    pub fn closed(&self) -> Option<Lockdown> {
        self.stack.closed()
    }

    /// Whether the toolbox with this id in this plugin file was asked for, where it drives a simulator without being asked.
    #[must_use]
    pub fn activation(&self, id: &str, plugin: &Path) -> Activation {
        match self.simulators {
            true => Activation::Elsewhere,
            false => self.named(id, plugin),
        }
    }

    /// Whether the toolbox with this id in this plugin file has a section, or is in a folder of the user's.
    #[must_use]
    pub fn named(&self, id: &str, plugin: &Path) -> Activation {
        let packaged = self.packaged.iter().any(|folder| plugin.starts_with(folder));
        if !packaged {
            Activation::Elsewhere
        } else if self.toolboxes.contains_key(id) {
            Activation::Section
        } else {
            Activation::No
        }
    }

    /// The path and the new text of the file that keeps a copy of what the files contain now; `None` while one of them cannot be
    /// read.
    #[must_use]
    pub fn last_good(&self) -> Option<(PathBuf, String)> {
        let layers = self.stack.layers();
        if layers.iter().any(|layer| layer.state == LayerState::Broken) {
            return None;
        }
        let mut copy = LastGood::read(&self.xdg);
        copy.update(layers.iter().map(Layer::found));
        let text = serde_json::to_string_pretty(&copy).ok()?;
        Some((last_good::path(&self.xdg), text))
    }

    /// The socket through which people on this machine give orders to the service without the bus.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        let folder = self.xdg.runtime_dir.as_ref().map(|dir| dir.join("ovos-tools"));
        let folder = folder.unwrap_or_else(|| self.service.state_dir.clone());
        folder.join("control.sock")
    }

    /// Returns what would change if `newer` came into force. Compares values, not the files they were written in.
    #[must_use]
    pub fn changes(&self, newer: &Self) -> Changes {
        if std::ptr::eq(self, newer) {
            return Changes::default();
        }
        let (old, new) = (values(&self.settings), values(&newer.settings));
        let keys: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        let keys = keys.into_iter().filter(|key| old.get(key) != new.get(key));
        let keys = keys.map(str::to_owned).collect();

        let of_both = [self, newer].into_iter();
        let ids: BTreeSet<&String> = of_both
            .flat_map(|config| config.toolboxes.keys().chain(config.mounted.keys()))
            .collect();
        let toolboxes = ids
            .into_iter()
            .filter(|id| self.changes_toolbox(newer, id))
            .cloned()
            .collect();
        let mut names: BTreeSet<&str> = self.program_names().chain(newer.program_names()).collect();
        names.retain(|name| self.program(name) != newer.program(name));
        let names = names.into_iter();
        let programs = names.map(|name| dotted(programs::path(&[name]))).collect();
        Changes {
            keys,
            toolboxes,
            programs,
        }
    }

    fn program_names(&self) -> impl Iterator<Item = &str> {
        let programs = self.programs.iter().map(|program| program.name.as_str());
        programs.chain(self.pythons.iter().map(|python| python.name.as_str()))
    }

    /// The entry of this name: a program to execute, or a Python interpreter whose toolboxes are hosted.
    fn program(&self, name: &str) -> (Option<&ProgramConfig>, Option<&PythonConfig>) {
        let program = self.programs.iter().find(|program| program.name == name);
        let python = self.pythons.iter().find(|python| python.name == name);
        (program.map(|program| &**program), python.map(|python| &**python))
    }

    /// Whether the configuration of a toolbox would change if `newer` came into force.
    #[must_use]
    pub fn changes_toolbox(&self, newer: &Self, id: &str) -> bool {
        if std::ptr::eq(self, newer) {
            return false;
        }
        let differ = |old: Result<Arc<Section>, _>, new: Result<Arc<Section>, _>| match (old, new) {
            (Ok(old), Ok(new)) => values(&old.settings) != values(&new.settings),
            (old, new) => old.err() != new.err(),
        };
        differ(self.toolbox(id), newer.toolbox(id)) || differ(self.mounted(id), newer.mounted(id))
    }
}

/// Values by their keys, without their origins.
fn values(settings: &[Setting]) -> BTreeMap<&str, &Value> {
    settings
        .iter()
        .map(|setting| (setting.key.as_str(), &setting.value))
        .collect()
}

/// Whether a toolbox was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// No: it comes with the package, and no section has its id.
    No,
    /// It has a section.
    Section,
    /// It is in a folder of the user's, or the command line asks for every simulator.
    Elsewhere,
}

/// The difference between two configurations; `ovos.tools.status` reports it as pending changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Dotted keys of the bus, logging and service sections, sorted.
    pub keys: Vec<String>,
    /// Ids of toolboxes whose section changed, sorted.
    pub toolboxes: Vec<String>,
    /// Dotted keys of programs whose entry changed, sorted.
    pub programs: Vec<String>,
}

impl Changes {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.toolboxes.is_empty() && self.programs.is_empty()
    }
}

/// The written keys that have no effect any more.
fn retired(stack: &Stack) -> Vec<Notice> {
    let of_service = service::RETIRED.map(|key| vec!["PHAL", OURS, "service", key]);
    let of_toolboxes = toolbox_ids(stack).map(|id| vec!["PHAL", OURS, id, toolbox::RETIRED]);
    let paths = of_service.into_iter().chain(of_toolboxes);
    let written = paths.filter(|path| stack.get(path).is_some_and(|value| !value.is_null()));
    written
        .map(|path| Notice::Retired {
            origin: stack.origin(&path),
            instead: match path.last() {
                Some(&service::LOG_CALLS) => {
                    "the calls are in `facts.jsonl` in the state folder, and `facts_mb` limits its size"
                }
                _ => "every toolbox runs in a process of its own",
            },
            key: dotted(path),
        })
        .collect()
}

/// Returns the keys of the service's section that are ids of toolboxes. `enabled` is the switch of the Python plugin.
fn toolbox_ids(stack: &Stack) -> impl Iterator<Item = &str> {
    let section = stack.get(&["PHAL", OURS]).and_then(Value::as_object);
    let written = section
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null());
    let keys = written.map(|(key, _)| key.as_str());
    keys.filter(|key| !matches!(*key, "service" | "enabled"))
}
