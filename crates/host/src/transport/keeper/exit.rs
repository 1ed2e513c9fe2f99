//! The end of a toolbox's process: decides what it means, reports it, and brings the hardware to rest. Read
//! [`Keeper::exited`].

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ovos_toolbox_wire::{Event, Severity};

use super::process::Keeper;
use super::safe_stop;
use super::verdict::Last;
use crate::process::spawner::signal_name;
use crate::transport::peer::{Death, End};

/// How long it may take to hear what a process sent before it ended.
const REST: Duration = Duration::from_millis(200);

/// The exit code of a program that wants to be started again (EX_TEMPFAIL).
const REPLACE: i32 = 75;

impl Keeper {
    /// The facts about the process that has ended.
    fn last(&self) -> Last {
        let view = self.peer.keeper_view();
        Last {
            closed: view.closed.map(|(in_time, _)| in_time),
            closing: view.closing.is_some(),
            killed: self.killed.is_some(),
            moving: self.peer.is_moving(),
            opens: view.opens,
            functions: view.functions,
        }
    }

    /// Handles the end of the process.
    pub(super) fn exited(mut self, status: Option<ExitStatus>) {
        // What moved when the process ended. It may include a run whose end is still in the socket; a needless stop
        // does no harm.
        let before = self.last();
        if before.may_have_closed() {
            self.hear_the_rest();
        }
        // The toolboxes of a shared process drive nothing that moves.
        // A toolbox on another machine is brought to rest there.
        let is_elsewhere = self.sockets.remote.load(Ordering::SeqCst);
        let needs_safe_stop =
            self.settings.members.is_none() && !is_elsewhere && self.last().needs_safe_stop();
        let fresh = needs_safe_stop
            .then(|| safe_stop::start(&self.settings, self.id()))
            .flatten();
        self.hear_the_rest();
        let last = Last {
            moving: before.moving,
            ..self.last()
        };
        let end = match last.closed_in_time() {
            Some(in_time) => {
                if last.closed.is_none() {
                    tracing::error!(
                        toolbox = self.id(),
                        generation = self.peer.origin.generation,
                        reason = self.reason(status),
                        "the toolbox's process exited while it was being closed"
                    );
                }
                End::Closed(in_time)
            }
            None => End::Died(Death {
                reason: self.reason(status),
                moving: last.moving,
                asked: self.asks_to_be_replaced(status),
            }),
        };
        if last.latches() {
            // The keeper latches, not the manager: it has to happen before the end is published and something else
            // could start.
            self.latch(&self.reason(status));
        }
        if let Some(members) = &self.settings.members {
            members.ended(&end);
        }
        self.peer.ended(end);
        if let Some(fresh) = fresh {
            safe_stop::wait(fresh, self.id());
        }
        self.peer.rested.send_replace(true);
        if status.is_none() {
            // Reaps the process when the kernel lets it end.
            _ = self.child.wait();
        }
    }

    /// Reads what the process sent before it ended.
    fn hear_the_rest(&mut self) {
        self.lines.read(&self.peer);
        self.reader.read_rest(REST);
    }

    /// Whether a program has ended because it wants to be started again, which is no failure.
    fn asks_to_be_replaced(&self, status: Option<ExitStatus>) -> bool {
        let by_itself = self.killed.is_none() && self.settings.file.executable().is_some();
        by_itself && status.and_then(|status| status.code()) == Some(REPLACE)
    }

    fn latch(&self, reason: &str) {
        let event = Event {
            kind: "latched".to_owned(),
            severity: Severity::Error,
            data: Some(serde_json::json!({ "reason": format!("it died during motion: {reason}") })),
        };
        self.peer.services.event(&self.peer.origin, event);
    }

    fn reason(&self, status: Option<ExitStatus>) -> String {
        let ended = match (&self.killed, status) {
            (Some((reason, _)), _) => format!("its process was killed: {reason}"),
            (None, Some(status)) => match (status.signal(), status.code()) {
                (Some(signal), _) => {
                    format!("its process was ended by signal {signal}{}", signal_name(signal))
                }
                (None, Some(code)) => format!("its process ended with exit code {code}"),
                (None, None) => "its process ended".to_owned(),
            },
            (None, None) => "its process is gone".to_owned(),
        };
        match self.peer.last_lines() {
            lines if lines.is_empty() => ended,
            lines => format!("{ended}; its last lines: {lines}"),
        }
    }
}
