//! The newest message of a topic that a robot sends all the time.
//!
//! Owns the message and when it came. Read [`Latest`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use ros_graph::dds::SETTLE;
use ros_graph::inbox::Unread;
use serde::de::DeserializeOwned;

use super::participant::{Participant, read};
use crate::ros::error::RosError;

/// How long a robot that sends all the time may keep quiet before it counts as silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// A message, and when it came.
pub(crate) struct Arrival<M> {
    pub(crate) message: M,
    pub(crate) at: Instant,
}

/// The newest message of one topic, which is read when it is asked for: a robot says hundreds in a second.
pub(crate) struct Latest<M> {
    unread: Arc<Mutex<Option<(Instant, Unread)>>>,
    arrival: Mutex<Option<Arrival<M>>>,
    last_word: LastWord,
}

impl<M: DeserializeOwned> Latest<M> {
    /// Hears a topic by its ROS name.
    pub(crate) fn of(participant: &Participant, topic: &str, of: &str) -> Result<Self, RosError> {
        let (unread, last_word) = (Arc::default(), LastWord::default());
        let (slot, word) = (Arc::clone(&unread), last_word.clone());
        participant.follow(topic, of, false, move |message| {
            word.note();
            *lock(&slot) = Some((Instant::now(), message));
        })?;
        Ok(Self {
            unread,
            arrival: Mutex::default(),
            last_word,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Arrival<M>>> {
        let mut arrival = lock(&self.arrival);
        let unread = lock(&self.unread).take();
        if let Some((at, unread)) = unread {
            match read(unread) {
                Ok(message) => *arrival = Some(Arrival { message, at }),
                Err(error) => tracing::warn!(error, "a message that cannot be read"),
            }
        }
        arrival
    }

    /// Drops the message: the robot has to send another one.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    /// Whether the robot sent messages on this topic and does not any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.last_word.is_silent()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
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
    pub(crate) fn note(&self) {
        let now = Instant::now();
        let mut spoken = self.0.lock();
        let again = match *spoken {
            Some(before) if now.duration_since(before.last) > SILENCE => Some(now),
            Some(before) => before.again,
            None => None,
        };
        *spoken = Some(Spoken { last: now, again });
    }

    /// True where messages came and have stopped, or have begun again so recently that the robot may not hear yet: a
    /// restarted robot has to find our topics, and DDS still counts the readers of its old process.
    pub(crate) fn is_silent(&self) -> bool {
        let spoken = *self.0.lock();
        spoken.is_some_and(|spoken| {
            let young = spoken.again.is_some_and(|again| again.elapsed() < SETTLE);
            young || spoken.last.elapsed() > SILENCE
        })
    }
}
