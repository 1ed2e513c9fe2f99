//! Which other programs have a port open.

use std::fs;
use std::path::Path;

/// The other processes of this user that have the file open, each as `name (process 123)`. Those of other users, and outside of a
/// confinement, cannot be seen. Takes a few milliseconds.
pub(crate) fn holders(path: &str) -> Vec<String> {
    let Ok(path) = fs::canonicalize(path) else {
        return Vec::new();
    };
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let held = processes.filter_map(|process| {
        let pid = process.file_name().into_string().ok()?;
        let other = pid != own && pid.bytes().all(|byte| byte.is_ascii_digit());
        (other && has_open(&process.path(), &path)).then(|| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            format!("{} (process {pid})", name.trim_end())
        })
    });
    held.collect()
}

fn has_open(process: &Path, path: &Path) -> bool {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| target == path)
}
