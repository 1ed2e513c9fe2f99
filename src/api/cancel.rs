//! `ovos.tools.cancel`: ends a call that is under way.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::required_text;
use super::{Api, Request};
use engine::{Cause, Known};

/// The answer to `ovos.tools.cancel`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CancelResponse {
    /// The call.
    pub call_id: String,
    /// Whether it was asked to end. A `safe` action still goes on to its end state.
    pub cancelled: bool,
    /// `planning`, `queued`, `running`, `ended` or `unknown`: what the call was when the request came.
    pub state: String,
    /// Why nothing was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Api {
    pub(super) fn cancel(&self, request: &Request) -> CancelResponse {
        let call_id = match required_text(&request.data, "call_id") {
            Ok(call_id) => call_id,
            Err(error) => {
                let state = "unknown".to_owned();
                return CancelResponse {
                    state,
                    error: Some(error.text),
                    ..CancelResponse::default()
                };
            }
        };
        let refused = |call_id: String, state: &str, why: String| CancelResponse {
            call_id,
            cancelled: false,
            state: state.to_owned(),
            error: Some(why),
        };
        match self.engine.find(&call_id) {
            Known::InFlight(control) => {
                let state = control.phase().as_str().to_owned();
                let by = request
                    .head
                    .context
                    .get("source")
                    .and_then(|source| source.as_str());
                control.end(Cause::Cancelled {
                    by: by.unwrap_or("a bus client").to_owned(),
                });
                CancelResponse {
                    call_id,
                    cancelled: true,
                    state,
                    error: None,
                }
            }
            Known::Ended => {
                let why = format!("ValueError: call '{call_id}' has already ended");
                refused(call_id, "ended", why)
            }
            Known::Unknown => {
                let why = format!(
                    "ValueError: no call '{call_id}' is known; ovos.tools.status lists those in flight"
                );
                refused(call_id, "unknown", why)
            }
        }
    }
}
