//! The newest message of a topic that a robot sends all the time.
//!
//! Owns the message and when it came. Read [`Latest`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use super::Participant;
use crate::ros::{LastWord, RosError};

/// The newest message of one topic.
pub(crate) struct Latest<M> {
    message: Arc<Mutex<Option<M>>>,
    last_word: LastWord,
}

impl<M: DeserializeOwned + Send + 'static> Latest<M> {
    /// Hears a topic by its ROS name.
    pub(crate) fn of(participant: &Participant, topic: &str, kind: (&str, &str)) -> Result<Self, RosError> {
        let (message, last_word) = (Arc::new(Mutex::new(None)), LastWord::default());
        let (heard, word) = (Arc::clone(&message), last_word.clone());
        participant.subscribe(topic, kind, false, move |message: M| {
            word.heard();
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        })?;
        Ok(Self { message, last_word })
    }
}

impl<M> Latest<M> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<M>> {
        // Every change is one assignment.
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the robot spoke here and does not any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.last_word.is_silent()
    }
}
