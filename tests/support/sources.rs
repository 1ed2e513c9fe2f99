//! The Rust files of a folder.

use std::path::{Path, PathBuf};

/// Adds the Rust files below a folder, if there is one, without what is built.
pub(crate) fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.map(|entry| entry.expect("a readable folder").path()) {
        if entry.is_dir() && entry.file_name().is_some_and(|name| name != "target") {
            collect(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}
