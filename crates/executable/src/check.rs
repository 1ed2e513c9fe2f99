//! Whether a file may be loaded, because loading executes its code.
//!
//! Answers one question: could a user other than root and the service's user have written or replaced this file? Never
//! opens or reads the file. Read [`file()`] first.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a file may not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file's status cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The path is a folder, a device or a pipe.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// The file, or a folder above it, belongs to another user.
    #[error(
        "{} belongs to user {owner}, who could put other code into the service; expected root or user {user}. \
         If it is yours: sudo chown {user} '{}'", path.display(), path.display()
    )]
    Owner {
        /// The file, or a folder above it.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The service's user.
        user: u32,
    },
    /// Other users can write the file, or a folder above it.
    #[error(
        "{} has mode {mode:04o}: others could put code into the service. Take their right to write away: chmod go-w '{}'",
        path.display(), path.display()
    )]
    Mode {
        /// The file, or a folder above it.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The configuration allows only other hashes.
    #[error("{} has the SHA-256 {found}, which is not in `allow_sha256`; add it there if you trust this file", path.display())]
    NotAllowed {
        /// The file.
        path: PathBuf,
        /// Its hash.
        found: String,
    },
}

const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Checks owner and mode of a file, of every folder above it, and of a link's target; returns the real path.
///
/// A folder that all users may write to is accepted if the sticky bit protects its content (`/tmp`), except as the
/// file's own folder: any user could add a hard link there to an old, vulnerable library of root.
///
/// # Errors
/// See [`CheckError`]: each names the path, what was found and the command that fixes it.
pub fn file(path: &Path) -> Result<PathBuf, CheckError> {
    let user = rustix::process::geteuid().as_raw();
    let link = look(path, fs::symlink_metadata(path))?;
    owner(path, &link, user)?;
    let real = path.canonicalize().map_err(|source| CheckError::Io {
        path: path.to_owned(),
        source,
    })?;
    links(path, user)?;
    let found = look(&real, fs::symlink_metadata(&real))?;
    if !found.is_file() {
        return Err(CheckError::NotAFile { path: real });
    }
    owner(&real, &found, user)?;
    mode(&real, &found, false)?;
    folders(&real, user)?;
    Ok(real)
}

/// Checks a folder, or a file, from which an interpreter imports code: its owner and mode, and every folder above it.
/// If the path does not exist, checks the nearest folder above it.
///
/// # Errors
/// See [`file()`].
pub fn imported(path: &Path) -> Result<(), CheckError> {
    let there = path.ancestors().find(|path| fs::symlink_metadata(path).is_ok());
    let path = there.unwrap_or(Path::new("/"));
    let user = rustix::process::geteuid().as_raw();
    links(path, user)?;
    let real = path.canonicalize().map_err(|source| CheckError::Io {
        path: path.to_owned(),
        source,
    })?;
    let found = look(&real, fs::symlink_metadata(&real))?;
    owner(&real, &found, user)?;
    mode(&real, &found, false)?;
    folders(&real, user)
}

/// Checks every link in a path, and links of links: a user who can write the folder of a link can choose its target.
fn links(path: &Path, user: u32) -> Result<(), CheckError> {
    let at = |path: &Path, source| CheckError::Io {
        path: path.to_owned(),
        source,
    };
    let mut rest = std::path::absolute(path).map_err(|source| at(path, source))?;
    // The kernel, too, follows at most 40 links.
    for _ in 0..40 {
        let mut parts: Vec<&Path> = rest.ancestors().collect();
        parts.reverse();
        let mut first_link = None;
        for part in parts {
            let found = look(part, fs::symlink_metadata(part))?;
            if found.is_symlink() {
                owner(part, &found, user)?;
                folders(part, user)?;
                first_link = Some(part);
                break;
            }
        }
        let Some(link) = first_link else { return Ok(()) };
        let target = fs::read_link(link).map_err(|source| at(link, source))?;
        let mut next = link.parent().unwrap_or(Path::new("/")).join(target);
        // Not `join`: it would end the path in a slash if nothing follows the link.
        next.extend(rest.strip_prefix(link).into_iter().flatten());
        rest = next;
    }
    Err(at(path, io::Error::other("more than 40 links")))
}

/// Checks the hash of a file against a list; an empty list allows everything.
///
/// # Errors
/// [`CheckError::NotAllowed`].
pub fn allowed(path: &Path, sha256: &str, list: &[String]) -> Result<(), CheckError> {
    if list.is_empty() || list.iter().any(|entry| entry.eq_ignore_ascii_case(sha256)) {
        return Ok(());
    }
    Err(CheckError::NotAllowed {
        path: path.to_owned(),
        found: sha256.to_owned(),
    })
}

/// Checks every folder above a real path.
fn folders(real: &Path, user: u32) -> Result<(), CheckError> {
    for (depth, folder) in real.ancestors().skip(1).enumerate() {
        let found = look(folder, fs::symlink_metadata(folder))?;
        owner(folder, &found, user)?;
        mode(folder, &found, depth > 0)?;
    }
    Ok(())
}

fn look(path: &Path, found: io::Result<Metadata>) -> Result<Metadata, CheckError> {
    found.map_err(|source| CheckError::Io {
        path: path.to_owned(),
        source,
    })
}

fn owner(path: &Path, found: &Metadata, user: u32) -> Result<(), CheckError> {
    let owner = found.uid();
    if owner == 0 || owner == user {
        return Ok(());
    }
    Err(CheckError::Owner {
        path: path.to_owned(),
        owner,
        user,
    })
}

fn mode(path: &Path, found: &Metadata, sticky_is_fine: bool) -> Result<(), CheckError> {
    let mode = found.mode() & 0o7777;
    let others = mode & OTHERS_WRITE != 0;
    let group = mode & GROUP_WRITE != 0;
    if (!others && !group) || (sticky_is_fine && mode & STICKY != 0) {
        return Ok(());
    }
    // If every user has a group of their own, as on Ubuntu, that group may write every folder of the user.
    if !others && is_private_group(found.gid()) {
        return Ok(());
    }
    Err(CheckError::Mode {
        path: path.to_owned(),
        mode,
    })
}

/// Whether root and the service's user are the only members of a group.
fn is_private_group(gid: u32) -> bool {
    let user = rustix::process::geteuid().as_raw();
    match (
        fs::read_to_string("/etc/passwd"),
        fs::read_to_string("/etc/group"),
    ) {
        (Ok(passwd), Ok(group)) => has_no_other_member(gid, user, &passwd, &group),
        _ => false,
    }
}

/// Reads only the local files: a user or a group that is not in them counts as another member.
fn has_no_other_member(gid: u32, user: u32, passwd: &str, group: &str) -> bool {
    let users: Vec<(&str, u32, u32)> = passwd
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
            Some((name, uid.parse().ok()?, gid.parse().ok()?))
        })
        .collect();
    let ours = |uid: u32| uid == 0 || uid == user;
    let has_entry = users.iter().any(|(_, uid, _)| *uid == user);
    let primary = users
        .iter()
        .filter(|(_, _, primary)| *primary == gid)
        .all(|(_, uid, _)| ours(*uid));
    let names = group.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let found: u32 = fields.next()?.parse().ok()?;
        (found == gid).then(|| fields.next().unwrap_or(""))
    });
    let is_ours = |name: &str| users.iter().any(|(other, uid, _)| *other == name && ours(*uid));
    let members = names.is_some_and(|names| {
        names
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
            .all(is_ours)
    });
    has_entry && primary && members
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A folder in a folder in the system's temporary folder, with a file in it.
    fn tree() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("plugins");
        fs::create_dir(&folder).unwrap();
        chmod(&folder, 0o755);
        let path = folder.join("a.so");
        fs::write(&path, "x").unwrap();
        chmod(&path, 0o644);
        (top, folder, path)
    }

    #[track_caller]
    fn check(path: &Path, expected: &str) {
        let found = file(path).map_or_else(|e| e.to_string(), |_| "fine".to_owned());
        assert!(found.contains(expected), "{found:?} should contain {expected:?}");
    }

    #[test]
    fn no_other_user_can_write_a_file_that_is_loaded() {
        let (top, folder, path) = tree();
        check(&path, "fine");
        for mode in [0o646, 0o666, 0o777] {
            chmod(&path, mode);
            check(&path, &format!("a.so has mode {mode:04o}"));
            check(&path, "chmod go-w");
        }
        chmod(&path, 0o644);
        for mode in [0o757, 0o777, 0o1777] {
            chmod(&folder, mode);
            check(&path, &format!("plugins has mode {mode:04o}"));
        }
        chmod(&folder, 0o755);
        chmod(top.path(), 0o777);
        check(&path, "has mode 0777");
        chmod(top.path(), 0o1777);
        check(&path, "fine");
        check(&folder, "is not a regular file");
        check(&folder.join("b.so"), "No such file");
    }

    #[test]
    fn no_other_user_can_write_a_folder_that_code_is_imported_from() {
        let (top, folder, path) = tree();
        let check = |path: &Path, expected: &str| {
            let found = imported(path).map_or_else(|e| e.to_string(), |()| "fine".to_owned());
            assert!(found.contains(expected), "{found:?} should contain {expected:?}");
        };
        let link = top.path().join("link");
        symlink(&folder, &link).unwrap();
        let all = [folder.clone(), path.clone(), folder.join("not/there"), link];
        all.iter().for_each(|path| check(path, "fine"));
        for mode in [0o757, 0o777, 0o1777] {
            chmod(&folder, mode);
            for path in &all {
                check(path, &format!("plugins has mode {mode:04o}"));
                check(path, "chmod go-w");
            }
        }
        chmod(&folder, 0o755);
        chmod(top.path(), 0o777);
        all.iter().for_each(|path| check(path, "has mode 0777"));
        chmod(top.path(), 0o755);
        chmod(&path, 0o666);
        check(&path, "a.so has mode 0666");
        check(&folder, "fine");
    }

    #[test]
    fn a_link_is_as_good_as_its_target_and_its_folder() {
        let (_top, folder, path) = tree();
        let (_other_top, other, target) = tree();
        let link = folder.join("link.so");
        symlink(&target, &link).unwrap();
        check(&link, "fine");
        chmod(&other, 0o777);
        check(&link, "has mode 0777");
        chmod(&other, 0o755);
        chmod(&folder, 0o777);
        check(&link, "has mode 0777");
        check(&path, "has mode 0777");
    }

    #[test]
    fn a_link_on_the_way_is_as_good_as_its_folder() {
        let (_top, folder, _) = tree();
        let (middle, _, _) = tree();
        let (end, _, _) = tree();
        // middle/current -> end/latest -> folder
        let (current, latest) = (middle.path().join("current"), end.path().join("latest"));
        symlink(&folder, &latest).unwrap();
        symlink(&latest, &current).unwrap();
        let path = current.join("a.so");
        check(&path, "fine");
        for top in [&middle, &end] {
            for mode in [0o777, 0o1777] {
                chmod(top.path(), mode);
                check(&path, &format!("has mode {mode:04o}"));
            }
            chmod(top.path(), 0o755);
        }
        let round = end.path().join("round");
        symlink(&round, &round).unwrap();
        assert!(file(&round.join("a.so")).is_err());
    }

    #[test]
    fn a_private_group_has_no_other_member() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npi:x:1000:1000::/home/pi:/bin/sh\nada:x:1001:50::/home/ada:/bin/sh\n";
        let group = "root:x:0:\nstaff:x:50:\npi:x:1000:\nrobots:x:60:pi,ada\narms:x:61:pi,root\n";
        for (gid, user, private) in [
            (1000, 1000, true),
            (0, 1000, true),
            (61, 1000, true),
            (60, 1000, false), // ada is in it
            (50, 1000, false), // ada's own
            (99, 1000, false), // no such group
            (0, 4242, false),  // a user that the files do not know
        ] {
            assert_eq!(
                has_no_other_member(gid, user, passwd, group),
                private,
                "group {gid} of user {user}"
            );
        }
    }

    #[test]
    fn a_list_of_hashes_pins_contents() {
        let path = Path::new("/a.so");
        assert!(allowed(path, "ab", &[]).is_ok());
        assert!(allowed(path, "ab", &["cd".into(), "AB".into()]).is_ok());
        let error = allowed(path, "ab", &["cd".into()]).unwrap_err().to_string();
        assert!(error.contains("ab") && error.contains("allow_sha256"), "{error}");
    }
}
