//! Who may reach this machine's toolboxes: `peers.json` of the fabric folder. Read [`Peers`].

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::private_file::write_private;

/// What a machine may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// May read and stop
    Viewer,
    /// May also call tools that change or move something; one commander at a time
    Commander,
    /// May also lift an emergency stop
    Operator,
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Commander => "commander",
            Self::Operator => "operator",
        }
    }
}

/// The content of `peers.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerList {
    /// The role of each machine, by the name in its certificate.
    #[serde(default)]
    pub(crate) peers: BTreeMap<String, Role>,
    /// Machines whose certificate is not accepted any more.
    #[serde(default)]
    pub(crate) revoked: Vec<String>,
}

impl PeerList {
    /// What a machine may do; `None` if it is a stranger, or revoked.
    pub(crate) fn role(&self, name: &str) -> Option<Role> {
        let revoked = self.revoked.iter().any(|revoked| revoked == name);
        self.peers.get(name).copied().filter(|_| !revoked)
    }
}

/// The file, read again when it has changed.
#[derive(Debug)]
pub(crate) struct Peers {
    path: PathBuf,
    read: Mutex<(Option<SystemTime>, PeerList)>,
}

impl Peers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: Mutex::default(),
        }
    }

    /// The machines as the file has them now. One that cannot be read has none: what is not known is refused.
    pub(crate) fn now(&self) -> PeerList {
        let changed = fs::metadata(&self.path).and_then(|file| file.modified()).ok();
        let known = {
            let read = self.read.lock();
            (read.0 == changed && changed.is_some()).then(|| read.1.clone())
        };
        known.unwrap_or_else(|| {
            // Without the lock: whoever asks for a role does not wait for the disk.
            let list = self.load().unwrap_or_else(|error| {
                tracing::error!(path = %self.path.display(), error, "nobody may reach this host: its peers cannot be read");
                PeerList::default()
            });
            *self.read.lock() = (changed, list.clone());
            list
        })
    }

    /// What a machine may do, as [`Self::now`] found it last; touches no file.
    pub(crate) fn role(&self, name: &str) -> Option<Role> {
        self.read.lock().1.role(name)
    }

    /// Reads the file. A missing one has no machines.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub(crate) fn load(&self) -> Result<PeerList, String> {
        match fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| error.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(PeerList::default()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes the file.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn change(&self, change: impl FnOnce(&mut PeerList)) -> Result<(), String> {
        let mut list = self
            .load()
            .map_err(|error| format!("read {}: {error}", self.path.display()))?;
        change(&mut list);
        let text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())? + "\n";
        write_private(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let peers = Peers::new(folder.path().join("peers.json"));
        assert_eq!(peers.now().role("laptop"), None, "no file");
        peers
            .change(|list| {
                list.peers.insert("laptop".into(), Role::Operator);
            })
            .unwrap();
        assert_eq!(peers.now().role("laptop"), Some(Role::Operator));
        assert_eq!(peers.now().role("stranger"), None);
        assert_eq!(peers.role("laptop"), Some(Role::Operator), "as it was read");
        peers.change(|list| list.revoked.push("laptop".into())).unwrap();
        assert_eq!(peers.load().unwrap().role("laptop"), None, "revoked");
        for broken in ["", "[]", r#"{"peers": {"laptop": "king"}}"#] {
            let path = folder.path().join("broken.json");
            fs::write(&path, broken).unwrap();
            assert_eq!(Peers::new(path).now().role("laptop"), None, "{broken:?}");
        }
    }
}
