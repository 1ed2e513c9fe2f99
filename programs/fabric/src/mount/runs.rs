//! The runs of a mount: each ends once, whatever becomes of the network. Read [`Runs`].

use std::collections::BTreeMap;

use ovos_toolbox_wire::{Content, Effect, Failure};
use program::{Run, moves};
use protocol::{Raw, RunEnd};

/// How long a host needs to halt after the lease has run out there; one that is frozen is halted by the processes of its toolboxes.
const HALTING_MS: u64 = 250;

/// The runs under way.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// The largest number so far.
    pub(super) started: u64,
    open: BTreeMap<u64, OpenRun>,
}

#[derive(Debug)]
struct OpenRun {
    run: Run,
    /// Its call and its action, for people.
    name: String,
    /// Whether it moves something, be it to safety.
    moves: bool,
    /// Whether its host ends it without its commander.
    needs_commander: bool,
    cancelled: bool,
    /// Since when nobody knows what became of it, and why.
    orphan: Option<(u64, Failure)>,
}

impl Runs {
    pub(super) fn begin(&mut self, run: Run, effect: Effect, name: String) {
        let number = run.number();
        self.started = self.started.max(number);
        let open = OpenRun {
            run,
            name,
            moves: moves(effect),
            needs_commander: effect == Effect::Motion,
            cancelled: false,
            orphan: None,
        };
        self.open.insert(number, open);
    }

    /// Whether something moves.
    pub(super) fn are_moving(&self) -> bool {
        self.open.values().any(|open| open.moves)
    }

    /// Whether something moves that its host does not let go on without its commander.
    pub(super) fn need_commander(&self) -> bool {
        self.open.values().any(|open| open.needs_commander)
    }

    /// Notes that a run was asked to end.
    pub(super) fn cancel(&mut self, number: u64) {
        if let Some(open) = self.open.get_mut(&number) {
            open.cancelled = true;
        }
    }

    /// The runs whose callers wait, and those of them that were asked to end.
    pub(super) fn claimed(&self) -> (Vec<u64>, Vec<u64>) {
        let waiting = self.open.iter().filter(|(_, open)| open.orphan.is_none());
        let cancelled = waiting.clone().filter(|(_, open)| open.cancelled);
        (
            waiting.map(|(number, _)| *number).collect(),
            cancelled.map(|(number, _)| *number).collect(),
        )
    }

    /// Ends a run as its host says; returns its name if it was open.
    pub(super) fn end(&mut self, number: u64, end: RunEnd, content: &[Content]) -> Option<String> {
        let open = self.open.remove(&number)?;
        let content = (!content.is_empty()).then(|| Raw::of(&content.to_vec()));
        open.run.end(end, content);
        Some(open.name)
    }

    /// The line was lost while a run was under way. What moves nothing ends now. What moves ends when the host has brought it to
    /// rest: it is not claimed any more, so the host ends it at the next beat, or when the lease runs out. Returns the name of a run
    /// that was not lost before.
    pub(super) fn lose(&mut self, number: u64, now: u64, why: &Failure) -> Option<String> {
        let open = self.open.get_mut(&number)?;
        if open.moves {
            let is_new = open.orphan.is_none();
            open.orphan.get_or_insert_with(|| (now, why.clone()));
            return is_new.then(|| open.name.clone());
        }
        let open = self.open.remove(&number)?;
        open.run.fail(why);
        Some(open.name)
    }

    /// As [`Self::lose`], for all.
    pub(super) fn lose_all(&mut self, now: u64, why: &Failure) -> Vec<String> {
        let numbers: Vec<u64> = self.open.keys().copied().collect();
        let lost = numbers
            .into_iter()
            .filter_map(|number| self.lose(number, now, why));
        lost.collect()
    }

    /// Ends what was lost and is at rest: the host has answered a beat that was sent after the loss at `confirmed`, or its lease ran
    /// out at `lost_at`.
    pub(super) fn end_lost(&mut self, confirmed: Option<u64>, lost_at: Option<u64>, now: u64) {
        let is_over = |open: &OpenRun| {
            let Some((since, _)) = open.orphan.as_ref() else {
                return false;
            };
            confirmed.is_some_and(|sent| sent > *since)
                || lost_at.is_some_and(|lost| now >= lost + HALTING_MS)
        };
        let over: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| is_over(open))
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            if let Some(OpenRun {
                run,
                orphan: Some((_, why)),
                ..
            }) = self.open.remove(&number)
            {
                run.fail(&why);
            }
        }
    }
}
