//! The fabric folder: who this machine is in the fabric, in files that only its owner may read. Read [`Identity`].

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::peers::Peers;
use crate::private_file::write_all_private;

/// The authority's certificate, which vouches for all others.
const AUTHORITY: &str = "authority.pem";
/// The key that makes certificates; only where `init` ran.
const AUTHORITY_KEY: &str = "authority.key";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const IDENTITY: &str = "identity.json";
const PEERS: &str = "peers.json";

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Who this machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Its name, which is the one in its certificate.
    pub(crate) name: String,
    /// The name of the fabric's authority.
    pub(crate) authority: String,
    /// From when to when its certificate is valid, in seconds since 1970.
    pub(crate) valid_from: u64,
    pub(crate) valid_until: u64,
}

/// What is wrong with a fabric folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// There is nothing in it.
    #[error(
        "this machine has not joined a fabric yet: {} has no {IDENTITY}; run `ovos-tools fabric init NAME` on the robot, or \
         `ovos-tools fabric join FILE` with the file that its `ovos-tools fabric invite` made", .0.display()
    )]
    Empty(PathBuf),
    /// A file cannot be read or written.
    #[error("{path}: {why}", path = .path.display())]
    File { path: PathBuf, why: String },
    /// Others can read a key.
    #[error(
        "other users have access to {path} (mode {mode:o}): anyone who has read it can {loss}; run `chmod 600 {path}` if nobody \
         has, else {remedy}", path = .path.display()
    )]
    Open {
        path: PathBuf,
        mode: u32,
        /// What anyone can do with the key.
        loss: &'static str,
        remedy: &'static str,
    },
    /// Its certificate is not valid now.
    #[error("{0}")]
    Validity(String),
}

impl Folder {
    /// The folder that the command line names, or else the user's.
    pub(crate) fn new(named: Option<PathBuf>) -> Self {
        let base = || config::Xdg::new(&config::ProcessEnvironment).config_home;
        Self(named.unwrap_or_else(|| base().join("ovos-tools/fabric")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.0.join(AUTHORITY)
    }

    pub(crate) fn authority_key(&self) -> PathBuf {
        self.0.join(AUTHORITY_KEY)
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.0.join(CERTIFICATE)
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.0.join(KEY)
    }

    /// The machines that may reach this one.
    pub(crate) fn peers(&self) -> Peers {
        Peers::new(self.0.join(PEERS))
    }

    /// Who this machine is.
    ///
    /// # Errors
    /// It has no place in a fabric, or its files cannot be trusted.
    pub(crate) fn identity(&self) -> Result<Identity, FolderError> {
        let path = self.0.join(IDENTITY);
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => FolderError::Empty(self.0.clone()),
            _ => file_error(&path, &error),
        })?;
        let identity = serde_json::from_str(&text).map_err(|error| file_error(&path, &error))?;
        // The authority's key is the worse loss.
        for (path, loss, remedy) in [
            (
                self.authority_key(),
                "let machines into this fabric under any name",
                "make a new fabric with `ovos-tools fabric init` in an empty folder, and invite its machines again",
            ),
            (
                self.key(),
                "pose as this machine",
                "revoke it on the other machines (`ovos-tools fabric revoke`), and let it join again under a new name, with a file \
                 that `ovos-tools fabric invite` makes where the authority is",
            ),
        ] {
            let Ok(found) = fs::metadata(&path) else { continue };
            let mode = found.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(FolderError::Open {
                    path,
                    mode,
                    loss,
                    remedy,
                });
            }
        }
        for needed in [self.key(), self.certificate(), self.authority()] {
            fs::metadata(&needed).map_err(|error| file_error(&needed, &error))?;
        }
        Ok(identity)
    }

    /// The identity, if its certificate is valid now.
    ///
    /// # Errors
    /// As [`Self::identity`]; also if the certificate is not valid yet or has expired.
    pub(crate) fn valid_identity(&self) -> Result<Identity, FolderError> {
        let identity = self.identity()?;
        match identity.validity(wall_clock()) {
            Ok(_) => Ok(identity),
            Err(why) => Err(FolderError::Validity(why)),
        }
    }

    /// Puts a machine's files here.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn install(&self, files: &MachineFiles) -> Result<(), String> {
        let identity = serde_json::to_string_pretty(&files.identity).map_err(|error| error.to_string())?;
        // The identity is the last one: with it the folder is complete. A renewal replaces a certificate and its key, which have to
        // fit each other.
        write_all_private(&[
            (&self.authority(), &files.authority),
            (&self.certificate(), &files.certificate),
            (&self.key(), &files.key),
            (&self.0.join(IDENTITY), &(identity + "\n")),
        ])
    }
}

/// What makes a machine a member of a fabric: the file that `invite` writes and `join` reads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineFiles {
    pub(crate) identity: Identity,
    pub(crate) authority: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Identity {
    /// How many days its certificate is valid for at this time.
    ///
    /// # Errors
    /// It is not valid then; the text says why and what to do.
    pub(crate) fn validity(&self, now: u64) -> Result<u64, String> {
        let Self {
            name,
            valid_from,
            valid_until,
            ..
        } = self;
        if now < *valid_from {
            return Err(format!(
                "the certificate of `{name}` is valid from {} days on: the clock of this machine is wrong, set it",
                (valid_from - now).div_ceil(DAY)
            ));
        }
        if now >= *valid_until {
            return Err(format!(
                "the certificate of `{name}` ended {}: make a new one (`ovos-tools fabric invite {name}` where the \
                 authority is, then `ovos-tools fabric join FILE` here), or set the clock of this machine",
                ago(now - valid_until)
            ));
        }
        Ok((valid_until - now) / DAY)
    }
}

/// Seconds of a day.
pub(crate) const DAY: u64 = 24 * 60 * 60;

fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} minutes ago", seconds / 60),
        7200..172_800 => format!("{} hours ago", seconds / 3600),
        _ => format!("{} days ago", seconds / DAY),
    }
}

/// Seconds since 1970.
pub(crate) fn wall_clock() -> u64 {
    SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_secs())
}

fn file_error(path: &Path, why: &dyn std::fmt::Display) -> FolderError {
    FolderError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn identity() -> Identity {
        Identity {
            name: "laptop".to_owned(),
            authority: "robot1".to_owned(),
            valid_from: 100 * DAY,
            valid_until: 200 * DAY,
        }
    }

    #[test]
    fn a_certificate_outside_its_days_is_refused_with_what_to_do() {
        for (day, expected) in [
            (100, Ok(100)),
            (199, Ok(1)),
            (99, Err("the clock of this machine is wrong")),
            (200, Err("fabric invite laptop")),
            (900, Err("ended 700 days ago")),
        ] {
            let found = identity().validity(day * DAY);
            match expected {
                Ok(days) => assert_eq!(found, Ok(days)),
                Err(text) => assert!(found.clone().unwrap_err().contains(text), "{found:?}"),
            }
        }
    }

    #[test]
    fn a_folder_is_trusted_only_if_it_is_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(Some(dir.path().join("fabric")));
        assert!(matches!(folder.identity(), Err(FolderError::Empty(_))));
        let files = MachineFiles {
            identity: identity(),
            authority: "a".to_owned(),
            certificate: "c".to_owned(),
            key: "k".to_owned(),
        };
        folder.install(&files).unwrap();
        assert_eq!(folder.identity().unwrap(), identity());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&folder.key())), (0o700, 0o600));
        assert!(matches!(folder.valid_identity(), Err(FolderError::Validity(_))));
        fs::write(folder.authority_key(), "k").unwrap();
        for (key, advice) in [
            (folder.key(), "pose as this machine"),
            (folder.authority_key(), "`ovos-tools fabric init`"),
        ] {
            fs::set_permissions(folder.key(), fs::Permissions::from_mode(0o600)).unwrap();
            fs::set_permissions(folder.authority_key(), fs::Permissions::from_mode(0o600)).unwrap();
            folder.identity().unwrap();
            fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
            let error = folder.identity().unwrap_err();
            assert!(matches!(&error, FolderError::Open { mode: 0o640, .. }), "{error}");
            let chmod = format!("`chmod 600 {}`", key.display());
            let text = error.to_string();
            assert!(text.contains(advice) && text.contains(&chmod), "{text}");
        }
        fs::remove_file(folder.authority_key()).unwrap();
        fs::remove_file(folder.certificate()).unwrap();
        assert!(matches!(folder.identity(), Err(FolderError::File { .. })));
    }

    #[test]
    fn a_renewal_that_fails_leaves_the_certificate_that_fits_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(Some(dir.path().join("fabric")));
        let files = |text: &str| MachineFiles {
            identity: identity(),
            authority: text.to_owned(),
            certificate: text.to_owned(),
            key: text.to_owned(),
        };
        folder.install(&files("first")).unwrap();
        // What is written beside the file cannot be written.
        fs::create_dir(dir.path().join("fabric/identity.json.new")).unwrap();
        folder.install(&files("second")).unwrap_err();
        for path in [folder.authority(), folder.certificate(), folder.key()] {
            assert_eq!(fs::read_to_string(&path).unwrap(), "first", "{}", path.display());
        }
    }
}
