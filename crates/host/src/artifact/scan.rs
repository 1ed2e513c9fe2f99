//! Finding plugin files.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A file that could not be loaded as a toolbox, or as the next copy of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedFile {
    /// The file, or a folder that cannot be read.
    pub path: PathBuf,
    /// The id of its toolbox, if known.
    pub toolbox_id: Option<String>,
    /// The reason: what was expected, and what to do.
    pub reason: String,
}

/// The `*.so` files of the folders, in the order of the folders and by name in each; each file is listed once, however
/// many folders and links lead to it. Hidden files are temporary and left out. Blocks.
#[must_use]
pub fn scan(folders: &[PathBuf]) -> (Vec<PathBuf>, Vec<FailedFile>) {
    let (mut files, mut failed, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for folder in folders {
        let mut found = match list(folder) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::debug!(folder = %folder.display(), "no such plugin folder");
                continue;
            }
            Err(error) => {
                failed.push(FailedFile {
                    path: folder.clone(),
                    toolbox_id: None,
                    reason: format!("cannot read the plugin folder {}: {error}", folder.display()),
                });
                continue;
            }
        };
        found.sort();
        // A link without a target has no real path; it is reported when it is examined.
        found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        files.append(&mut found);
    }
    (files, failed)
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|ext| ext == "so") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_come_in_the_order_of_folders_and_names_and_once() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["z.so", "m.so", ".hidden.so", "notes.txt", "lib.so.1"] {
            fs::write(a.path().join(name), "").unwrap();
        }
        fs::write(b.path().join("a.so"), "").unwrap();
        symlink(a.path().join("z.so"), b.path().join("again.so")).unwrap();
        let folders = [
            a.path().to_owned(),
            PathBuf::from("/no/such/folder"),
            b.path().to_owned(),
            a.path().to_owned(),
        ];
        let (files, failed) = scan(&folders);
        assert_eq!(
            files,
            [
                a.path().join("m.so"),
                a.path().join("z.so"),
                b.path().join("a.so")
            ]
        );
        assert_eq!(failed, []);
        let (_, failed) = scan(&[a.path().join("notes.txt")]);
        assert!(
            failed[0].reason.contains("cannot read the plugin folder"),
            "{failed:?}"
        );
    }
}
