//! Questions about calls: each is answered once, by the host or with why there is no answer. Read [`Shared::question`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use program::Reply;
use protocol::Answer;
use serde::de::DeserializeOwned;

use super::line::Way;
use super::pending::{Contact, Question};
use super::shared::{Shared, failure_of};
use crate::clock;
use crate::messages::{Ask, Right};

/// How long a question may take; the service waits 1 s for it.
pub(super) const QUESTION: Duration = Duration::from_millis(900);

/// How long of that it waits for the host to be reached, with the lease that the call may need.
const CONTACT: Duration = Duration::from_millis(700);

impl Shared {
    /// Asks about a call. Where contact with the host is being made, or is lost under the question, it waits for that, so that a call that
    /// comes in such a moment is done. What starts never waits: nothing moves later than it was asked for.
    pub(super) fn question<T: DeserializeOwned + 'static>(self: &Arc<Self>, ask: Ask, reply: Reply<T>) {
        self.ask_since(Instant::now(), ask, reply);
    }

    fn ask_since<T: DeserializeOwned + 'static>(self: &Arc<Self>, since: Instant, ask: Ask, reply: Reply<T>) {
        if !self.view.lock().is_settled(clock::now_ms()) {
            return self.wait(since, ask, reply);
        }
        let this = self.clone();
        let left = QUESTION.saturating_sub(since.elapsed());
        let ask = Arc::new(ask);
        let asked = ask.clone();
        let on_answer = move |answer: Option<Answer<T>>| match answer {
            Some(Answer::Ok(value)) => reply(Ok(value)),
            Some(refused) => reply(Err(failure_of(refused).into())),
            None => match Arc::into_inner(asked) {
                Some(ask) if since.elapsed() < CONTACT => this.wait(since, ask, reply),
                _ => reply(Err(this.not_reached().into())),
            },
        };
        self.line.ask(Right::Read, Way::Data, left, &ask, on_answer);
    }

    fn wait<T: DeserializeOwned + 'static>(&self, since: Instant, ask: Ask, reply: Reply<T>) {
        let end = move |shared: &Arc<Self>, contact| match contact {
            Contact::Made => shared.ask_since(since, ask, reply),
            Contact::Missed => reply(Err(shared.not_reached().into())),
        };
        self.questions.lock().0.push(Question {
            since,
            end: Box::new(end),
        });
    }

    /// Asks what waits for the host to be reached, on a thread of its own: this is called where the network is read, and questions wait
    /// for room in it.
    pub(super) fn ask_waiting(self: &Arc<Self>) {
        if self.questions.lock().0.is_empty() {
            return;
        }
        let this = self.clone();
        // Where there is no thread, they are refused when they have waited long enough, or asked after the next beat.
        self.aside("questions", move || {
            let waiting = std::mem::take(&mut this.questions.lock().0);
            for question in waiting {
                (question.end)(&this, Contact::Made);
            }
        });
    }

    /// Refuses what has waited long enough.
    pub(super) fn give_up_questions(self: &Arc<Self>, now: Instant) {
        let overdue: Vec<Question<Self>> = {
            let mut questions = self.questions.lock();
            let is_overdue = |question: &mut Question<Self>| now.duration_since(question.since) >= CONTACT;
            questions.0.extract_if(.., is_overdue).collect()
        };
        for question in overdue {
            (question.end)(self, Contact::Missed);
        }
    }
}
