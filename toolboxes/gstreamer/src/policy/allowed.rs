//! What the configuration allows: elements, folders, targets and devices.
//!
//! Read [`Policy`].

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use gst::prelude::*;

use super::access::{self, Access};
#[cfg(doc)]
use super::confined::is_confined;
use super::devices::Devices;
use super::network::Targets;
use super::paths::Roots;
use super::refusal::Refusal;
use crate::config::{Config, ConfigError};

/// The access that the configuration allows.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(super) max_pipeline_length: usize,
    pub(super) allowed: BTreeSet<String>,
    pub(super) denied: HashSet<String>,
    pub(super) roots: Roots,
    pub(super) targets: Targets,
    pub(super) devices: Devices,
    /// Whether the kernel keeps the process to the allowed folders and devices.
    pub(super) confined: bool,
    /// Whether the kernel bounds everything that a pipeline can open: it confines folders and devices, and denies
    /// sockets.
    pub(super) sealed: bool,
}

/// Greatest nesting of descriptions and bins, far beyond everyday use.
pub(super) const MOST_NESTED: usize = 16;

impl Policy {
    /// `confined`: see [`is_confined`]. Resolves the host names of the configuration; blocks as long as the system's
    /// resolver does.
    ///
    /// # Errors
    /// A key is invalid.
    pub(crate) fn new(config: &Config, confined: bool) -> Result<Self, ConfigError> {
        Ok(Self {
            sealed: confined && config.network_targets.is_empty(),
            max_pipeline_length: config.max_pipeline_length,
            allowed: config.allow_elements.iter().cloned().collect(),
            denied: config.deny_elements.iter().cloned().collect(),
            roots: Roots::new(&config.read_roots, &config.write_roots, confined),
            targets: Targets::resolve(&config.network_targets)?,
            devices: Devices::new(&config.devices),
            confined,
        })
    }

    /// Whether a tool of this toolbox itself may write a folder or file; returns the resolved path. One that is not absolute is
    /// below the first folder that may be written, as in a pipeline.
    ///
    /// # Errors
    /// It is outside of `write_roots`.
    pub(crate) fn check_output(&self, path: &str, tool: &str) -> Result<PathBuf, Refusal> {
        self.roots
            .check(&self.roots.complete(path, Access::Write), Access::Write)
            .map_err(|refusal| refusal.on(tool, Some("path")))
    }

    /// Whether a device may be opened; returns its canonical name.
    ///
    /// # Errors
    /// It is not allowed.
    pub(crate) fn check_device(&self, device: &str, tool: &str) -> Result<String, Refusal> {
        self.devices
            .check(device)
            .map_err(|refusal| refusal.on(tool, Some("device")))
    }

    /// Checks a factory whatever its properties are.
    pub(super) fn check_factory(&self, factory: &gst::ElementFactory) -> Result<(), Refusal> {
        let name = factory.name();
        if self.denied.contains(name.as_str()) {
            return Err(Refusal::new("it is listed", "deny_elements"));
        }
        if self.sealed || self.allowed.contains(name.as_str()) {
            return Ok(());
        }
        match access::refuses(factory, self.confined) {
            Some(why) => {
                let names: Vec<&String> = self.allowed.iter().collect();
                Err(Refusal::new(why, "allow_elements").allowed_by(&names, &name))
            }
            None => Ok(()),
        }
    }
}
