//! Rust files: those of a folder, and the code in one.

use std::path::{Path, PathBuf};

/// Adds the Rust files below a folder, if there is one, without what is built.
pub(super) fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
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

/// A file without its comments, which may use any name.
pub(super) fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a readable file");
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}
