//! The confinement that no section asks for: the service applies it to a toolbox whose needs it knows.
//!
//! It differs from a configured one: its folders are created first, a machine that cannot enforce it runs the toolbox
//! without it, and a device that is plugged in again makes a reload replace the toolbox. Read [`seen`].

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use section::{Confine, DefaultConfinement};

/// A folder that cannot be created stays missing: the toolbox finds that out and reports it.
pub(super) fn make_folders(default: &DefaultConfinement) {
    for folder in &default.make {
        let mut private = std::fs::DirBuilder::new();
        _ = private.recursive(true).mode(0o700).create(folder);
    }
}

/// The present identity of the devices and writable folders of a default confinement. It changes when a camera is
/// plugged in again or a card is mounted; a reload then replaces the toolbox.
pub(crate) fn file_identities(confine: &Confine) -> Vec<(u64, u64)> {
    let Some(default) = &confine.default else {
        return Vec::new();
    };
    let devices = confine.devices.iter().flat_map(|pattern| matching(pattern));
    let folders = confine
        .paths_rw
        .iter()
        .filter(|path| !default.make.contains(path));
    let files = devices
        .chain(folders.cloned())
        .filter_map(|path| std::fs::metadata(path).ok());
    let mut seen: Vec<(u64, u64)> = files.map(|file| (file.dev(), file.ino())).collect();
    seen.sort_unstable();
    seen
}

/// The files of a path: the path itself, or the files whose names match if it has a `*`.
pub(super) fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().and_then(|name| name.to_str());
    let (Some((start, end)), Some(folder)) = (name.and_then(|name| name.split_once('*')), pattern.parent())
    else {
        return vec![pattern.to_owned()];
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let matches = |name: &str| name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end));
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(matches))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_plugged_in_again_is_another_confinement() {
        let dev = tempfile::tempdir().unwrap();
        let camera = dev.path().join("video0");
        let now = || {
            let confine = Confine {
                devices: vec![dev.path().join("video*")],
                default: Some(DefaultConfinement::default()),
                ..Confine::default()
            };
            file_identities(&confine)
        };
        let without = now();
        std::fs::write(dev.path().join("sda"), "").unwrap();
        assert_eq!(now(), without, "it is no device of the toolbox");
        std::fs::write(&camera, "").unwrap();
        let plugged = now();
        assert_ne!(plugged, without);
        assert_eq!(now(), plugged);
        // Created before the other is removed, so that it cannot get the same inode number.
        std::fs::write(dev.path().join("new"), "").unwrap();
        std::fs::rename(dev.path().join("new"), &camera).unwrap();
        assert_ne!(now(), plugged);
    }
}
