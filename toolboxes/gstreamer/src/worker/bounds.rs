//! What the process of a pipeline may still write.
//!
//! The kernel confines it as its toolbox, which also writes lists of pipelines and of plugins: those are not a pipeline's. Read
//! [`narrow`].

use std::path::{Path, PathBuf};

use landlock::{ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _};
use ovos_toolbox_sdk::prelude::ToolError;

use crate::config::Config;

/// The version that the service needs, too.
const VERSION: ABI = ABI::V3;

/// Keeps this process, which has one thread, from writing anywhere but where its pipeline may. What it may read, and which devices
/// and hosts it may open, stays as it is for the toolbox.
///
/// # Errors
/// The kernel refuses.
pub(super) fn narrow(config: &Config) -> Result<(), ToolError> {
    let wrong = |error: &dyn std::fmt::Display| {
        ToolError::new(
            "PipelineError",
            format!("cannot confine the pipeline's process: {error}"),
        )
    };
    let writes = AccessFs::from_write(VERSION);
    let rules = Ruleset::default().handle_access(writes);
    let mut rules = rules.and_then(Ruleset::create).map_err(|error| wrong(&error))?;
    let own = [config.scratch(), config.snapshot_dir.clone()];
    let folders = config.write_roots.iter().chain(&own).cloned();
    let folders = folders.map(|folder| (folder, writes));
    let devices = devices().map(|device| (device, AccessFs::WriteFile.into()));
    for (path, access) in folders.chain(devices) {
        // What is not there cannot be written.
        let Ok(path) = PathFd::new(path) else { continue };
        rules = rules
            .add_rule(PathBeneath::new(path, access))
            .map_err(|error| wrong(&error))?;
    }
    rules.restrict_self().map_err(|error| wrong(&error))?;
    Ok(())
}

/// What is in `/dev`: which of them may be opened stays as it is for the toolbox. The memory that programs share is no device, and any
/// folder may be in it. A link, such as `/dev/stdout`, leads to what has its own rule, or to a pipe, for which there is none.
fn devices() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let devices = entries
        .filter(move |entry| !is_link(entry))
        .map(|entry| entry.path());
    devices.filter(|device| device != Path::new("/dev/shm"))
}
