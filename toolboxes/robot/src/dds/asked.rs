//! Requests over topics, and their answers.
//!
//! The RPC of both vendors is a topic of requests and a topic of responses. Owns which answer belongs to which request;
//! what they look like belongs to the vendor. Read [`Asked`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use crate::ros::RosError;

/// What the robot said: the body of its answer, or the code with which it refused and what that means.
pub(super) type Verdict = Result<Value, (i64, &'static str)>;

/// The requests without an answer so far.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<HashMap<String, oneshot::Sender<Verdict>>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Verdict>>> {
        // Every change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects the answer to a request that is about to be sent: it may come at once. `what` names the function.
    pub(super) fn expect(&self, id: String, what: String, topic: String, timeout: Duration) -> Asked {
        let (answer, receiver) = oneshot::channel();
        self.lock().insert(id.clone(), answer);
        Asked {
            id,
            what,
            topic,
            receiver,
            waiting: self.clone(),
            timeout,
        }
    }

    /// Hands over an answer. One without a request is another client's, or late.
    pub(super) fn answered(&self, id: &str, verdict: Verdict) {
        let asker = self.lock().remove(id);
        if let Some(asker) = asker {
            let _ = asker.send(verdict);
        }
    }
}

/// A request on its way. Dropping it forgets the answer.
pub struct Asked {
    id: String,
    what: String,
    topic: String,
    receiver: oneshot::Receiver<Verdict>,
    waiting: Waiting,
    timeout: Duration,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.id);
    }
}

impl Asked {
    /// The body of the answer, null when it has none.
    ///
    /// # Errors
    /// No answer in time, or one that says no.
    ///
    /// # Cancel safety
    /// Safe; the answer is forgotten.
    pub async fn answer(mut self) -> Result<Value, RosError> {
        match tokio::time::timeout(self.timeout, &mut self.receiver).await {
            Ok(Ok(Ok(body))) => Ok(body),
            Ok(Ok(Err((code, meaning)))) => Err(RosError::Refused {
                what: self.what.clone(),
                code,
                meaning,
            }),
            _ => Err(RosError::NoAnswer {
                topic: self.topic.clone(),
                waited: self.timeout,
            }),
        }
    }
}
