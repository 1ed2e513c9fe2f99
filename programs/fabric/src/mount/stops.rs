//! Emergency stops on their way to the host: sent at once, and again until they are answered. Read [`Stops`].

use std::time::{Duration, Instant};

use program::{Refusal, Reply};

/// How long the service waits until it is told that the host was not reached; the protocol allows 200 ms.
const NOT_REACHED: Duration = Duration::from_millis(120);

/// How often a stop is sent again: in the time in which its caller waits for it, and after that.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_LATER: Duration = Duration::from_millis(40);

/// The stop that is on its way. A further one joins it: the toolbox is stopped once.
#[derive(Default)]
pub(super) struct Stops {
    pending: Option<Pending>,
}

/// A stop of the service, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceStop {
    pub(super) id: String,
    /// The stop of the host that it only follows.
    pub(super) mirrors: Option<String>,
}

struct Pending {
    stop: ServiceStop,
    /// When it was sent first, and last.
    since: Instant,
    sent: Instant,
    waiting: Vec<(Instant, Reply<()>)>,
}

impl Stops {
    /// Takes a stop of the service, which may follow one of the host; returns what is to be sent. One of a person makes another one of
    /// what is on its way and only follows.
    pub(super) fn take(&mut self, reply: Reply<()>, mirrors: Option<String>, now: Instant) -> ServiceStop {
        let follows_only = |pending: &Pending| pending.stop.mirrors.is_some();
        let earlier = if mirrors.is_none() {
            self.pending.take_if(|pending| follows_only(pending))
        } else {
            None
        };
        let pending = self.pending.get_or_insert_with(|| Pending {
            stop: ServiceStop {
                id: uuid::Uuid::now_v7().to_string(),
                mirrors,
            },
            since: now,
            sent: now,
            waiting: earlier.map(|earlier| earlier.waiting).unwrap_or_default(),
        });
        pending.waiting.push((now + NOT_REACHED, reply));
        pending.sent = now;
        pending.stop.clone()
    }

    /// When the stop that is on its way is to be sent again, if one is.
    pub(super) fn again_at(&self) -> Option<Instant> {
        let Pending { since, sent, .. } = self.pending.as_ref()?;
        let is_new = sent.duration_since(*since) < NOT_REACHED;
        Some(*sent + if is_new { AGAIN } else { AGAIN_LATER })
    }

    /// The stop that is to be sent again now, if its time has come.
    pub(super) fn take_again(&mut self, now: Instant) -> Option<ServiceStop> {
        let is_due = self.again_at().is_some_and(|at| at <= now);
        let pending = self.pending.as_mut().filter(|_| is_due)?;
        pending.sent = now;
        Some(pending.stop.clone())
    }

    /// The stop that was not answered yet.
    pub(super) fn unanswered(&self) -> Option<ServiceStop> {
        self.pending.as_ref().map(|pending| pending.stop.clone())
    }

    /// The host has answered this stop; returns those who wait for that. `None` if it is not on its way any more.
    pub(super) fn answered(&mut self, id: &str) -> Option<Vec<Reply<()>>> {
        let pending = self.pending.take_if(|pending| pending.stop.id == id)?;
        Some(pending.waiting.into_iter().map(|(_, reply)| reply).collect())
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
        let echo = stops.take(reply(), Some("s1".to_owned()), now);
        let stop = stops.take(reply(), None, now);
        assert!(
            stop.id != echo.id && stop.mirrors.is_none(),
            "one of a person is its own"
        );
        assert_eq!(stops.take_again(now + AGAIN).as_ref(), Some(&stop));
        for mirrors in [None, Some("s2".to_owned())] {
            assert_eq!(
                stops.take(reply(), mirrors, now + NOT_REACHED),
                stop,
                "it joins the first"
            );
        }
        assert!(stops.answered(&echo.id).is_none());
        assert!(stops.overdue(now).is_empty());
        tell(stops.overdue(now + NOT_REACHED), &Ok(()));
        assert_eq!(answers.load(Ordering::SeqCst), 2);
        assert_eq!(stops.unanswered().as_ref(), Some(&stop), "still sent");
        let mut at = now + NOT_REACHED;
        assert_eq!(stops.take_again(at), None, "it was sent just now");
        for _ in 0..2 {
            at += AGAIN_LATER;
            assert_eq!(stops.take_again(at - Duration::from_millis(1)), None);
            assert_eq!(stops.take_again(at).as_ref(), Some(&stop));
        }
        assert!(stops.answered("another").is_none());
        tell(stops.answered(&stop.id).expect("it is on its way"), &Ok(()));
        assert_eq!(answers.load(Ordering::SeqCst), 4);
        assert_eq!(stops.unanswered(), None);
        assert!(stops.answered(&stop.id).is_none(), "it was answered");
        assert_ne!(stops.take(reply(), None, now), stop);
    }
}
