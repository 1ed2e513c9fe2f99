//! Carries out the two stops.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use serde_json::{Value, json};

use crate::{Answer, Door, StopTool};

/// How long `stop_moving` waits for the calls to end: what moves comes to rest first.
const REST_WAIT: Duration = Duration::from_secs(5);

/// A stop that was carried out, and whose answer is to come.
pub type PendingStop = Shared<BoxFuture<'static, Answer>>;

impl Door {
    /// Carries out a stop at once, before this returns. What it comes to is an answer that several may wait for; the stop is
    /// followed to its end even if none does.
    pub fn begin_stop(self: &Arc<Self>, tool: StopTool) -> PendingStop {
        let door = Arc::clone(self);
        let stopping = async move { stop(tool, &door).await }.boxed().shared();
        _ = stopping.clone().now_or_never();
        self.tasks.spawn(stopping.clone());
        stopping
    }
}

/// Carries out a stop. It ignores arguments and waits for nothing before it stops. What arrived before it and has not begun does
/// not begin any more.
///
/// # Cancel safety
/// The stop has been sent when this first yields.
pub async fn stop(tool: StopTool, door: &Door) -> Answer {
    match tool {
        StopTool::EmergencyStop => emergency_stop(door).await,
        StopTool::StopMoving => stop_moving(door).await,
    }
}

async fn emergency_stop(door: &Door) -> Answer {
    // The first poll sends the stop.
    let mut request = pin!(door.client.stop(None));
    let sent = door.order.stop(|| request.as_mut().now_or_never());
    let answer = match sent {
        Some(answered) => answered,
        None => request.await,
    };
    let stopped = match answer {
        Ok(stopped) => stopped,
        Err(error) => {
            return Answer::failure(
                &format!(
                    "The emergency stop is NOT confirmed: {error}. Tell the user at once to use the machine's own switch."
                ),
                json!({"confirmed": false}),
            );
        }
    };
    let open: Vec<String> = stopped
        .toolboxes
        .iter()
        .filter(|toolbox| !toolbox.ok)
        .map(|toolbox| {
            format!(
                "{} ({})",
                toolbox.toolbox_id,
                toolbox.error.as_deref().unwrap_or("no reason")
            )
        })
        .collect();
    let confirmed = open.is_empty();
    let structured = json!({"confirmed": confirmed, "toolboxes": stopped.toolboxes});
    if confirmed {
        let held = stopped.toolboxes.iter().find_map(|toolbox| {
            let stop_id = toolbox.stop_id.as_deref()?;
            Some(format!(
                ", such as `ovos-tools resume {} {stop_id}`",
                toolbox.toolbox_id
            ))
        });
        let text = format!(
            "Everything is stopped, and stays stopped until an operator lifts the stop; `ovos-tools status` shows the command{}.",
            held.unwrap_or_default()
        );
        return Answer::success(&text, structured);
    }
    let text = format!(
        "Everything was told to stop, but this is NOT confirmed: {}. Tell the user at once to use the machine's own switch.",
        open.join(", ")
    );
    Answer::failure(&text, structured)
}

async fn stop_moving(door: &Door) -> Answer {
    let (before, sent) = door.order.stop(|| {
        let before = (door.calls.names(), door.order.waiting());
        (before, door.client.user_stop())
    });
    // Those that wait do not begin any more.
    let (before, waiting) = before;
    if let Err(error) = sent {
        let text = format!("Nothing was stopped: {error}. Use emergency_stop.");
        return Answer::failure(&text, json!({"stopped": [], "running": before}));
    }
    let ended = tokio::time::timeout(REST_WAIT, door.calls.all_ended(&before)).await;
    let running: Vec<&String> = match ended {
        Ok(()) => Vec::new(),
        Err(_) => {
            let now = door.calls.names();
            before.iter().filter(|call| now.contains(call)).collect()
        }
    };
    let tools =
        |calls: Vec<&String>| Value::from_iter(calls.into_iter().map(|call| door.calls.tool_of(call)));
    if running.is_empty() {
        let text = match before.len() + waiting {
            0 => "Nothing was running here.".to_owned(),
            count => format!("Stopped: {count} calls that were running here."),
        };
        return Answer::success(&text, json!({"stopped": before.len() + waiting, "running": []}));
    }
    let structured = json!({"stopped": before.len() - running.len(), "running": tools(running)});
    Answer::failure(
        "Some calls are still running: they may be bringing a machine to safety. Use emergency_stop if anything must stand \
         still now.",
        structured,
    )
}
