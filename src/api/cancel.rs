//! `ovos.tools.cancel`: ends a call that is under way.

use super::keys::required_text;
use super::request::Request;
use client::payload::CancelResponse;
use engine::{CallLookup, Cause, Engine};

/// Asks the call that the request names to end.
pub(super) fn cancel(engine: &Engine, request: &Request) -> CancelResponse {
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
    match engine.find(&call_id) {
        CallLookup::InFlight(control) => {
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
        CallLookup::Ended => {
            let why = format!("ValueError: call '{call_id}' has already ended");
            refused(call_id, "ended", why)
        }
        CallLookup::Unknown => {
            let why = format!(
                "ValueError: no call '{call_id}' is known; `ovos-tools status` lists the running calls"
            );
            refused(call_id, "unknown", why)
        }
    }
}
