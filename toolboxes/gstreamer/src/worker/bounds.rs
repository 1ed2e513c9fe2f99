//! What the process of a pipeline may still write.
//!
//! The kernel confines it as its toolbox, which also writes lists of pipelines and of plugins: those are not a pipeline's. Read
//! [`narrow`].

use std::path::Path;

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
            format!("confine the pipeline's process: {error}"),
        )
    };
    let writes = AccessFs::from_write(VERSION);
    let rules = Ruleset::default().handle_access(writes);
    let mut rules = rules.and_then(Ruleset::create).map_err(|error| wrong(&error))?;
    let own = [config.scratch(), config.snapshot_dir.clone()];
    // Devices are the toolbox's, and bounded there.
    let folders = config.write_roots.iter().chain(&own).map(|path| path.as_path());
    for folder in folders.chain([Path::new("/dev")]) {
        // What is not there cannot be written.
        let Ok(folder) = PathFd::new(folder) else { continue };
        rules = rules
            .add_rule(PathBeneath::new(folder, writes))
            .map_err(|error| wrong(&error))?;
    }
    rules.restrict_self().map_err(|error| wrong(&error))?;
    Ok(())
}
