//! Publishes each emergency stop and each resume as an `ovos.tools.event`, from every source: a client, a tool, the control
//! socket, a signal, the toolbox itself. Read [`publish`].

use std::sync::Arc;

use ovos_toolbox_wire::{Event, Severity};
use serde_json::json;

use super::toolboxes::Bridge;
use engine::{Fact, StopFollower};

/// The name that stands for every toolbox.
const EVERYTHING: &str = "all";

/// Publishes what the follower reads, until there is no more.
pub(super) async fn publish(mut stops: StopFollower, bridge: Arc<Bridge>) {
    while let Some((lost, fact)) = stops.next().await {
        if lost > 0 {
            tracing::warn!(lost, "too many stops and resumes at once: some have no event");
        }
        for (toolbox_id, event) in events(&fact) {
            bridge.event(&toolbox_id, event);
        }
    }
}

/// The events of a fact, one for each toolbox. A stop that finds no toolbox still has one: it holds those that will be loaded.
fn events(fact: &Fact) -> Vec<(String, Event)> {
    match fact {
        Fact::Stopped {
            stop_id,
            reason,
            toolboxes,
            ..
        } => {
            let event = Event {
                kind: "emergency_stop".to_owned(),
                severity: Severity::Warning,
                data: Some(json!({ "stop_id": stop_id, "by": reason })),
            };
            let everything = [EVERYTHING.to_owned()];
            let toolboxes = if toolboxes.is_empty() {
                &everything
            } else {
                toolboxes.as_slice()
            };
            toolboxes.iter().map(|id| (id.clone(), event.clone())).collect()
        }
        Fact::Resumed {
            toolbox_id,
            stop_id,
            by,
        } => {
            let event = Event {
                kind: "resumed".to_owned(),
                severity: Severity::Info,
                data: Some(json!({ "stop_id": stop_id, "by": by })),
            };
            vec![(toolbox_id.clone(), event)]
        }
        _ => Vec::new(),
    }
}
