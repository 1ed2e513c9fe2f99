//! Decides what is done about a toolbox's process.
//!
//! Pure: facts in, decisions out. The keeper collects the facts and carries out the decisions. Read [`decide`], then
//! [`Last`].

use std::time::Duration;

use protocol::Functions;

/// How often a heartbeat is sent to a child while a caller waits for it.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// As [`HEARTBEAT`], for a process that moves nothing and is not killed for silence.
const SLOW_HEARTBEAT: Duration = Duration::from_secs(1);
/// How often the limits are checked while a halt is under way.
const CLOSE_LOOK: Duration = Duration::from_millis(20);
/// How often the memory of a child with a memory limit is read.
pub(super) const MEMORY_LOOK: Duration = Duration::from_secs(1);
/// How long a process has to end after its toolbox was closed, and after it was killed.
const EXIT: Duration = Duration::from_millis(500);
/// A process that dies closes its connections a moment before it is gone. A process that still exists after this time
/// has closed them while alive.
const LAST_MOMENT: Duration = Duration::from_millis(50);
/// If a child is late because its threads wait for a processor, the limit is extended by that time, up to this many
/// times the limit. On so busy a machine a fresh process would be no faster; but a child that itself causes the load is
/// not granted more.
const MOST_PATIENCE: u32 = 3;

/// The limits of a process.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) halt: Duration,
    pub(super) silence: Duration,
    pub(super) close: Duration,
    pub(super) memory_mb: Option<u64>,
    /// Whether silence is only reported and is no reason to end the process.
    pub(super) bears_silence: bool,
}

impl Limits {
    fn heartbeat(&self) -> Duration {
        if self.bears_silence {
            SLOW_HEARTBEAT
        } else {
            HEARTBEAT
        }
    }
}

/// The facts about a process that has not ended. A duration is the time since the fact became true.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The process was killed.
    pub(super) killed: Option<Duration>,
    /// Nothing can be received from the process any more; the text is the reason.
    pub(super) broken: Option<(String, Duration)>,
    /// The process did not do its task; the text says which.
    pub(super) given_up: Option<String>,
    /// The oldest halt without an answer.
    pub(super) halted: Option<Wait>,
    /// The oldest heartbeat without an answer.
    pub(super) unanswered: Option<Wait>,
    /// It was asked to close.
    pub(super) closing: Option<Duration>,
    /// It said that it has closed.
    pub(super) closed: Option<Duration>,
    /// Whether the process has to answer heartbeats.
    pub(super) armed: bool,
    /// The last heartbeat was sent.
    pub(super) beat: Option<Duration>,
    /// Whether it was reported that heartbeats are not answered.
    pub(super) silence_reported: bool,
    /// The memory that the process used when it was last read, in MiB.
    pub(super) used_mb: u64,
}

/// A wait for an answer of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    pub(super) lasted: Duration,
    /// How long the threads of the process had no processor in that time, in total. Read only when the wait exceeds the
    /// limit.
    pub(super) starved: Duration,
}

impl Wait {
    fn is_late(self, limit: Duration) -> bool {
        self.lasted > limit + self.starved.min(limit * MOST_PATIENCE)
    }
}

/// What is done about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing is done until something happens or the time of [`next_look`] has passed.
    Wait,
    /// A heartbeat is sent, if anything needs the process to be alive.
    Beat,
    /// It is reported that the process is not reached, and why.
    Tell(String),
    /// The process is killed, for this reason.
    Kill(String),
    /// The process counts as ended, although the kernel has not ended it yet.
    GiveUp,
}

/// Decides about a process that has not ended.
pub(super) fn decide(facts: &Facts, limits: &Limits) -> Action {
    if let Some(since) = facts.killed {
        return if since > EXIT {
            Action::GiveUp
        } else {
            Action::Wait
        };
    }
    if let Some(reason) = reason_to_kill(facts, limits) {
        return Action::Kill(reason);
    }
    if limits.bears_silence
        && let Some(wait) = facts.unanswered
    {
        // A process that does not read gets no second heartbeat: heartbeats would pile up.
        let is_due = !facts.silence_reported && wait.is_late(limits.silence);
        return if is_due {
            Action::Tell(silent(limits))
        } else {
            Action::Wait
        };
    }
    let due = |since| since >= limits.heartbeat();
    let beat = facts.armed && facts.closed.is_none() && facts.beat.is_none_or(due);
    if beat { Action::Beat } else { Action::Wait }
}

fn reason_to_kill(facts: &Facts, limits: &Limits) -> Option<String> {
    let Limits {
        halt,
        silence,
        close,
        memory_mb,
        bears_silence,
    } = *limits;
    if let Some((reason, since)) = &facts.broken
        && facts.closed.is_none()
        && *since > LAST_MOMENT
    {
        return Some(reason.clone());
    }
    if facts.given_up.is_some() {
        return facts.given_up.clone();
    }
    if facts.halted.is_some_and(|wait| wait.is_late(halt)) {
        return Some(format!("it did not answer a halt within {} ms", halt.as_millis()));
    }
    if !bears_silence && facts.unanswered.is_some_and(|wait| wait.is_late(silence)) {
        return Some(silent(limits));
    }
    if let Some(since) = facts.closed {
        return (since > EXIT).then(|| "it did not end after its toolbox was closed".to_owned());
    }
    if facts.closing.is_some_and(|since| since > close) {
        return Some(format!("it did not close within {} s", close.as_secs_f64()));
    }
    let (used, limit) = (facts.used_mb, memory_mb?);
    (used > limit).then(|| format!("it used {used} MiB of memory; {limit} are allowed (limits.memory_mb)"))
}

fn silent(limits: &Limits) -> String {
    format!("it was silent for {} ms", limits.silence.as_millis())
}

/// How long the keeper may wait until it has to check the facts again; `None`: until something happens.
pub(super) fn next_look(facts: &Facts, limits: &Limits) -> Option<Duration> {
    let ends = facts.killed.is_some() || facts.broken.is_some() || facts.closed.is_some();
    if ends || facts.halted.is_some() {
        Some(CLOSE_LOOK)
    } else if facts.armed {
        let heartbeat = limits.heartbeat();
        // The next heartbeat is due only when this one is answered.
        let waits = limits.bears_silence && facts.unanswered.is_some();
        let due = heartbeat.saturating_sub(facts.beat.unwrap_or(heartbeat));
        Some(if waits { heartbeat } else { due })
    } else if facts.closing.is_some() {
        Some(HEARTBEAT)
    } else {
        limits.memory_mb.map(|_| MEMORY_LOOK)
    }
}

/// The facts about a process that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    /// Whether the process reported that it closed in time; `None` if it did not report that it closed.
    pub(super) closed: Option<bool>,
    /// It was asked to close.
    pub(super) closing: bool,
    /// Its keeper killed it.
    pub(super) killed: bool,
    /// Something moved.
    pub(super) moving: bool,
    /// It was told to open.
    pub(super) opens: bool,
    /// The functions of the toolbox; `None` if it was never open.
    pub(super) functions: Option<Functions>,
}

impl Last {
    /// Whether the socket may still have the report that the process closed, which is its last notice. Then the socket
    /// is read before anything else is decided. Nothing moves, so the read may take a moment.
    pub(super) fn may_have_closed(self) -> bool {
        self.closing && self.closed.is_none() && !self.killed && !self.moving
    }

    /// Whether a fresh process has to bring the hardware to rest. A toolbox that was told to open and never said which functions
    /// it has may have been opening its hardware.
    pub(super) fn needs_safe_stop(self) -> bool {
        self.opens && self.closed.is_none() && self.functions.is_none_or(|functions| functions.safe_stop)
    }

    /// Whether it closed in time; `None` if it died.
    pub(super) fn closed_in_time(self) -> Option<bool> {
        self.closed.or_else(|| self.closing.then_some(false))
    }

    /// Whether the toolbox is in emergency stop from now on: something moved, and the process neither closed as it was
    /// asked to nor ended by itself while it was being closed.
    pub(super) fn latches(self) -> bool {
        self.moving && self.closed.is_none() && (!self.closing || self.killed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        halt: ms(200),
        silence: ms(500),
        close: ms(10_000),
        memory_mb: Some(64),
        bears_silence: false,
    };

    const UNLIMITED: Limits = Limits {
        memory_mb: None,
        ..LIMITS
    };

    const fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    const fn since(number: u64) -> Option<Duration> {
        Some(ms(number))
    }

    const fn waits(lasted: u64, starved: u64) -> Option<Wait> {
        let (lasted, starved) = (ms(lasted), ms(starved));
        Some(Wait { lasted, starved })
    }

    fn broken(since: u64) -> Option<(String, Duration)> {
        Some(("it closed its data connection".to_owned(), ms(since)))
    }

    fn facts(set: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = Facts::default();
        set(&mut facts);
        facts
    }

    #[test]
    fn a_process_is_ended_for_the_first_reason_and_only_past_its_limit() {
        let hello = || Some("it did not say hello".to_owned());
        let (data, halt) = (
            "it closed its data connection",
            "it did not answer a halt within 200 ms",
        );
        for (facts, expected) in [
            (facts(|_| ()), "Wait"),
            (facts(|f| f.broken = broken(50)), "Wait"),
            (facts(|f| f.broken = broken(51)), data),
            // The process reported that it closed, so its connections may end.
            (facts(|f| (f.broken, f.closed) = (broken(51), since(9))), "Wait"),
            (facts(|f| f.given_up = hello()), "it did not say hello"),
            (facts(|f| (f.broken, f.given_up) = (broken(51), hello())), data),
            (facts(|f| f.halted = waits(200, 0)), "Wait"),
            (facts(|f| f.halted = waits(201, 0)), halt),
            // Time without a processor is granted, up to three times the limit.
            (facts(|f| f.halted = waits(700, 500)), "Wait"),
            (facts(|f| f.halted = waits(701, 500)), halt),
            (facts(|f| f.halted = waits(800, 9000)), "Wait"),
            (facts(|f| f.halted = waits(801, 9000)), halt),
            (facts(|f| f.unanswered = waits(500, 0)), "Wait"),
            (
                facts(|f| f.unanswered = waits(501, 0)),
                "it was silent for 500 ms",
            ),
            (
                facts(|f| (f.halted, f.unanswered) = (waits(201, 0), waits(501, 0))),
                halt,
            ),
            (facts(|f| f.closing = since(10_000)), "Wait"),
            (
                facts(|f| f.closing = since(10_001)),
                "it did not close within 10 s",
            ),
            (
                facts(|f| (f.closing, f.closed) = (since(10_001), since(500))),
                "Wait",
            ),
            (
                facts(|f| f.closed = since(501)),
                "it did not end after its toolbox was closed",
            ),
            (facts(|f| f.used_mb = 64), "Wait"),
            (
                facts(|f| f.used_mb = 65),
                "it used 65 MiB of memory; 64 are allowed (limits.memory_mb)",
            ),
            (facts(|f| (f.used_mb, f.closed) = (65, since(1))), "Wait"),
            (facts(|f| f.armed = true), "Beat"),
            (facts(|f| (f.armed, f.beat) = (true, since(99))), "Wait"),
            (facts(|f| (f.armed, f.beat) = (true, since(100))), "Beat"),
            (facts(|f| (f.armed, f.closed) = (true, since(1))), "Wait"),
            (facts(|f| (f.armed, f.closing) = (true, since(1))), "Beat"),
            // No new decision is made about a process that was killed.
            (facts(|f| (f.killed, f.broken) = (since(500), broken(51))), "Wait"),
            (facts(|f| (f.killed, f.armed) = (since(501), true)), "GiveUp"),
        ] {
            let decided = match decide(&facts, &LIMITS) {
                Action::Kill(reason) => reason,
                other => format!("{other:?}"),
            };
            assert_eq!(decided, expected, "{facts:?}");
        }
        assert_eq!(decide(&facts(|f| f.used_mb = 65), &UNLIMITED), Action::Wait);
    }

    #[test]
    fn the_silence_of_several_toolboxes_is_told_once_and_no_reason_to_end_them() {
        let limits = Limits {
            silence: ms(10_000),
            bears_silence: true,
            ..LIMITS
        };
        for (facts, expected, look) in [
            (facts(|f| f.armed = true), Action::Beat, 0),
            (
                facts(|f| (f.armed, f.beat) = (true, since(300))),
                Action::Wait,
                700,
            ),
            (
                facts(|f| (f.armed, f.beat, f.unanswered) = (true, since(9000), waits(9000, 0))),
                Action::Wait,
                1000,
            ),
            (
                facts(|f| (f.armed, f.beat, f.unanswered) = (true, since(10_001), waits(10_001, 0))),
                Action::Tell("it was silent for 10000 ms".to_owned()),
                1000,
            ),
            (
                facts(|f| (f.armed, f.unanswered, f.silence_reported) = (true, waits(99_000, 0), true)),
                Action::Wait,
                1000,
            ),
            (
                facts(|f| (f.unanswered, f.given_up) = (waits(99_000, 0), Some("x".to_owned()))),
                Action::Kill("x".to_owned()),
                1000,
            ),
        ] {
            assert_eq!(decide(&facts, &limits), expected, "{facts:?}");
            assert_eq!(next_look(&facts, &limits), since(look), "{facts:?}");
        }
    }

    #[test]
    fn it_is_looked_at_as_often_as_its_nearest_limit_needs() {
        for (facts, expected) in [
            (facts(|_| ()), 1000),
            (facts(|f| f.broken = broken(0)), 20),
            (facts(|f| f.killed = since(0)), 20),
            (facts(|f| f.closed = since(0)), 20),
            (facts(|f| (f.halted, f.armed) = (waits(0, 0), true)), 20),
            (facts(|f| f.armed = true), 0),
            (facts(|f| (f.armed, f.beat) = (true, since(30))), 70),
            (
                facts(|f| (f.armed, f.beat, f.closing) = (true, since(300), since(0))),
                0,
            ),
            (facts(|f| f.closing = since(0)), 100),
        ] {
            assert_eq!(next_look(&facts, &LIMITS), since(expected), "{facts:?}");
        }
        assert_eq!(next_look(&facts(|_| ()), &UNLIMITED), None);
    }

    #[test]
    fn what_a_death_means_depends_on_what_it_was_asked_to_do() {
        let last = |set: fn(&mut Last)| {
            let mut last = Last {
                moving: true,
                opens: true,
                functions: Some(Functions {
                    safe_stop: true,
                    ..Functions::default()
                }),
                ..Last::default()
            };
            set(&mut last);
            last
        };
        // Columns: whether it closed in time, needs a safe_stop, and is latched.
        for (last, expected) in [
            (last(|_| ()), (None, true, true)),
            (last(|l| l.moving = false), (None, true, false)),
            (last(|l| l.killed = true), (None, true, true)),
            (last(|l| l.functions = None), (None, true, true)),
            (
                last(|l| (l.functions, l.opens, l.moving) = (None, false, false)),
                (None, false, false),
            ),
            (
                last(|l| l.functions = Some(Functions::default())),
                (None, false, true),
            ),
            (last(|l| l.closing = true), (Some(false), true, false)),
            (
                last(|l| (l.closing, l.killed) = (true, true)),
                (Some(false), true, true),
            ),
            (
                last(|l| (l.closing, l.closed) = (true, Some(true))),
                (Some(true), false, false),
            ),
            (
                last(|l| (l.killed, l.closed) = (true, Some(false))),
                (Some(false), false, false),
            ),
        ] {
            let decided = (last.closed_in_time(), last.needs_safe_stop(), last.latches());
            assert_eq!(decided, expected, "{last:?}");
        }
        // The rest of the socket is read first if it may change the decision and nothing moves.
        for (last, expected) in [
            (last(|_| ()), false),
            (last(|l| l.closing = true), false),
            (last(|l| (l.closing, l.moving) = (true, false)), true),
            (last(|l| l.moving = false), false),
            (
                last(|l| (l.closing, l.moving, l.killed) = (true, false, true)),
                false,
            ),
            (
                last(|l| (l.closing, l.moving, l.closed) = (true, false, Some(true))),
                false,
            ),
        ] {
            assert_eq!(last.may_have_closed(), expected, "{last:?}");
        }
    }
}
