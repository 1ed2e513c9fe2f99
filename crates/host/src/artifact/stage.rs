//! Private copies of plugin files.
//!
//! Owns a folder of this process in which every copy has a new name: the dynamic linker compares names and inodes, so
//! a file that is loaded from its own place can neither be replaced nor loaded twice. The folder is locked while the
//! process lives; folders of dead processes are removed. Read [`Stage`] first.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, StatVfsMountFlags, flock, statvfs};

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::{Fingerprint, hash_into};

const PREFIX: &str = "ovos-tools-";
const LOCK: &str = "lock";
/// How often a file is copied again because it changed meanwhile.
const ATTEMPTS: u32 = 5;
/// A folder without a lock file that is younger than this may not be complete yet.
const HALF_MADE: Duration = Duration::from_secs(60);

/// Why a file could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// No folder can hold the copies.
    #[error(
        "no folder for private copies of plugins (each must be writable and allow programs to be executed): {}; \
         set `service.stage_dir`", tried.join("; ")
    )]
    NoFolder {
        /// The folders that were tried, each with the reason against it.
        tried: Vec<String>,
    },
    /// Copying failed.
    #[error("stage {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file keeps changing.
    #[error("stage {}: it changed {ATTEMPTS} times while it was copied; write plugins to another name and rename them into place", path.display())]
    Changing {
        /// The file.
        path: PathBuf,
    },
}

/// A private copy of a plugin file.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    /// The copy.
    pub file: Arc<PluginFile>,
    /// The hash of its content, in lower-case hex.
    pub sha256: String,
    /// The properties of the original.
    pub fingerprint: Fingerprint,
}

/// The folder of this process's copies. Dropping it removes the folder; loaded libraries stay loaded.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: PathBuf,
    // Only held: the lock marks the folder as in use.
    _lock: File,
}

impl Stage {
    /// Creates the folder in the first usable one of `configured`, else of `$XDG_RUNTIME_DIR`, the system's temporary
    /// folder, `~/.cache` and `/var/tmp`, and removes the folders of dead processes there.
    ///
    /// # Errors
    /// [`StageError::NoFolder`].
    pub(crate) fn new(configured: &[PathBuf]) -> Result<Self, StageError> {
        let mut tried = Vec::new();
        for (place, base) in candidates(configured).into_iter().enumerate() {
            match Self::make(&base) {
                Ok(stage) => {
                    if place > 0
                        && let Some(reason) = tried.first()
                    {
                        tracing::warn!(folder = %stage.folder.display(), reason, "plugins are staged in another folder than expected");
                    }
                    return Ok(stage);
                }
                Err(reason) => tried.push(format!("{}: {reason}", base.display())),
            }
        }
        Err(StageError::NoFolder { tried })
    }

    /// The folder of the copies.
    #[must_use]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Copies and hashes a file. Blocks.
    ///
    /// # Errors
    /// It cannot be read or copied, or keeps changing.
    pub(crate) fn copy(&self, source: &Path) -> Result<Staged, StageError> {
        let error = |source_error| StageError::Io {
            path: source.to_owned(),
            source: source_error,
        };
        for _ in 0..ATTEMPTS {
            if let Some(staged) = self.try_copy(source).map_err(error)? {
                return Ok(staged);
            }
        }
        Err(StageError::Changing {
            path: source.to_owned(),
        })
    }

    fn try_copy(&self, source: &Path) -> io::Result<Option<Staged>> {
        /// Numbers every copy of this process, in any folder.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Non-blocking, so that a pipe which replaced the file after the check does not block.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut from = OpenOptions::new().read(true).custom_flags(flags).open(source)?;
        let before = Fingerprint::of(&from.metadata()?);
        let part = self.folder.join(format!(".{number}.part"));
        let to = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o500)
            .open(&part)?;
        let copied = hash_into(&mut from, to);
        let sha256 = copied.inspect_err(|_| drop(fs::remove_file(&part)))?;
        // Compared through the open file (was the file written to?) and through the path (was the file replaced?).
        let still = Fingerprint::of(&from.metadata()?) == before
            && Fingerprint::read(source).is_ok_and(|f| f == before);
        if !still {
            fs::remove_file(&part)?;
            return Ok(None);
        }
        let stem: String = source
            .file_stem()
            .map(|s| s.to_string_lossy().into_owned())
            .unwrap_or_default();
        let path = self.folder.join(format!("{stem}.{}.g{number}.so", &sha256[..12]));
        fs::rename(&part, &path)?;
        Ok(Some(Staged {
            file: Arc::new(PluginFile::staged(path)),
            sha256,
            fingerprint: before,
        }))
    }

    fn make(base: &Path) -> Result<Self, String> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(base)
            .map_err(|e| e.to_string())?;
        let flags = statvfs(base).map_err(|e| io::Error::from(e).to_string())?.f_flag;
        if flags.contains(StatVfsMountFlags::NOEXEC) {
            return Err("is mounted noexec".to_owned());
        }
        remove_stale(base);
        let pid = std::process::id();
        // The plain name, unless another stage has it, in this process or in a process of another container.
        for suffix in 0..1000 {
            let name = if suffix == 0 {
                format!("{PREFIX}{pid}")
            } else {
                format!("{PREFIX}{pid}-{suffix}")
            };
            let folder = base.join(name);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e.to_string()),
            }
            let locked = lock(&folder).map_err(|e| e.to_string())?;
            return Ok(Self {
                folder,
                _lock: locked,
            });
        }
        Err("already has 1000 folders of processes with the number of this one".to_owned())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot remove the folder of staged plugins");
        }
    }
}

fn candidates(configured: &[PathBuf]) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let rest = [
        runtime,
        Some(std::env::temp_dir()),
        home,
        Some(PathBuf::from("/var/tmp")),
    ];
    configured
        .iter()
        .cloned()
        .chain(rest.into_iter().flatten())
        .collect()
}

/// Removes the folders of dead processes. A folder that cannot be removed stays.
fn remove_stale(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let ours = is_of_a_stage(&name.to_string_lossy())
            && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir() && found.uid() == user);
        if ours && is_stale(&path) {
            tracing::debug!(folder = %path.display(), "removed staged plugins of a process that is gone");
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether [`Stage::make`] made a name: other users may create folders whose names begin in the same way.
fn is_of_a_stage(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| match rest.split_once('-') {
            Some((pid, suffix)) => number(pid) && number(suffix),
            None => number(rest),
        })
}

/// Tests the lock, not the process id in the name: ids are reused, in containers always.
fn is_stale(folder: &Path) -> bool {
    match OpenOptions::new().read(true).open(folder.join(LOCK)) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(_) => {
            let modified = fs::metadata(folder).and_then(|found| found.modified());
            modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > HALF_MADE))
        }
    }
}

fn lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    // Locked before the file gets its name, so that no other process sees it unlocked.
    let unnamed = folder.join(".lock");
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unnamed)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(unnamed, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn every_copy_has_its_own_private_name_and_the_folder_goes_with_the_stage() {
        let base = tempfile::tempdir().unwrap();
        let source = base.path().join("arm.so");
        fs::write(&source, "one").unwrap();
        let stage = Stage::new(&[base.path().to_owned()]).unwrap();
        let folder = stage.folder().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let (first, second) = (stage.copy(&source).unwrap(), stage.copy(&source).unwrap());
        assert_ne!(first.file.path(), second.file.path());
        assert_eq!(
            first.sha256,
            "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
        );
        let name = first
            .file
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        assert!(
            name.starts_with("arm.7692c3ad3540.g") && name.ends_with(".so"),
            "{name}"
        );
        assert_eq!(fs::read(second.file.path()).unwrap(), b"one");
        let error = stage.copy(&base.path().join("none.so")).unwrap_err().to_string();
        assert!(error.contains("none.so"), "{error}");
        drop(stage);
        assert!(!folder.exists());
    }

    #[test]
    fn what_dead_processes_left_is_removed_and_what_lives_is_not() {
        let base = tempfile::tempdir().unwrap();
        let dead = base.path().join("ovos-tools-999999");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::write(dead.join("old.so"), "x").unwrap();
        let foreign = ["something-else", "ovos-tools-backup", "ovos-tools-1-of-mine"]
            .map(|name| base.path().join(name));
        let long_ago = std::time::SystemTime::now() - 2 * HALF_MADE;
        for folder in &foreign {
            fs::create_dir(folder).unwrap();
            File::open(folder).unwrap().set_modified(long_ago).unwrap();
        }
        let first = Stage::new(&[base.path().to_owned()]).unwrap();
        let second = Stage::new(&[base.path().to_owned()]).unwrap();
        assert!(!dead.exists());
        assert!(foreign.iter().all(|folder| folder.exists()));
        assert!(first.folder().exists() && second.folder().exists());
        assert_ne!(first.folder(), second.folder());
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_passed_over() {
        let stage = Stage::new(&[PathBuf::from("/proc/self/nowhere")]).unwrap();
        assert!(!stage.folder().starts_with("/proc"));
    }
}
