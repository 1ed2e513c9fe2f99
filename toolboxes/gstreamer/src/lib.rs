//! Discovers what a board can do with GStreamer, checks pipelines, runs and watches them.
//!
//! All information comes from the machine: elements from GStreamer's registry, devices from the kernel, storage from
//! statvfs; there is no built-in table of elements. Only pipelines that `policy` allows are started. Needs isolation
//! `process`: GObject types are registered once per process, and an element that crashes ends its process. Read
//! [`Gstreamer`], then [`config`].
//!
//! ```console
//! $ ovos-tools invoke validate_pipeline pipeline='videotestsrc ! videoconvert ! autovideosink'
//! ```

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
use policy::{Policy, is_confined};
use suggest::Suggestions;
use validate::Spares;

/// The toolbox: the machine and its running pipelines.
pub struct Gstreamer {
    config: Arc<Config>,
    policy: Arc<Policy>,
    instances: Arc<Instances>,
    machine: Arc<Machine>,
}

/// State that the tools share, including their blocking threads.
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
            // Running pipelines hold cameras, ports and files, which two generations cannot share.
            exclusive: true,
            // A pipeline outlives the call that started it, so only a message can end it.
            subscribes: vec!["ovos.stop".to_owned(), "mycroft.stop".to_owned()],
            guide: include_str!("../GUIDE.md").to_string(),
            ..manifest!("gstreamer")
        }
    }

    fn options() -> Options {
        let mut options = Options::default();
        // The close completes recordings.
        options.close = Duration::from_secs(9);
        options
    }

    async fn open(host: Host, written: Written) -> Result<Self, ToolError> {
        let config = Arc::new(Config::check(written)?);
        if config.owns_recordings {
            instance::make_private(&config.recordings())?;
        }
        // Reads or builds the plugin registry, which forks and may take seconds the first time.
        tokio::task::spawn_blocking(gst::init).await??;
        let policy = {
            let config = Arc::clone(&config);
            let confined = is_confined();
            if !confined {
                tracing::info!(
                    "the kernel does not keep pipelines to the folders and devices of the configuration: what is not \
                     understood of an element is refused"
                );
            }
            // Resolves host names, which may take seconds.
            Arc::new(tokio::task::spawn_blocking(move || Policy::new(&config, confined)).await??)
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
