//! The token that clients send over HTTP. Its file can be read only by its owner.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

/// The length of the shortest token that is accepted, in characters.
const SHORTEST: usize = 16;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token file {path}: {cause}; name another with service.doors.mcp.token_file")]
    File { path: PathBuf, cause: io::Error },
    #[error("the token file {path} can be read by others (mode {mode:o}): `chmod 600 {path}`")]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "the token file {path} holds {found} characters, expected at least {SHORTEST}: remove it to get a new one"
    )]
    Short { path: PathBuf, found: usize },
}

/// The digest of a token. Comparing digests takes the same time for every input.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

/// A token, with its text if it is new.
pub(crate) struct FoundToken {
    pub(crate) token: Token,
    pub(crate) made: Option<String>,
}

impl Token {
    fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Reads the token from a file. If there is no file, makes a token and the file.
    pub(crate) fn of_file(path: &Path) -> Result<FoundToken, TokenError> {
        let failed = |cause| TokenError::File {
            path: path.to_owned(),
            cause,
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
                    made: None,
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
                    made: Some(text),
                })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether an `Authorization` header has the token.
    pub(crate) fn is_shown(&self, header: Option<&HeaderValue>) -> bool {
        let shown = header.and_then(|value| value.to_str().ok()?.split_once(' '));
        let Some((_, text)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return false;
        };
        let Self(shown) = Self::of(text.trim());
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
        let found = Token::of_file(&path).expect("a token");
        let text = found.made.expect("it was made");
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        let again = Token::of_file(&path).expect("a token");
        assert_eq!(again.made, None);
        for (shown, right) in [
            (format!("Bearer {text}"), true),
            (format!("bearer  {text}"), true),
            (format!("Basic {text}"), false),
            (format!("Bearer {text}x"), false),
            (text, false),
        ] {
            let header = HeaderValue::from_str(&shown).expect("a header");
            assert_eq!(again.token.is_shown(Some(&header)), right, "{shown}");
        }
        assert!(!again.token.is_shown(None));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("permissions");
        assert!(matches!(
            Token::of_file(&path),
            Err(TokenError::Open { mode: 0o640, .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        fs::write(&path, "short\n").expect("a file");
        assert!(matches!(
            Token::of_file(&path),
            Err(TokenError::Short { found: 5, .. })
        ));
    }
}
