//! Where the library of the sound server looks for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The variable with the folder of the server's socket.
const FOLDER: &str = "PULSE_RUNTIME_PATH";

/// What the environment of a process needs that may ask for a sound server. Where there is none, its library makes the folder in
/// which one would be, which the confinement refuses and the library complains about: it gets a folder of the toolbox.
pub(crate) fn environment(scratch: &Path) -> Vec<(&'static str, &OsStr)> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from);
    let is_there = folder("XDG_RUNTIME_DIR").is_some_and(|run| run.join("pulse").exists());
    let is_said = folder(FOLDER).is_some() || folder("PULSE_SERVER").is_some();
    let missing = !is_there && !is_said;
    let named = missing.then_some((FOLDER, scratch.as_os_str()));
    named.into_iter().collect()
}
