//! The door's own tools: the two stops that every client has, whatever else it may see.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::Effect;
use rmcp::model::{CallToolResult, Tool};
use serde_json::{Map, Value, json};

use crate::answer;
use crate::door::Door;
use crate::listing::annotations;

/// How long `stop_moving` waits for the calls to end: what moves comes to rest first.
const REST_WAIT: Duration = Duration::from_secs(5);

/// A tool of the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopTool {
    /// Stops and latches every toolbox.
    EmergencyStop,
    /// Ends the calls of this door.
    StopMoving,
}

impl StopTool {
    pub(crate) const ALL: [Self; 2] = [Self::EmergencyStop, Self::StopMoving];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EmergencyStop => "emergency_stop",
            Self::StopMoving => "stop_moving",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::EmergencyStop => {
                "Emergency stop of every machine, at once. Nothing moves afterwards until a person lifts the stop with \
                 `ovos-tools resume`. Use it when anybody or anything is in danger; never wait or ask first."
            }
            Self::StopMoving => {
                "Ends everything that was started here and brings what moves to rest. Nothing is locked: tools can be \
                 called again. Use it when the user says stop, wait or cancel."
            }
        }
    }

    /// As clients see it.
    pub(crate) fn definition(self) -> Tool {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), json!({}));
        Tool::new(self.name(), self.description(), Arc::new(schema))
            .with_annotations(annotations(Effect::Stop))
    }

    /// Stops. Looks at no arguments and waits for nothing first.
    ///
    /// # Cancel safety
    /// The stop has been sent when this first yields.
    pub(crate) async fn run(self, door: &Door) -> CallToolResult {
        match self {
            Self::EmergencyStop => emergency_stop(door).await,
            Self::StopMoving => stop_moving(door).await,
        }
    }
}

async fn emergency_stop(door: &Door) -> CallToolResult {
    let stopped = match door.client().stop(None).await {
        Ok(stopped) => stopped,
        Err(error) => {
            return answer::failure(
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
        return answer::success(
            "Everything is stopped and stays so until a person lifts the stop with `ovos-tools resume`.",
            structured,
        );
    }
    let text = format!(
        "Everything was told to stop, but this is NOT confirmed: {}. Tell the user at once to use the machine's own switch.",
        open.join(", ")
    );
    answer::failure(&text, structured)
}

async fn stop_moving(door: &Door) -> CallToolResult {
    let before = door.calls().names();
    if let Err(error) = door.client().user_stop() {
        let text = format!("Nothing was stopped: {error}. Use emergency_stop.");
        return answer::failure(&text, json!({"stopped": [], "running": before}));
    }
    let ended = tokio::time::timeout(REST_WAIT, door.calls().all_ended(&before)).await;
    let running: Vec<&String> = match ended {
        Ok(()) => Vec::new(),
        Err(_) => {
            let now = door.calls().names();
            before.iter().filter(|call| now.contains(call)).collect()
        }
    };
    let tools =
        |calls: Vec<&String>| Value::from_iter(calls.into_iter().map(|call| door.calls().tool_of(call)));
    if running.is_empty() {
        let text = match before.len() {
            0 => "Nothing was under way here.".to_owned(),
            count => format!("Stopped: {count} under way here."),
        };
        return answer::success(&text, json!({"stopped": before.len(), "running": []}));
    }
    let structured = json!({"stopped": before.len() - running.len(), "running": tools(running)});
    answer::failure(
        "Some calls have not ended: they may be bringing a machine to safety. Use emergency_stop if anything must stand \
         still now.",
        structured,
    )
}
