//! Discovers what a board can do with GStreamer, checks pipelines, runs and watches them.
//!
//! All information comes from the machine: elements from GStreamer's registry, devices from the kernel, storage from
//! statvfs; there is no built-in table of elements. Only pipelines that `policy` allows are started. The toolbox's own process never
//! initialises GStreamer: a process that ends when it is idle answers questions (`sitting`, asked through `judge`), and each running
//! pipeline has one of its own (`worker`, kept by `instance`), so that an element that crashes costs one pipeline. Read
//! [`Gstreamer`], then [`config`].
//!
//! ```console
//! $ ovos-tools invoke validate_pipeline pipeline='videotestsrc ! videoconvert ! autovideosink'
//! ```

mod answer;
mod catalog;
pub mod config;
mod description;
mod devices;
mod folder;
mod graphviz;
mod holders;
mod hotplug;
mod instance;
mod judge;
mod machine;
mod order;
mod parse;
mod policy;
mod question;
mod report;
mod sitting;
mod sound;
mod storage;
mod suggest;
mod toolbox;
mod tools;
mod uses;
mod validate;
mod worker;

use std::path::Path;
use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;

use config::{Config, Section};
use hotplug::Hotplug;
use instance::Instances;
use judge::Judge;
use policy::{Policy, is_confined};
pub use toolbox::Gstreamer;

impl Toolbox for Gstreamer {
    type Config = Section;

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

    async fn open(host: Host, written: Section) -> Result<Self, ToolError> {
        let config = Arc::new(Config::check(written.clone())?);
        if config.owns_recordings {
            folder::make_private(&config.recordings())?;
        }
        let policy = {
            let config = Arc::clone(&config);
            let confined = is_confined();
            if !confined {
                tracing::info!(
                    "the kernel does not confine pipelines to the configured folders and devices: elements and properties \
                     whose access is not known are refused"
                );
            }
            // Resolves host names, which may take seconds.
            tokio::task::spawn_blocking(move || Policy::new(&config, confined)).await??
        };
        let judge = Arc::new(Judge::new(host.clone(), written.clone(), config.scratch()));
        let hotplug = (config.sysroot == Path::new("/"))
            .then(|| watch(&judge))
            .flatten();
        let instances = Instances::open(host, Arc::clone(&config), written).await?;
        Ok(Self {
            config,
            policy,
            instances,
            judge,
            _hotplug: hotplug,
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
        self.judge.close();
    }
}

/// Watches the devices of this machine; the judge is asked once for those that are there.
fn watch(judge: &Arc<Judge>) -> Option<Hotplug> {
    judge.look_for_devices();
    let weak = Arc::downgrade(judge);
    let changed = move || {
        if let Some(judge) = weak.upgrade() {
            judge.look_for_devices();
        }
    };
    match Hotplug::watch(Path::new("/dev"), changed) {
        Ok(hotplug) => Some(hotplug),
        Err(error) => {
            tracing::warn!(%error, "cannot watch /dev: devices that are plugged in are reported with the next question only");
            None
        }
    }
}

export_toolbox!(Gstreamer, roles: ["judge" => sitting::run, "worker" => worker::run]);
