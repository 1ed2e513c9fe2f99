//! The process that makes and plays a pipeline, as the toolbox sees it.
//!
//! Starts it, and knows to which element its crash is due. Read [`begin`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::{ToolError, Value};
use ovos_toolbox_sdk::tokio::sync::oneshot;
use ovos_toolbox_sdk::{RoleEvent, RoleProcess};

use crate::config::Section;
use crate::order::{Assignment, Command, MadePipeline, Word};
use crate::sound::environment;
use crate::worker::ROLE;

/// Where the answer to a command goes.
pub(super) type Reply = oneshot::Sender<Result<Value, ToolError>>;

/// What the thread of an instance hears.
pub(super) enum Input {
    /// The process says something.
    Word(Word),
    /// The process has ended, and this is how.
    Gone(String),
    /// A caller's command.
    Command(Command, Option<Reply>),
}

/// Size of the thread's queue. While it is full, the process waits, and commands are refused.
pub(super) const MOST_WAITING: usize = 256;

/// How long a pipeline may take to be made: plugins are loaded, host names resolved, and the first time the registry is built.
const MAKING: Duration = Duration::from_secs(80);

/// A process that has made its pipeline.
pub(super) struct Work {
    pub(super) process: Arc<RoleProcess>,
    pub(super) made: MadePipeline,
}

/// Starts a process and tells it what to make. It answers through `inputs`.
///
/// # Errors
/// It cannot be started.
pub(super) fn begin(
    config: &Section,
    scratch: &Path,
    pipeline: String,
    inputs: SyncSender<Input>,
) -> Result<Arc<RoleProcess>, ToolError> {
    let hear = move |event| {
        // Fails when nothing waits for it any more.
        _ = inputs.send(match event {
            RoleEvent::Word(word) => Input::Word(word),
            RoleEvent::End(how) => Input::Gone(how),
        });
    };
    let process = RoleProcess::start::<Word>(ROLE, &environment(scratch), hear)
        .map_err(|error| ToolError::busy(format!("cannot start a process for the pipeline: {error}")))?;
    let config = config.clone();
    // If it has ended already, its end is heard.
    _ = process.tell(&Assignment { config, pipeline });
    Ok(Arc::new(process))
}

/// Waits until a pipeline is made. `command` gets the commands that come meanwhile, and says whether to go on.
///
/// # Errors
/// Why there is none; `None`: `command` ended it. The process has ended or is being killed.
pub(super) fn made(
    process: &RoleProcess,
    inputs: &Receiver<Input>,
    mut command: impl FnMut(Command, Option<Reply>) -> bool,
) -> Result<MadePipeline, Option<ToolError>> {
    let until = Instant::now() + MAKING;
    let failure = loop {
        match inputs.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Input::Word(Word::Made(Ok(pipeline)))) => return Ok(pipeline),
            Ok(Input::Word(Word::Made(Err(error)))) => break Some(error),
            Ok(Input::Word(_)) => {}
            Ok(Input::Command(order, reply)) => {
                if !command(order, reply) {
                    break None;
                }
            }
            Ok(Input::Gone(how)) => {
                let text = format!(
                    "the pipeline's process ended ({}) while the pipeline was being built",
                    or_well(&how)
                );
                return Err(Some(ToolError::new("PipelineError", text)));
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let text = format!(
                    "the pipeline was not made within {} s: an element is blocked",
                    MAKING.as_secs()
                );
                break Some(ToolError::new("TimeoutError", text));
            }
        }
    };
    process.kill();
    wait_gone(inputs);
    Err(failure)
}

/// Waits until a process that was killed has ended: what it held is free then.
pub(super) fn wait_gone(inputs: &Receiver<Input>) {
    while let Ok(input) = inputs.recv() {
        match input {
            Input::Gone(_) => return,
            Input::Command(_, Some(reply)) => {
                // The caller may be gone.
                _ = reply.send(Err(ToolError::busy("not possible now: the pipeline is starting")));
            }
            Input::Word(_) | Input::Command(_, None) => {}
        }
    }
}

fn or_well(how: &str) -> &str {
    if how.is_empty() { "exit code 0" } else { how }
}

/// How far the elements of a pipeline are: what a crash is attributed to.
#[derive(Debug, Default)]
pub(super) struct Progress {
    order: Vec<String>,
    reached: HashMap<String, u8>,
    threads: Vec<String>,
}

impl Progress {
    pub(super) fn new(order: Vec<String>) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    pub(super) fn reached(&mut self, element: String, state: u8) {
        let highest = self.reached.entry(element).or_default();
        *highest = state.max(*highest);
    }

    pub(super) fn thread(&mut self, element: String) {
        if !self.threads.contains(&element) {
            self.threads.push(element);
        }
    }

    /// The element to which the end of the process is probably due, and what is known of the end.
    pub(super) fn crash(&self, how: &str) -> (String, String) {
        let state = |name: &String| self.reached.get(name).copied().unwrap_or(1);
        let ended = format!("its process ended: {}", or_well(how));
        let least = self.order.iter().map(state).min().unwrap_or(1);
        // GStreamer takes all elements to a state, in order, before it takes the first to the next one.
        let starting = self.order.iter().find(|name| state(name) == least && least < 4);
        match (starting, &self.threads[..]) {
            (Some(element), []) => {
                let text = format!("{ended} while '{element}' was being started");
                (element.clone(), text)
            }
            (_, [element]) => (
                element.clone(),
                format!("{ended} while '{element}', the only element with a thread, was running"),
            ),
            (Some(element), threads) => (
                "pipeline".to_owned(),
                format!(
                    "{ended} while '{element}' was being started and the threads of {} ran",
                    threads.join(", ")
                ),
            ),
            (None, threads) => (
                "pipeline".to_owned(),
                format!("{ended} while the threads of {} ran", threads.join(", ")),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_attributed_to_what_was_under_way() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (reached, threads, element, expected) in [
            (&[][..], &[][..], "sink", "'sink' was being started"),
            (&[("sink", 2)], &[], "queue", "'queue' was being started"),
            (
                &[("sink", 2), ("queue", 2), ("source", 2), ("sink", 3)],
                &["queue"],
                "queue",
                "the only element with a thread",
            ),
            (
                &[("sink", 4), ("queue", 4), ("source", 4)],
                &["queue", "source"],
                "pipeline",
                "threads of queue, source ran",
            ),
        ] {
            let mut progress = Progress::new(names(&["sink", "queue", "source"]));
            for (element, state) in reached {
                progress.reached((*element).to_owned(), *state);
            }
            for element in threads {
                progress.thread((*element).to_owned());
            }
            let (found, text) = progress.crash("signal 11 (SIGSEGV)");
            assert_eq!(found, element, "{text}");
            assert!(text.contains(expected) && text.contains("SIGSEGV"), "{text}");
        }
    }
}
