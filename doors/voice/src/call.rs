//! Carries out one tool call, from the voice's request to its outcome.

use std::sync::Arc;

use client::payload::{CallOptions, InvokeRequest};
use client::{Client, Step};
use door::{Answer, Door, ListedTool, LongCall, Turn};
use ovos_toolbox_wire::{Effect, Object};
use sha2::{Digest as _, Sha256};

use crate::ledger::CallKey;
use crate::outcome::Outcome;

/// Calls a tool of a toolbox through `client`, a client of the door. Always returns an outcome, and stores it in `long`; if
/// dropped, `long` gets none.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn call(
    door: Arc<Door>,
    client: Client,
    turn: Turn,
    tool: Arc<ListedTool>,
    args: Object,
    long: Arc<LongCall<Outcome>>,
) -> Outcome {
    let outcome = carried(&door, &client, &turn, &tool, args, &long).await;
    long.ended(outcome.clone());
    outcome
}

async fn carried(
    door: &Door,
    client: &Client,
    turn: &Turn,
    tool: &ListedTool,
    args: Object,
    long: &LongCall<Outcome>,
) -> Outcome {
    let call_id = long.call_id();
    let request = InvokeRequest {
        name: tool.name.clone(),
        args,
        toolbox_id: Some(tool.toolbox_id.clone()),
        options: CallOptions {
            call_id: Some(call_id.to_owned()),
            progress: tool.effect != Effect::Read,
            detail: true,
            ..CallOptions::default()
        },
    };
    let send = |patience| client.invoke(request, patience);
    let sent = tokio::select! {
        biased;
        // The conversation may have ended before this task first runs, or while the call waits for its turn.
        _ = long.ends() => {
            return Outcome::refused(&Answer::cancelled(tool, "it was withdrawn before it began"));
        }
        sent = door.carry(turn, tool, call_id, send) => sent,
    };
    let mut carried = match sent {
        Ok(carried) => carried,
        Err(why) => return Outcome::refused(&Answer::not_begun(tool, &why)),
    };
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            biased;
            why = long.ends(), if !is_cancelled => {
                is_cancelled = true;
                carried.cancel(why);
            }
            step = carried.next() => match step {
                Ok(Step::Answer(answer)) => return Outcome::of(tool, &answer),
                Ok(Step::Progress(progress)) => if let Ok(progress) = progress.read() {
                    long.note(&progress);
                },
                Err(lost) => return Outcome::refused(&Answer::lost(tool, &lost, "the conversation asked for that")),
            },
        }
    }
}

/// Returns the id of a call on the bus. Another program that receives the same call derives the same id, and the service refuses a
/// call whose id is already in flight.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use client::Address;
    use config::Toolset;
    use door::LongCalls;
    use futures_util::StreamExt as _;
    use ovos_toolbox_wire::Effect;
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A call and the end of its conversation can arrive in one read, and the end while the call waits for its turn.
    #[tokio::test]
    async fn a_call_that_was_cancelled_before_it_began_is_not_sent() {
        let bus = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = Address {
            url: format!("ws://{}", bus.local_addr().expect("it"))
                .parse()
                .expect("a URL"),
            certificate: None,
        };
        let accepting = async {
            let (stream, _) = bus.accept().await.expect("the client");
            tokio_tungstenite::accept_async(stream)
                .await
                .expect("a websocket")
        };
        let connecting = Client::connect(address, "test", Duration::from_secs(5));
        let (client, mut heard) = tokio::join!(connecting, accepting);
        let client = client.expect("a connection");
        let door = Door::new(
            client.clone(),
            Toolset::default(),
            Vec::new(),
            &[],
            CancellationToken::new(),
        );
        let tool = Arc::new(ListedTool {
            exported: "wave".to_owned(),
            toolbox_id: "arm".to_owned(),
            name: "wave".to_owned(),
            effect: Effect::Motion,
            category: None,
            description: String::new(),
            arguments: Arc::new(Object::new()),
            output: None,
            agent_end: Vec::new(),
        });
        for waits_for_its_turn in [false, true] {
            let long = LongCalls::new(Duration::from_secs(1)).call("c", "wave");
            let arrivals = door.arrivals();
            let earlier = waits_for_its_turn.then(|| arrivals.turn());
            let turn = arrivals.turn();
            if !waits_for_its_turn {
                long.end("its conversation is over");
            }
            let (door, tool) = (door.clone(), tool.clone());
            let called = call(door, client.clone(), turn, tool, Object::new(), long.clone());
            // The call is polled first.
            let (outcome, ()) = tokio::join!(biased; called, async {
                long.end("its conversation is over");
                drop(earlier);
            });
            assert!(
                matches!(&outcome, Outcome::Failure { kind, .. } if kind == "CancelledError"),
                "{waits_for_its_turn}: {outcome:?}"
            );
        }
        client.user_stop().expect("it is sent");
        let first = heard.next().await.expect("a frame").expect("a text");
        assert!(first.to_string().contains("ovos.stop"), "{first}");
    }
}
