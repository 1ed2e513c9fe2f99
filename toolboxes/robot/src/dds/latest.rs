//! The newest message of a topic that a robot sends all the time.
//!
//! Owns the message and when it came. Read [`Latest`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::{Participant, SETTLE};
use crate::ros::error::RosError;

/// The newest message of one topic.
pub(crate) struct Latest<M> {
    message: Arc<Mutex<Option<M>>>,
    last_word: LastWord,
}

impl<M: DeserializeOwned + Send + 'static> Latest<M> {
    /// Hears a topic by its ROS name.
    pub(crate) fn of(participant: &Participant, topic: &str, of: &str) -> Result<Self, RosError> {
        let (message, last_word) = (Arc::new(Mutex::new(None)), LastWord::default());
        let (heard, word) = (Arc::clone(&message), last_word.clone());
        participant.follow(topic, of, move |message: M| {
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

    /// Whether the robot sent messages on this topic and does not any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.last_word.is_silent()
    }
}

/// When a robot sent its last message. A robot that sends all the time and has fallen silent is away; DDS itself
/// notices that only after ten seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWord(Arc<Mutex<Option<Spoken>>>);

#[derive(Clone, Copy, Debug)]
struct Spoken {
    last: Instant,
    /// When the first message after a silence came.
    again: Option<Instant>,
}

impl LastWord {
    const SILENT: Duration = Duration::from_secs(1);

    pub(crate) fn heard(&self) {
        let now = Instant::now();
        let mut spoken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let again = match *spoken {
            Some(before) if now.duration_since(before.last) > Self::SILENT => Some(now),
            Some(before) => before.again,
            None => None,
        };
        *spoken = Some(Spoken { last: now, again });
    }

    /// True where messages came and have stopped, or have begun again so recently that the robot may not hear yet: a
    /// restarted robot has to find our topics, and DDS still counts the readers of its old process.
    pub(crate) fn is_silent(&self) -> bool {
        let spoken = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spoken.is_some_and(|spoken| {
            let young = spoken.again.is_some_and(|again| again.elapsed() < SETTLE);
            young || spoken.last.elapsed() > Self::SILENT
        })
    }
}
