//! The parts that all conversations of one dialect share, and their errors.

use std::path::PathBuf;
use std::sync::Arc;

use client::Client;
use config::VoiceDoor;
use door::Door;
use rustls::ClientConfig;

use crate::claim::ClaimError;
use crate::dialect::{Dialect, Key, Opening, Target};
use crate::socket::DialError;

/// The parts that all conversations of one dialect share.
pub(crate) struct Line {
    pub(crate) door: Arc<Door>,
    /// The client that makes the calls: it says for whom they are.
    pub(crate) client: Client,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) key: Option<Key>,
    pub(crate) trust: Arc<ClientConfig>,
    pub(crate) config: VoiceDoor,
    /// The folder of claims.
    pub(crate) claims: PathBuf,
}

/// Why a conversation could not begin, or broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChatError {
    #[error("{0}")]
    Target(String),
    #[error("{0}")]
    Claim(#[from] ClaimError),
    #[error("{0}")]
    Dial(#[from] DialError),
    #[error("the connection was lost, and none lasted for the next two minutes")]
    GivenUp,
}

impl Line {
    /// Returns how a socket for this target is opened.
    pub(crate) fn opening(&self, target: &Target) -> Result<Opening, ChatError> {
        let opening = self.dialect.open(target, self.key.as_ref());
        opening.map_err(ChatError::Target)
    }
}
