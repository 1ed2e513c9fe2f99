//! What the conversations of one dialect have in common, and how they can fail.

use std::path::PathBuf;
use std::sync::Arc;

use config::VoiceDoor;
use door::Door;
use rustls::ClientConfig;

use crate::claim::ClaimError;
use crate::dialect::{Dialect, Key, Opening, Target};
use crate::socket::DialError;

/// What conversations of one dialect have in common.
pub(crate) struct Line {
    pub(crate) door: Arc<Door>,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) key: Option<Key>,
    pub(crate) trust: Arc<ClientConfig>,
    pub(crate) config: VoiceDoor,
    /// Where claims are kept.
    pub(crate) claims: PathBuf,
}

/// Why a conversation did not begin, or ended otherwise than by its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChatError {
    #[error("{0}")]
    Target(String),
    #[error("{0}")]
    Claim(#[from] ClaimError),
    #[error("{0}")]
    Dial(#[from] DialError),
    #[error("the socket was lost, and for two minutes none could be opened that lived")]
    GivenUp,
}

impl Line {
    /// How a socket to this target is opened.
    pub(crate) fn opening(&self, target: &Target) -> Result<Opening, ChatError> {
        let opening = self.dialect.open(target, self.key.as_ref());
        opening.map_err(ChatError::Target)
    }
}
