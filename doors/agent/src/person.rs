//! The person at the terminal: a key stops the run, and questions are answered with y and n.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::end::End;
use crate::interrupt::Interrupt;

/// How long a question is shown before a yes answers it. An earlier yes was typed before the question could be read, for
/// example because a key was pressed twice.
const READ: Duration = Duration::from_millis(750);

/// The person at the terminal.
#[derive(Clone, Default)]
pub(crate) struct Person(Arc<PersonState>);

#[derive(Default)]
struct PersonState {
    /// The question that the next key answers.
    waiting: Mutex<Option<Question>>,
    /// Held while a question is shown: a key always answers the question that was shown last.
    turn: tokio::sync::Mutex<()>,
}

struct Question {
    shown: Instant,
    answer: oneshot::Sender<bool>,
}

/// The terminal, which delivers each key as it is pressed. When this is dropped, the terminal returns to its earlier mode.
pub(crate) struct Keys {
    terminal: File,
    before: Termios,
}

impl Drop for Keys {
    fn drop(&mut self) {
        _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// The source of keys.
pub(crate) enum Source {
    /// A terminal, with a person who can be asked.
    Terminal {
        person: Person,
        /// Held for as long as keys are read.
        _keys: Keys,
    },
    /// A program at stdin, which can stop the run with the same keys.
    Pipe,
    /// Nothing.
    Nowhere,
}

impl Source {
    /// Listens for keys from now on; a stop key interrupts the run. The thread that reads lives as long as the program.
    pub(crate) fn listen(interrupt: &Interrupt) -> Self {
        let person = Person::default();
        match terminal() {
            Ok(keys) => {
                let Ok(reader) = keys.terminal.try_clone() else {
                    return Self::Nowhere;
                };
                read_in_thread(reader, interrupt.clone(), person.clone());
                Self::Terminal { person, _keys: keys }
            }
            Err(_) if !io::stdin().is_terminal() => {
                read_in_thread(io::stdin(), interrupt.clone(), person);
                Self::Pipe
            }
            Err(error) => {
                tracing::debug!(%error, "no keys");
                Self::Nowhere
            }
        }
    }

    pub(crate) fn person(&self) -> Option<&Person> {
        match self {
            Self::Terminal { person, .. } => Some(person),
            Self::Pipe | Self::Nowhere => None,
        }
    }
}

/// Opens the terminal of this program, even if its stdin is something else.
fn terminal() -> io::Result<Keys> {
    let terminal = File::open("/dev/tty")?;
    // The system would stop a background program that changes the terminal.
    if tcgetpgrp(&terminal)? != getpgrp() {
        return Err(io::Error::other("this program is in the background"));
    }
    let before = tcgetattr(&terminal)?;
    let mut keys = before.clone();
    keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Now, &keys)?;
    Ok(Keys { terminal, before })
}

fn read_in_thread(mut reader: impl Read + Send + 'static, interrupt: Interrupt, person: Person) {
    let read = move || {
        // One byte at a time, so that a key takes effect when it is pressed.
        let mut key = [0];
        while matches!(reader.read(&mut key), Ok(1)) {
            match key[0] {
                b' ' | b's' | b'S' => interrupt.raise(End::Operator("a key was pressed".to_owned())),
                b'y' | b'Y' => person.says(true),
                b'n' | b'N' => person.says(false),
                _ => {}
            }
        }
    };
    // Without the thread there are no keys, but Ctrl-C still works.
    _ = thread::Builder::new().name("keys".to_owned()).spawn(read);
}

impl Person {
    fn waiting(&self) -> MutexGuard<'_, Option<Question>> {
        self.0.waiting.lock()
    }

    fn says(&self, yes: bool) {
        let answers = |question: &mut Question| !yes || question.shown.elapsed() >= READ;
        if let Some(question) = self.waiting().take_if(answers) {
            // The asker may have stopped waiting for the answer.
            _ = question.answer.send(yes);
        }
    }

    /// Asks when no other question is shown, and waits for y or n, at most this long in total. `ask` shows what has to be
    /// confirmed.
    ///
    /// # Cancel safety
    /// Safe: the question is forgotten.
    pub(crate) async fn confirms(&self, longest: Duration, ask: impl FnOnce()) -> Option<bool> {
        let question = async {
            let _turn = self.0.turn.lock().await;
            let (sender, answer) = oneshot::channel();
            ask();
            *self.waiting() = Some(Question {
                shown: Instant::now(),
                answer: sender,
            });
            answer.await.ok()
        };
        timeout(longest, question).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_answers_the_question_that_was_shown_last_and_no_other() {
        let person = Person::default();
        let prompts = Mutex::new(Vec::new());
        let longest = Duration::from_secs(60);
        let ask = |question: &'static str, answer: bool| {
            let (person, prompts) = (&person, &prompts);
            let show = move || {
                prompts.lock().push(question);
                // The keys are pressed while the question is shown.
                let person = person.clone();
                tokio::spawn(async move {
                    // This is too early for a yes.
                    person.says(true);
                    tokio::time::sleep(READ).await;
                    person.says(answer);
                });
            };
            async move { person.confirms(longest, show).await }
        };
        let answers = join(ask("arm", true), ask("drone", false)).await;
        assert_eq!(answers, (Some(true), Some(false)));
        assert_eq!(*prompts.lock(), ["arm", "drone"]);
        // A key that was pressed without a question does not answer the next question.
        person.says(true);
        let late = person.confirms(Duration::ZERO, || {}).await;
        assert_eq!(late, None);
    }
}
