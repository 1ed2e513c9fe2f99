//! The state of a toolbox that the keeper of its process needs. Read [`KeeperView`].

use std::time::Instant;

use protocol::Functions;

use super::state::Peer;

/// The number of last lines of a process that are reported when it dies.
const LAST_LINES: usize = 5;

/// The state of a toolbox that its keeper needs.
#[derive(Debug)]
pub(crate) struct KeeperView {
    /// A caller waits for the toolbox, or something moves.
    pub(crate) busy: bool,
    /// The oldest halt without an answer.
    pub(crate) halted: Option<Instant>,
    pub(crate) given_up: Option<String>,
    pub(crate) closing: Option<Instant>,
    pub(crate) closed: Option<(bool, Instant)>,
    pub(crate) functions: Option<Functions>,
    /// Whether the order to open was sent.
    pub(crate) opens: bool,
}

impl Peer {
    pub(crate) fn keeper_view(&self) -> KeeperView {
        let state = self.lock();
        let halted = state.commands.values().filter_map(|command| command.halted).min();
        let idle = state.asks.is_empty()
            && state.commands.is_empty()
            && state.moving.is_empty()
            && state.runs.is_empty();
        KeeperView {
            busy: !idle,
            halted,
            given_up: state.given_up.clone(),
            closing: state.closing,
            closed: state.closed,
            functions: state.functions,
            opens: state.opens,
        }
    }

    /// Whether something moves, as far as the service knows.
    pub(crate) fn is_moving(&self) -> bool {
        !self.lock().moving.is_empty()
    }

    /// Keeps a line, because it may be one of the last.
    pub(crate) fn keep_line(&self, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            let mut state = self.lock();
            if state.lines.len() >= LAST_LINES {
                state.lines.pop_front();
            }
            // Enough of the line to recognize it.
            state.lines.push_back(line.chars().take(300).collect());
        }
    }

    pub(crate) fn last_lines(&self) -> String {
        let lines: Vec<String> = self.lock().lines.iter().cloned().collect();
        lines.join(" | ")
    }

    /// Asks the keeper to end the process.
    pub(crate) fn give_up(&self, why: String) {
        self.lock().given_up = Some(why);
    }
}
