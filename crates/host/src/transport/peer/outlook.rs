//! What the keeper of a toolbox's process needs to know of what is under way. Read [`Outlook`].

use std::time::Instant;

use protocol::Functions;

use super::Peer;

/// Lines of a process that are told when it dies.
const LAST_LINES: usize = 5;

/// What is under way.
#[derive(Debug)]
pub(crate) struct Outlook {
    /// A caller waits for the toolbox, or something moves.
    pub(crate) busy: bool,
    /// The oldest halt without an answer.
    pub(crate) halted: Option<Instant>,
    pub(crate) given_up: Option<String>,
    pub(crate) closing: Option<Instant>,
    pub(crate) closed: Option<(bool, Instant)>,
    pub(crate) functions: Option<Functions>,
    /// It was told to open.
    pub(crate) opens: bool,
}

impl Peer {
    pub(crate) fn outlook(&self) -> Outlook {
        let state = self.lock();
        let halted = state.commands.values().filter_map(|command| command.halted).min();
        let idle = state.asks.is_empty()
            && state.commands.is_empty()
            && state.moving.is_empty()
            && state.runs.is_empty();
        Outlook {
            busy: !idle,
            halted,
            given_up: state.given_up.clone(),
            closing: state.closing,
            closed: state.closed,
            functions: state.functions,
            opens: state.opens,
        }
    }

    /// Whether something moves, as far as is known.
    pub(crate) fn is_moving(&self) -> bool {
        !self.lock().moving.is_empty()
    }

    /// Keeps a line for the case that it is one of the last.
    pub(crate) fn keep_line(&self, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            let mut state = self.lock();
            if state.lines.len() >= LAST_LINES {
                state.lines.pop_front();
            }
            // Enough to know what it was about.
            state.lines.push_back(line.chars().take(300).collect());
        }
    }

    pub(crate) fn last_lines(&self) -> String {
        let lines: Vec<String> = self.lock().lines.iter().cloned().collect();
        lines.join(" | ")
    }

    /// Has the keeper end its process.
    pub(crate) fn give_up(&self, why: String) {
        self.lock().given_up = Some(why);
    }
}
