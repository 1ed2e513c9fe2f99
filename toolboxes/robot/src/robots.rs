//! The robots of the configuration.
//!
//! Owns the choice of the robot for a call, and what all robots share. Read [`Robots`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::Semaphore;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::adapter::ActionError;
use crate::config::Config;
use crate::error::tool_error;
use crate::recogniser::Recogniser;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// After a question without an answer, how long the toolbox asks no further question, so that a look at an unknown
/// thing does not wait for the timeout each time.
const UNANSWERED: Duration = Duration::from_secs(10);

/// How many pictures are read at a time, of all robots: each may take 256 MiB.
const PICTURES: usize = 1;

/// The open toolbox.
pub struct Robots {
    units: Units<Unit>,
    data_dir: Option<PathBuf>,
    recognition_timeout: Duration,
    unanswered_since: Mutex<Option<Instant>>,
    recogniser: Arc<Recogniser>,
    eyes: Arc<Semaphore>,
}

impl Robots {
    /// The robots of a configuration.
    pub(crate) fn new(units: Vec<Unit>, config: &Config, recogniser: Arc<Recogniser>) -> Self {
        Self {
            units: Units::new("robot", units, |unit| &unit.name),
            data_dir: config.data_dir(),
            recognition_timeout: Duration::from_millis(config.recognition_timeout_ms.clamp(100, 9_000)),
            unanswered_since: Mutex::default(),
            recogniser,
            eyes: Arc::new(Semaphore::new(PICTURES)),
        }
    }

    /// The robots, sorted by name.
    #[must_use]
    pub fn units(&self) -> &Units<Unit> {
        &self.units
    }

    /// The robot with this name; without a name, the only robot.
    ///
    /// # Errors
    /// No robot has this name, or there are several robots and no name is given.
    pub fn unit(&self, name: Option<&str>) -> Result<&Unit, ToolError> {
        Ok(self.units.find(name)?)
    }

    /// The robot that arguments are for, and the rest of the arguments.
    ///
    /// # Errors
    /// As [`Robots::unit`], or the rest is not what the tool takes.
    pub fn unit_of<A: DeserializeOwned>(&self, mut args: Object) -> Result<(&Unit, A), ToolError> {
        let unit = self.units.take(&mut args)?;
        let args = serde_json::from_value(Value::Object(args)).map_err(ToolError::bad_args)?;
        Ok((unit, args))
    }

    /// Where saved configurations are.
    ///
    /// # Errors
    /// Neither the configuration nor the environment says where.
    pub fn data_dir(&self) -> Result<&Path, ToolError> {
        self.data_dir.as_deref().ok_or_else(|| {
            ToolError::msg("no place for saved configurations: set `data_dir` in the section robot")
        })
    }

    /// How long the answer to a question may take.
    #[must_use]
    pub fn recognition_timeout(&self) -> Duration {
        self.recognition_timeout
    }

    /// Whether a question is worth asking: the last one was answered, or is long enough ago.
    #[must_use]
    pub fn is_worth_asking(&self) -> bool {
        let since = self.unanswered_since.lock();
        since.is_none_or(|since| since.elapsed() >= UNANSWERED)
    }

    /// Remembers whether a handler has answered.
    pub fn answered(&self, answered: bool) {
        let mut since = self.unanswered_since.lock();
        *since = (!answered).then(Instant::now);
        drop(since);
        if answered {
            self.recogniser.answered();
        }
    }

    /// The handler that recognises people.
    #[must_use]
    pub(crate) fn recogniser(&self) -> &Arc<Recogniser> {
        &self.recogniser
    }

    /// The right to read a picture, which a thread keeps until it has read it.
    #[must_use]
    pub(crate) fn eyes(&self) -> &Arc<Semaphore> {
        &self.eyes
    }

    /// An emergency stop of every robot.
    ///
    /// # Errors
    /// A robot could not be told to stop; the others were told.
    pub fn halt_all(&self) -> Result<(), ToolError> {
        each(self.units.iter().map(|unit| unit.halt(&Subsystem::EACH, true)))
    }

    /// Lets every robot move again.
    ///
    /// # Errors
    /// A robot refuses; the others are reset, and nothing moves.
    pub fn reset_all(&self) -> Result<(), ToolError> {
        each(self.units.iter().map(Unit::reset))
    }
}

/// Takes every result and returns the first error.
pub(crate) fn each(results: impl Iterator<Item = Result<(), ActionError>>) -> Result<(), ToolError> {
    let results: Vec<_> = results.collect();
    results.into_iter().collect::<Result<(), _>>().map_err(tool_error)
}
