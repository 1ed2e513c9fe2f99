//! Discovers what a board can do with GStreamer, checks pipelines, runs and watches them.
//!
//! Truth comes from the machine: elements from GStreamer's registry, devices from the kernel, storage from statvfs;
//! there is no table of elements in here. Nothing runs that [`policy`] has not let through. Needs isolation `process`:
//! GObject types are registered once in a process and an element that crashes takes its process with it.
//! Read [`Gstreamer`], then [`config`].

mod catalog;
pub mod config;
mod description;
mod devices;
mod graph;
mod instance;
mod parse;
mod policy;
mod snapshot;
mod storage;
mod suggest;
mod tools;
mod validate;

use std::path::Path;
use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;

use catalog::Catalog;
use config::{Config, Written};
use devices::{Devices, Monitor};
use instance::Instances;
use policy::Policy;
use suggest::Suggestions;
use validate::Spares;

/// The toolbox: the machine it looks at and the pipelines it runs.
pub struct Gstreamer {
    config: Arc<Config>,
    policy: Arc<Policy>,
    instances: Arc<Instances>,
    machine: Arc<Machine>,
}

/// What the tools that look at the machine share; threads that may block hold it, too.
pub(crate) struct Machine {
    config: Arc<Config>,
    policy: Arc<Policy>,
    instances: Arc<Instances>,
    catalog: Catalog,
    suggestions: Suggestions,
    spares: Spares,
    devices: Devices,
}

impl Toolbox for Gstreamer {
    type Config = Written;

    fn manifest() -> Manifest {
        Manifest {
            // Running pipelines hold cameras, ports and files: two generations cannot have them at once.
            exclusive: true,
            // A pipeline goes on after the call that started it, so that no end of a call ends it.
            subscribes: vec!["ovos.stop".to_owned(), "mycroft.stop".to_owned()],
            ..manifest!("gstreamer")
        }
    }

    fn options() -> Options {
        let mut options = Options::default();
        // Recordings are finished by the close.
        options.close = Duration::from_secs(9);
        options
    }

    async fn open(host: Host, written: Written) -> Result<Self, ToolError> {
        let config = Arc::new(Config::check(written)?);
        // Reads or builds the registry of plugins, which forks and may take seconds the first time.
        tokio::task::spawn_blocking(gst::init).await??;
        let policy = {
            let config = Arc::clone(&config);
            // Resolves host names, which may take seconds.
            Arc::new(tokio::task::spawn_blocking(move || Policy::new(&config)).await??)
        };
        let monitor = (config.sysroot == Path::new("/")).then(|| Monitor::start(&host));
        let instances = Instances::open(host, Arc::clone(&config), Arc::clone(&policy)).await?;
        let instances = Arc::new(instances);
        let machine = Arc::new(Machine {
            config: Arc::clone(&config),
            policy: Arc::clone(&policy),
            instances: Arc::clone(&instances),
            catalog: Catalog::default(),
            suggestions: Suggestions::default(),
            spares: Spares::default(),
            devices: Devices::new(monitor),
        });
        Ok(Self {
            config,
            policy,
            instances,
            machine,
        })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        tools::all()
    }

    fn halt(&self, halt: &Halt) -> Result<(), ToolError> {
        self.instances.halt(halt)
    }

    fn message(&self, _: &str, _: Value) {
        self.instances.user_stop();
    }

    fn may_close(&self) -> Result<(), ToolError> {
        self.instances.may_close()
    }

    async fn close(&self) {
        self.instances.close().await;
        let machine = Arc::clone(&self.machine);
        _ = tokio::task::spawn_blocking(move || machine.devices.close()).await;
    }
}

export_toolbox!(Gstreamer);
