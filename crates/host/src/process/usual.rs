//! The confinement that no section asks for: the service gives it to a toolbox of which it knows the needs.
//!
//! Owns what makes it different: its folders are made first, a machine that cannot enforce it runs the toolbox without, and
//! a device that was plugged in makes it another one. Read [`Usual`].

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What such a confinement brings along.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usual {
    /// Folders of the toolbox that are made where they are missing: access is given to what exists.
    pub make: Vec<PathBuf>,
    /// The `TMPDIR` of its process.
    pub temp: PathBuf,
    /// Which files its devices and writable folders were: after a camera was plugged in again, or a card was mounted, they
    /// are others, and a reload replaces the toolbox.
    #[serde(skip)]
    pub seen: Vec<(u64, u64)>,
}

impl Usual {
    /// One that cannot be made is a path that does not exist: the toolbox finds out, and says so.
    pub(super) fn make_folders(&self) {
        for folder in &self.make {
            let mut private = std::fs::DirBuilder::new();
            _ = private.recursive(true).mode(0o700).create(folder);
        }
    }

    /// Notes which files the devices and the writable folders are now.
    pub(super) fn note(&mut self, devices: &[PathBuf], folders: &[PathBuf]) {
        let devices = devices.iter().flat_map(|pattern| matching(pattern));
        let folders = folders.iter().filter(|path| !self.make.contains(path));
        let files = devices
            .chain(folders.cloned())
            .filter_map(|path| std::fs::metadata(path).ok());
        let mut seen: Vec<(u64, u64)> = files.map(|file| (file.dev(), file.ino())).collect();
        seen.sort_unstable();
        self.seen = seen;
    }
}

/// The files that a path means: itself, or those whose names match where it has a `*`.
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
    use crate::process::confine::Confine;

    use super::*;

    #[test]
    fn a_device_that_was_plugged_in_again_is_another_confinement() {
        let dev = tempfile::tempdir().unwrap();
        let camera = dev.path().join("video0");
        let now = || {
            let confine = Confine {
                devices: vec![dev.path().join("video*")],
                usual: Some(Usual::default()),
                ..Confine::default()
            };
            confine.noted()
        };
        let without = now();
        std::fs::write(dev.path().join("sda"), "").unwrap();
        assert_eq!(now(), without, "it is no device of the toolbox");
        std::fs::write(&camera, "").unwrap();
        let plugged = now();
        assert_ne!(plugged, without);
        assert_eq!(now(), plugged);
        // Made before the other is gone, so that it cannot get the same number.
        std::fs::write(dev.path().join("new"), "").unwrap();
        std::fs::rename(dev.path().join("new"), &camera).unwrap();
        assert_ne!(now(), plugged);
    }
}
