//! Queries to video devices through Video4Linux.

mod kernel;
mod probe;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

pub(super) use kernel::Kernel;
pub(crate) use probe::{Answer, Format, Incoming, Probe, Signal};

/// Queries devices except those that stream: some vendors' drivers stop a stream when another process opens and closes
/// the device.
pub(super) struct Inquiry {
    probe: Box<dyn Probe>,
    answers: Mutex<HashMap<PathBuf, Answer>>,
}

impl Inquiry {
    pub(super) fn new(probe: impl Probe + 'static) -> Self {
        Self {
            probe: Box::new(probe),
            answers: Mutex::default(),
        }
    }

    /// The device's answer, or an earlier answer if one of our pipelines holds the device (`held`).
    ///
    /// # Errors
    /// It cannot be opened, or is no video device.
    pub(super) fn ask(&self, path: &Path, held: bool) -> io::Result<Answer> {
        let answers = || self.answers.lock();
        if held {
            let recording = answers().get(path).cloned();
            return Ok(recording.unwrap_or(Answer {
                captures: true,
                ..Answer::default()
            }));
        }
        // Without the lock: a device may answer slowly.
        let answer = self.probe.ask(path)?;
        answers().insert(path.to_owned(), answer.clone());
        Ok(answer)
    }
}
