//! The token that clients of a door show. Its file can be read only by its owner.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The length of the shortest token that is accepted, in characters.
const SHORTEST: usize = 16;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be used.
    #[error("the token file {path}: {cause}; name another with {key}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
        /// The key of the configuration that names the file.
        key: &'static str,
    },
    /// Others can read it.
    #[error("the token file {path} can be read by others (mode {mode:o}): `chmod 600 {path}`")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is too easy to guess.
    #[error(
        "the token file {path} holds {found} characters, expected at least {SHORTEST}: remove it to get a new one"
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// How many characters it holds.
        found: usize,
    },
}

/// The digest of a token. Comparing digests takes the same time for every input.
#[derive(Clone)]
pub struct Token([u8; 32]);

/// The token of a file.
pub struct FoundToken {
    /// The token.
    pub token: Token,
    /// Its text.
    pub text: String,
    /// Whether it was made for this file, which was missing.
    pub is_new: bool,
}

impl Token {
    /// The token of this text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Reads the token from a file, which `key` of the configuration names. If there is no file, makes a token and the file.
    ///
    /// # Errors
    /// The file cannot be read or made, others can read it, or its token is too short.
    pub fn of_file(path: &Path, key: &'static str) -> Result<FoundToken, TokenError> {
        let failed = |cause| TokenError::File {
            path: path.to_owned(),
            cause,
            key,
        };
        match fs::metadata(path) {
            Ok(metadata) if metadata.mode() & 0o077 != 0 => Err(TokenError::Open {
                path: path.to_owned(),
                mode: metadata.mode() & 0o777,
            }),
            Ok(_) => {
                let text = fs::read_to_string(path).map_err(failed)?;
                let text = text.trim();
                if text.len() < SHORTEST {
                    return Err(TokenError::Short {
                        path: path.to_owned(),
                        found: text.len(),
                    });
                }
                Ok(FoundToken {
                    token: Self::of(text),
                    text: text.to_owned(),
                    is_new: false,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = format!(
                    "{}{}",
                    uuid::Uuid::new_v4().simple(),
                    uuid::Uuid::new_v4().simple()
                );
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).map_err(failed)?;
                }
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(path)
                    .map_err(failed)?;
                writeln!(file, "{text}").map_err(failed)?;
                Ok(FoundToken {
                    token: Self::of(&text),
                    text,
                    is_new: true,
                })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether a text is the token.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        let Self(shown) = Self::of(text);
        let differ = self
            .0
            .iter()
            .zip(shown)
            .fold(0, |differ, (a, b)| differ | (a ^ b));
        differ == 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state/mcp-token");
        let found = Token::of_file(&path, "key").expect("a token");
        assert!(found.is_new);
        let text = found.text;
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        let again = Token::of_file(&path, "key").expect("a token");
        assert!(!again.is_new && again.text == text);
        for (shown, right) in [
            (text.clone(), true),
            (format!("{text}x"), false),
            (text[1..].to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(again.token.is(&shown), right, "{shown}");
        }

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("permissions");
        assert!(matches!(
            Token::of_file(&path, "key"),
            Err(TokenError::Open { mode: 0o640, .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        fs::write(&path, "short\n").expect("a file");
        assert!(matches!(
            Token::of_file(&path, "key"),
            Err(TokenError::Short { found: 5, .. })
        ));
    }
}
