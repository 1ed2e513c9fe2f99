//! The table of subsystems: which call holds them, and which calls wait for them.
//!
//! A pure table: first come, first served. A waiting call is overtaken only by safe calls, and by calls that share no
//! subsystem with it or with any call ahead of it. The table wakes no call itself: every change returns the calls that
//! may go ahead now. Read [`Reservations`].

use std::collections::VecDeque;

use super::subsystem::Claim;

/// The number of a call in the table.
pub type Ticket = u64;

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    claim: Claim,
    safe: bool,
}

/// The result of a request for subsystems.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// The call holds its subsystems now.
    Granted,
    /// The call waits behind this many calls.
    Queued(usize),
    /// The queue is full; these calls hold the subsystems or wait for them.
    Refused(Vec<Ticket>),
}

/// The reservations of one toolbox.
#[derive(Debug)]
pub struct Reservations {
    held: Vec<Entry>,
    queue: VecDeque<Entry>,
    max_waiting: usize,
}

impl Reservations {
    /// A table in which at most `max_waiting` calls wait.
    #[must_use]
    pub fn new(max_waiting: usize) -> Self {
        Self {
            held: Vec::new(),
            queue: VecDeque::new(),
            max_waiting,
        }
    }

    /// Sets the number of calls that may wait; calls that wait already stay.
    pub fn bound(&mut self, max_waiting: usize) {
        self.max_waiting = max_waiting;
    }

    /// Takes the whole claim at once, or queues for it.
    pub fn request(&mut self, ticket: Ticket, claim: Claim) -> Request {
        let entry = Entry {
            ticket,
            claim,
            safe: false,
        };
        if !self.blocked(&entry.claim, self.queue.len()) {
            self.held.push(entry);
            return Request::Granted;
        }
        if self.queue.len() >= self.max_waiting {
            return Request::Refused(self.in_the_way(&entry.claim));
        }
        self.queue.push_back(entry);
        Request::Queued(self.queue.len() - 1)
    }

    /// As [`Self::request`], for a safe call: it goes ahead of all calls that are not safe and is never refused.
    pub fn request_first(&mut self, ticket: Ticket, claim: Claim) -> Request {
        let place = self.queue.iter().take_while(|entry| entry.safe).count();
        let entry = Entry {
            ticket,
            claim,
            safe: true,
        };
        if !self.blocked(&entry.claim, place) {
            self.held.push(entry);
            return Request::Granted;
        }
        self.queue.insert(place, entry);
        Request::Queued(place)
    }

    /// Releases what `ticket` holds, or its place in the queue. Returns the calls that may go ahead now, in order.
    pub fn release(&mut self, ticket: Ticket) -> Vec<Ticket> {
        self.held.retain(|entry| entry.ticket != ticket);
        self.queue.retain(|entry| entry.ticket != ticket);
        let mut granted = Vec::new();
        let mut place = 0;
        while place < self.queue.len() {
            if self.blocked(&self.queue[place].claim, place) {
                place += 1;
            } else if let Some(entry) = self.queue.remove(place) {
                granted.push(entry.ticket);
                self.held.push(entry);
            }
        }
        granted
    }

    /// The calls that hold a subsystem that conflicts with `claim`.
    #[must_use]
    pub fn holders(&self, claim: &Claim) -> Vec<Ticket> {
        self.held
            .iter()
            .filter(|e| e.claim.conflicts(claim))
            .map(|e| e.ticket)
            .collect()
    }

    /// The number of calls that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The calls that hold a subsystem that conflicts with `claim`, then those that wait for one.
    #[must_use]
    pub fn in_the_way(&self, claim: &Claim) -> Vec<Ticket> {
        let all = self.held.iter().chain(&self.queue);
        all.filter(|e| e.claim.conflicts(claim))
            .map(|e| e.ticket)
            .collect()
    }

    /// Whether a holder, or one of the first `ahead` calls of the queue, conflicts with `claim`.
    fn blocked(&self, claim: &Claim, ahead: usize) -> bool {
        let ahead = self.queue.iter().take(ahead);
        self.held
            .iter()
            .chain(ahead)
            .any(|entry| entry.claim.conflicts(claim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(names: &str) -> Claim {
        names.split_whitespace().collect()
    }

    #[test]
    fn a_waiting_call_is_overtaken_only_by_calls_that_share_nothing_with_it() {
        let mut table = Reservations::new(8);
        assert_eq!(table.request(1, claim("left right")), Request::Granted);
        assert_eq!(table.request(2, claim("left base")), Request::Queued(0));
        assert_eq!(
            table.request(3, claim("base")),
            Request::Queued(1),
            "shares base with the one ahead"
        );
        assert_eq!(
            table.request(4, claim("gantry")),
            Request::Granted,
            "shares nothing with any of them"
        );
        assert_eq!(table.request(5, claim("all")), Request::Queued(2));
        assert_eq!(table.release(1), [2]);
        assert_eq!(table.release(2), [3]);
        assert_eq!(table.release(3), Vec::<Ticket>::new());
        assert_eq!(table.release(4), [5]);
    }

    #[test]
    fn a_full_queue_names_what_is_in_the_way() {
        let mut table = Reservations::new(1);
        table.request(1, claim("base"));
        table.request(2, claim("base"));
        assert_eq!(table.request(3, claim("base")), Request::Refused(vec![1, 2]));
        assert_eq!(
            table.request_first(4, claim("base")),
            Request::Queued(0),
            "safety is never refused"
        );
        assert_eq!(table.release(1), [4]);
    }

    #[test]
    fn giving_up_waiting_lets_those_behind_through() {
        let mut table = Reservations::new(8);
        table.request(1, claim("left"));
        table.request(2, claim("left right"));
        table.request(3, claim("right"));
        assert_eq!(table.release(2), [3]);
    }
}
