//! Requests over topics, and their answers.
//!
//! The RPC of both vendors is a topic of requests and a topic of responses. Owns which answer belongs to which
//! request; the vendor's file owns their shape. Read [`DdsRequest`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::ros::error::RosError;

/// The body of the robot's answer, or the code of its refusal with the meaning of the code.
pub(super) type Verdict = Result<Value, (i64, &'static str)>;

/// The requests without an answer so far.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Mutex<HashMap<String, oneshot::Sender<Verdict>>>>);

impl OpenRequests {
    /// Expects the answer to a request. Called before the request is sent, because the answer may come at once.
    /// `what` names the function.
    pub(super) fn expect(&self, id: String, what: String, topic: String, timeout: Duration) -> DdsRequest {
        let (answer, receiver) = oneshot::channel();
        self.0.lock().insert(id.clone(), answer);
        DdsRequest {
            id,
            what,
            topic,
            receiver,
            waiting: self.clone(),
            timeout,
        }
    }

    /// Hands over an answer. An answer without a request is late, or belongs to another client.
    pub(super) fn answered(&self, id: &str, verdict: Verdict) {
        let asker = self.0.lock().remove(id);
        if let Some(asker) = asker {
            let _ = asker.send(verdict);
        }
    }
}

/// A request on its way. Dropping it forgets the answer.
pub struct DdsRequest {
    id: String,
    what: String,
    topic: String,
    receiver: oneshot::Receiver<Verdict>,
    waiting: OpenRequests,
    timeout: Duration,
}

impl Drop for DdsRequest {
    fn drop(&mut self) {
        self.waiting.0.lock().remove(&self.id);
    }
}

impl DdsRequest {
    /// The body of the answer, null when it has none.
    ///
    /// # Errors
    /// No answer came in time, or the robot refused.
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
