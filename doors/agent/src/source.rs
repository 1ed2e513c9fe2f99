//! The source of answers: the endpoint of a model, or the record of an earlier run.

use std::collections::VecDeque;

use serde_json::Value;

use crate::end::End;
use crate::endpoint::Endpoint;
use crate::record::Step;

/// Gives one answer for each request.
pub(crate) enum Source {
    /// A model.
    Model(Box<Endpoint>),
    /// The answers of a record, in order.
    Record(VecDeque<Value>),
}

impl Source {
    pub(crate) fn of_record(steps: &[Step]) -> Self {
        Self::Record(steps.iter().map(|step| step.answer.clone()).collect())
    }

    /// Returns the answer to a request.
    ///
    /// # Errors
    /// The reason for the end of the run.
    ///
    /// # Cancel safety
    /// If dropped, an endpoint may continue to work on the answer.
    pub(crate) async fn complete(&mut self, request: &Value) -> Result<Value, End> {
        match self {
            Self::Model(endpoint) => endpoint.complete(request).await,
            Self::Record(answers) => answers.pop_front().ok_or(End::RecordEnded),
        }
    }
}
