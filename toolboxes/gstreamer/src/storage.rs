//! Storage locations and their free space.
//!
//! Reads the mount table and statvfs, below `sysroot`. Writes nothing. Read [`Place`].

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ovos_toolbox_sdk::prelude::*;
use rustix::fs::StatVfsMountFlags;

use crate::config::Config;

/// A place for files.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Place {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Whether it is there and files can be written to it.
    pub(crate) available: bool,
    /// Whether a filesystem of its own is mounted there.
    pub(crate) mounted: bool,
    /// Whether the folder is there.
    pub(crate) exists: bool,
    /// Whether nothing can be written to it.
    pub(crate) read_only: bool,
    /// Room for new files in GB (1000000000 bytes); null when the folder is not there.
    pub(crate) free_gb: Option<f64>,
    /// All of its room in GB.
    pub(crate) total_gb: Option<f64>,
    /// The kind of filesystem, when one is mounted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filesystem: Option<String>,
    /// What is mounted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
}

/// The configured locations, and other mounted file systems for files.
pub(crate) fn all(config: &Config) -> Vec<Place> {
    let mounts = mounts(config);
    let mut paths: Vec<PathBuf> = config.storage_locations.clone();
    // A file system mounted several times is listed once.
    let mut seen: HashSet<u64> = paths.iter().filter_map(|path| device(config, path)).collect();
    let mut others: Vec<&Mount> = mounts.iter().filter(|mount| mount.holds_files()).collect();
    others.sort_by_key(|mount| (mount.path.components().count(), mount.path.clone()));
    for mount in others {
        let is_folder = config.below_sysroot(&mount.path.to_string_lossy()).is_dir();
        let is_known = paths.contains(&mount.path);
        let new = device(config, &mount.path).is_none_or(|device| seen.insert(device));
        if is_folder && !is_known && new {
            paths.push(mount.path.clone());
        }
    }
    paths.iter().map(|path| read(config, &mounts, path)).collect()
}

/// One location.
pub(crate) fn one(config: &Config, path: &Path) -> Place {
    read(config, &mounts(config), path)
}

struct Mount {
    source: String,
    path: PathBuf,
    filesystem: String,
}

impl Mount {
    /// Whether it holds users' files: on a block device or on another machine, not a kernel file system.
    fn holds_files(&self) -> bool {
        let kind = self.filesystem.as_str();
        let on_device = self.source.starts_with("/dev/") && kind != "squashfs";
        on_device
            || ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "overlay"].contains(&kind)
            || kind.starts_with("fuse.")
    }
}

/// The mount table: `source path kind options 0 0`, with `\040` for a space.
fn mounts(config: &Config) -> Vec<Mount> {
    let own = fs::read_to_string(config.below_sysroot("/proc/self/mounts"));
    let text = own
        .or_else(|_| fs::read_to_string(config.below_sysroot("/proc/mounts")))
        .unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            Some(Mount {
                source: unescape(fields.next()?),
                path: PathBuf::from(unescape(fields.next()?)),
                filesystem: fields.next()?.to_owned(),
            })
        })
        .collect()
}

fn unescape(field: &str) -> String {
    let mut text = String::new();
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let code = after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                text.push(char::from(code));
                rest = &after[3..];
            }
            None => {
                text.push('\\');
                rest = after;
            }
        }
    }
    text + rest
}

fn device(config: &Config, path: &Path) -> Option<u64> {
    let metadata = fs::metadata(config.below_sysroot(&path.to_string_lossy())).ok()?;
    Some(metadata.dev())
}

fn read(config: &Config, mounts: &[Mount], path: &Path) -> Place {
    let real = config.below_sysroot(&path.to_string_lossy());
    // The last mount at a path hides the others.
    let mount = mounts.iter().rfind(|mount| mount.path == path);
    let room = rustix::fs::statvfs(&real).ok();
    let exists = real.is_dir();
    let read_only = room
        .as_ref()
        .is_some_and(|room| room.f_flag.contains(StatVfsMountFlags::RDONLY));
    let gigabytes = |blocks: u64, size: u64| {
        let bytes = u128::from(blocks) * u128::from(size);
        // Hundredths of a GB, which a double represents well enough.
        #[expect(clippy::cast_precision_loss, reason = "two digits after the point are kept")]
        let hundredths = (bytes / 10_000_000) as f64;
        hundredths / 100.0
    };
    let writable = exists && !read_only && rustix::fs::access(&real, rustix::fs::Access::WRITE_OK).is_ok();
    Place {
        path: path.to_owned(),
        available: writable,
        mounted: mount.is_some(),
        exists,
        read_only,
        free_gb: room.as_ref().map(|room| gigabytes(room.f_bavail, room.f_frsize)),
        total_gb: room.as_ref().map(|room| gigabytes(room.f_blocks, room.f_frsize)),
        filesystem: mount.map(|mount| mount.filesystem.clone()),
        source: mount.map(|mount| mount.source.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn spaces_in_mounts_are_spaces() {
        for (field, expected) in [
            ("/mnt/my\\040card", "/mnt/my card"),
            ("/mnt/a\\134b", "/mnt/a\\b"),
            ("/mnt/a\\", "/mnt/a\\"),
            ("/data", "/data"),
        ] {
            assert_eq!(unescape(field), expected);
        }
    }
}
