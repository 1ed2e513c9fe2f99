//! Emergency stops on their way to the host: sent at once, and again until they are answered. Read [`Stops`].

use std::time::{Duration, Instant};

use program::{Refusal, Reply};

/// How long the service waits until it is told that the host was not reached; the protocol allows 200 ms.
const NOT_REACHED: Duration = Duration::from_millis(120);

/// The stop that is on its way. A further one joins it: the toolbox is stopped once.
#[derive(Default)]
pub(super) struct Stops {
    pending: Option<Pending>,
}

struct Pending {
    id: String,
    waiting: Vec<(Instant, Reply<()>)>,
}

impl Stops {
    /// Takes a stop of the service; returns the id to send it with.
    pub(super) fn take(&mut self, reply: Reply<()>, now: Instant) -> String {
        let pending = self.pending.get_or_insert_with(|| Pending {
            id: uuid::Uuid::now_v7().to_string(),
            waiting: Vec::new(),
        });
        pending.waiting.push((now + NOT_REACHED, reply));
        pending.id.clone()
    }

    /// The stop that was not answered yet, which is to be sent again.
    pub(super) fn unanswered(&self) -> Option<&str> {
        self.pending.as_ref().map(|pending| pending.id.as_str())
    }

    /// The host has answered this stop; returns those who wait for that.
    pub(super) fn answered(&mut self, id: &str) -> Vec<Reply<()>> {
        if self.unanswered() != Some(id) {
            return Vec::new();
        }
        let waiting = self.pending.take().map(|pending| pending.waiting);
        waiting
            .unwrap_or_default()
            .into_iter()
            .map(|(_, reply)| reply)
            .collect()
    }

    /// Those who have waited long enough. The stop stays on its way.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<Reply<()>> {
        let Some(pending) = &mut self.pending else {
            return Vec::new();
        };
        let waiting = std::mem::take(&mut pending.waiting);
        let (overdue, rest) = waiting.into_iter().partition(|(until, _)| *until <= now);
        pending.waiting = rest;
        let overdue: Vec<(Instant, Reply<()>)> = overdue;
        overdue.into_iter().map(|(_, reply)| reply).collect()
    }
}

impl std::fmt::Debug for Stops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stops")
            .field("unanswered", &self.unanswered())
            .finish()
    }
}

/// Answers those who wait for a stop.
pub(super) fn tell(waiting: Vec<Reply<()>>, result: &Result<(), Refusal>) {
    for reply in waiting {
        reply(result.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_stop_is_sent_until_it_is_answered_and_its_caller_is_told_in_time() {
        let answers = Arc::new(AtomicUsize::new(0));
        let reply = || -> Reply<()> {
            let answers = answers.clone();
            Box::new(move |_| {
                answers.fetch_add(1, Ordering::SeqCst);
            })
        };
        let mut stops = Stops::default();
        let now = Instant::now();
        let id = stops.take(reply(), now);
        assert_eq!(stops.take(reply(), now + NOT_REACHED), id, "it joins the first");
        assert!(stops.overdue(now).is_empty());
        tell(stops.overdue(now + NOT_REACHED), &Ok(()));
        assert_eq!(answers.load(Ordering::SeqCst), 1);
        assert_eq!(stops.unanswered(), Some(id.as_str()), "still sent");
        assert!(stops.answered("another").is_empty());
        tell(stops.answered(&id), &Ok(()));
        assert_eq!(answers.load(Ordering::SeqCst), 2);
        assert_eq!(stops.unanswered(), None);
        assert_ne!(stops.take(reply(), now), id);
    }
}
