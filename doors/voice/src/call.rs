//! One call of a tool, from the voice's request to its outcome.

use std::sync::Arc;

use client::Step;
use client::payload::{CallOptions, InvokeRequest};
use door::{Answer, Door, Registered};
use ovos_toolbox_wire::Object;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::ledger::CallKey;
use crate::outcome::Outcome;

/// Calls a tool of a toolbox. Always comes to something.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn call(
    door: Arc<Door>,
    tool: Arc<Registered>,
    call_id: String,
    args: Object,
    end: CancellationToken,
) -> Outcome {
    // The voice may be gone before this runs for the first time.
    if end.is_cancelled() {
        return Outcome::refused(&Answer::cancelled(&tool, "it was taken back before it began"));
    }
    let request = InvokeRequest {
        name: tool.name.clone(),
        args,
        toolbox_id: Some(tool.toolbox_id.clone()),
        options: CallOptions {
            call_id: Some(call_id.clone()),
            detail: true,
            ..CallOptions::default()
        },
    };
    let send = |patience| door.client.invoke(request, patience);
    let mut carried = match door.carry(&tool, &call_id, send) {
        Ok(carried) => carried,
        Err(error) => return Outcome::refused(&Answer::refused(&tool, &error)),
    };
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            biased;
            () = end.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                carried.cancel("its voice is gone, was interrupted, or took it back");
            }
            step = carried.next() => match step {
                Ok(Step::Answer(answer)) => return Outcome::of(&tool, &answer),
                Ok(Step::Progress(_)) => {}
                Err(lost) => return Outcome::refused(&Answer::lost(&tool, &lost, "the conversation asked for that")),
            },
        }
    }
}

/// The id of a call on the bus. Another program that hears the same call gives it the same id, and the service refuses one that
/// is in flight.
pub(crate) fn call_id(dialect: &str, key: &CallKey) -> String {
    let mut digest = Sha256::new();
    for part in [dialect, &key.chat, &key.id] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("voice-{dialect}-{hex}")
}
