//! Ensures that only one program serves a conversation: a second one would run each of its calls again.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// A lock on a conversation; dropping it releases it.
pub(crate) struct Claim {
    path: PathBuf,
    _file: File,
}

/// Why a conversation cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("another ovos-tools-voice on this machine already serves this conversation: end it first")]
    Taken,
    #[error("cannot take the lock {path}: {cause}")]
    Machine { path: PathBuf, cause: io::Error },
}

impl Claim {
    /// Claims a conversation by locking a file in this folder. The folder is created if it is missing.
    pub(crate) fn new(folder: &Path, dialect: &str, chat: &str) -> Result<Self, ClaimError> {
        let digest = Sha256::digest(format!("{dialect} {chat}"));
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let path = folder.join(format!("voice-{name}.lock"));
        let failed = |cause| ClaimError::Machine {
            path: path.clone(),
            cause,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ClaimError::Taken),
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
            // A file that was removed between the two steps is no longer a valid lock.
            if file.metadata().map_err(failed)?.nlink() > 0 {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A file that remains does no harm.
        _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_claimed_once_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let claim = |dialect, chat| Claim::new(&state, dialect, chat);
        let first = claim("hume", "a").expect("the first claim");
        assert!(matches!(claim("hume", "a"), Err(ClaimError::Taken)));
        let others = [claim("hume", "b"), claim("openai", "a")];
        assert!(others.iter().all(Result::is_ok));
        drop(first);
        claim("hume", "a").expect("it is free again");
    }
}
