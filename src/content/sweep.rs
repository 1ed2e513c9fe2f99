//! Removes files whose time is over, or of which there are too many. Read [`sweep`].
//!
//! A toolbox decides how many files its folder has, and how deep. No resource that this module uses grows with that.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::fs::{Permissions, set_permissions};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ovos_toolbox_wire::{Content, is_toolbox_id};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::path::Arg;

/// The folder of the files that answers carry; no toolbox has this id.
pub(super) const OWN: &str = "service";

/// The limits of the files that are kept: their age, and for each folder their number and their bytes. Each limit applies.
const KEPT_FOR: Duration = Duration::from_secs(600);
const KEPT_FILES: usize = 64;
const KEPT_BYTES: u64 = 256 << 20;

/// A younger file is kept however many there are: the caller that asked for it still has to read it.
const YOUNG: Duration = Duration::from_secs(60);

/// The most files of a folder that are kept, even young ones.
const MOST_KEPT: usize = 4096;

/// The most entries of a folder that one sweep reads. The next sweep goes on.
const MOST_SEEN: usize = 100_000;

/// Removes files past the limits from the folders that the service made. Blocks.
pub(super) fn sweep(root: &Path) {
    if !root.join(Content::FOLDER_MARK).is_file() {
        return;
    }
    for folder in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = folder.file_name();
        if name
            .to_str()
            .is_some_and(|name| name == OWN || is_toolbox_id(name))
        {
            sweep_folder(&folder.path());
        }
    }
}

fn sweep_folder(path: &Path) {
    let Ok(folder) = open_folder(CWD, path) else {
        return;
    };
    let left = Cell::new(MOST_SEEN);
    while remove_folders(&folder, &left) {}
    let files = newest(&folder, MOST_KEPT);
    for file in expired(files, SystemTime::now(), KEPT_FILES, KEPT_BYTES) {
        remove(&folder, &file.name);
    }
}

/// Opens a folder without following a link, even if the toolbox removed its permissions.
fn open_folder(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let found = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(at, name, found, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if fstat(&found)?.st_mode & 0o700 != 0o700 {
        // The path names the open descriptor, because the name of the folder may be a link by now.
        let name = format!("/proc/self/fd/{}", found.as_raw_fd());
        _ = set_permissions(name, Permissions::from_mode(0o700));
    }
    openat(&found, c".", flags, Mode::empty())
}

/// Removes the folders in a folder. Returns true if more of them may be there.
fn remove_folders(folder: &OwnedFd, left: &Cell<usize>) -> bool {
    let mut removed = false;
    for name in names(folder, left) {
        let stat = statat(folder, &*name, AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            removed |= remove_folder(folder, &name, left);
        }
    }
    removed
}

/// Removes a folder with the files in it. Its subfolders move up into the parent, where they are removed next, so the depth does
/// not affect the number of open descriptors.
fn remove_folder(parent: &OwnedFd, name: &CStr, left: &Cell<usize>) -> bool {
    let Ok(folder) = open_folder(parent, name) else {
        return false;
    };
    for below in names(&folder, left) {
        // The subfolder can be moved only if it is writable.
        if unlinkat(&folder, &*below, AtFlags::empty()).is_err() && open_folder(&folder, &*below).is_ok() {
            let moved = format!("folder-{}", uuid::Uuid::now_v7());
            _ = renameat(&folder, &*below, parent, moved);
        }
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
}

/// Returns the names in a folder, until `left` (the number of entries that may still be read) is used up.
fn names(folder: &OwnedFd, left: &Cell<usize>) -> impl Iterator<Item = CString> {
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| ![c".", c".."].contains(&&**name))
        .take_while(|_| {
            let some = left.get() > 0;
            left.set(left.get().saturating_sub(1));
            some
        })
}

/// A file in a content folder.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ContentFile {
    /// When it was last changed. A toolbox cannot set this time.
    changed: SystemTime,
    size: u64,
    name: CString,
}

/// Returns the newest files of a folder. Links count as files and are not followed. All other files are removed at once.
fn newest(folder: &OwnedFd, most: usize) -> Vec<ContentFile> {
    let mut newest = BinaryHeap::new();
    let left = Cell::new(MOST_SEEN);
    for name in names(folder, &left) {
        let Ok(stat) = statat(folder, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            continue;
        }
        let seconds = u64::try_from(stat.st_ctime).unwrap_or_default();
        let nanoseconds = u32::try_from(stat.st_ctime_nsec).unwrap_or_default();
        newest.push(Reverse(ContentFile {
            changed: SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            name,
        }));
        if newest.len() > most
            && let Some(Reverse(oldest)) = newest.pop()
        {
            remove(folder, &oldest.name);
        }
    }
    newest.into_iter().map(|Reverse(file)| file).collect()
}

fn remove(folder: &OwnedFd, name: &CStr) {
    // The file may be gone already.
    _ = unlinkat(folder, name, AtFlags::empty());
}

/// Returns the files to remove. The newest files are kept up to the limits.
fn expired(mut files: Vec<ContentFile>, now: SystemTime, most: usize, bytes: u64) -> Vec<ContentFile> {
    files.sort_by_key(|file| Reverse(file.changed));
    let mut left = bytes;
    let kept = files.iter().enumerate().take_while(|(number, file)| {
        // A file with a time in the future counts as new: the clock was set back.
        let age = now.duration_since(file.changed).unwrap_or_default();
        let fits = left.checked_sub(file.size);
        left = fits.unwrap_or_default();
        age < KEPT_FOR && fits.is_some() && (*number < most || age < YOUNG)
    });
    let kept = kept.count();
    files.split_off(kept)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_newest_files_are_kept_within_every_limit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000);
        let files = |ages: &[(u64, u64)]| -> Vec<ContentFile> {
            let file = |(number, (age, size)): (usize, &(u64, u64))| ContentFile {
                changed: now - Duration::from_secs(*age),
                size: *size,
                name: CString::new(number.to_string()).unwrap(),
            };
            ages.iter().enumerate().map(file).collect()
        };
        for (ages, most, bytes, expected) in [
            (vec![(1, 5), (2, 5), (3, 5)], 64, 100, vec![]),
            (vec![(63, 5), (61, 5), (62, 5)], 2, 100, vec!["0"]),
            (vec![(3, 5), (1, 5), (2, 5)], 2, 100, vec![]),
            (vec![(3, 5), (59, 5), (60, 5)], 1, 100, vec!["2"]),
            (vec![(3, 5), (1, 5), (2, 5)], 2, 10, vec!["0"]),
            (vec![(1, 5), (2, 5), (3, 5)], 64, 10, vec!["2"]),
            (vec![(1, 5), (2, 50), (3, 5)], 64, 10, vec!["1", "2"]),
            (vec![(599, 5), (600, 5)], 64, 100, vec!["1"]),
            (vec![], 64, 100, vec![]),
        ] {
            let gone = expired(files(&ages), now, most, bytes);
            let gone: Vec<_> = gone.iter().map(|file| file.name.to_str().unwrap()).collect();
            assert_eq!(gone, expected, "{ages:?} {most} {bytes}");
        }
        let tomorrow = now + Duration::from_secs(86_400);
        assert_eq!(expired(files(&[(0, 1)]), tomorrow, 64, 100).len(), 1);
        let before = now - Duration::from_secs(86_400);
        assert!(
            expired(files(&[(0, 1)]), before, 64, 100).is_empty(),
            "the clock was set back"
        );
    }

    fn count(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_sweep_follows_no_link() {
        let root = tempfile::tempdir().unwrap();
        let (elsewhere, content) = (root.path().join("elsewhere"), root.path().join("content"));
        let folder = content.join("t");
        std::fs::create_dir_all(folder.join("below")).unwrap();
        std::fs::write(content.join(Content::FOLDER_MARK), "").unwrap();
        std::fs::create_dir_all(&elsewhere).unwrap();
        for number in 0..MOST_KEPT {
            std::fs::write(elsewhere.join(number.to_string()), "").unwrap();
            symlink(&elsewhere, folder.join(format!("below/{number}"))).unwrap();
            symlink(&elsewhere, folder.join(number.to_string())).unwrap();
        }
        symlink(&elsewhere, content.join("linked")).unwrap();
        std::fs::write(folder.join("newest"), "").unwrap();
        sweep(&content);
        assert_eq!(count(&elsewhere), MOST_KEPT, "what a link leads to stays");
        assert_eq!(count(&folder), MOST_KEPT, "links count as files");
    }

    #[test]
    fn a_sweep_removes_every_folder_of_a_toolbox_however_deep() {
        let root = tempfile::tempdir().unwrap();
        let content = root.path().join("content");
        let deep = content.join("t").join("d/".repeat(500));
        std::fs::create_dir_all(deep.join("beside")).unwrap();
        std::fs::write(content.join(Content::FOLDER_MARK), "").unwrap();
        std::fs::write(deep.join("file"), "").unwrap();
        let other = content.join("t/other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("file"), "").unwrap();
        set_permissions(&other, Permissions::from_mode(0o500)).unwrap();
        std::fs::write(content.join("t/kept"), "").unwrap();
        sweep(&content);
        assert_eq!(count(&content.join("t")), 1);
        assert!(content.join("t/kept").exists());
    }

    #[test]
    fn a_sweep_touches_only_what_the_service_made() {
        let site = tempfile::tempdir().unwrap();
        let content = site.path().join("content");
        for folder in ["posts/2024", "service", "t"] {
            std::fs::create_dir_all(content.join(folder)).unwrap();
        }
        for number in 0..3 {
            std::fs::write(content.join(format!("posts/{number}")), "").unwrap();
        }
        sweep(&content);
        assert_eq!(count(&content.join("posts")), 4);

        let ours = site.path().join("ours");
        for folder in ["No Toolbox/2024", "all/2024", "t/2024"] {
            std::fs::create_dir_all(ours.join(folder)).unwrap();
        }
        std::fs::write(ours.join(Content::FOLDER_MARK), "").unwrap();
        sweep(&ours);
        for (folder, expected) in [("No Toolbox", 1), ("all", 1), ("t", 0)] {
            assert_eq!(count(&ours.join(folder)), expected, "{folder}");
        }
    }
}
