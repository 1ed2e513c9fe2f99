//! The battery action: the safe call that the toolbox makes when a vehicle's charge falls below the reserve.
//!
//! It is the only call without a caller; [`Vehicle::acts_on_battery`] says when it may run. Read [`keep_watch`].

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;

use crate::answer::Reply;
use crate::config::BatteryAction;
use crate::guard::{self, Caller, Refusal};
use crate::tools::{self, Job};
use crate::vehicle::{Call, Gate, Vehicle};

/// How long the charge has to stay below the reserve, vehicle time; the voltage dips under load.
const SURE: Duration = Duration::from_secs(3);
/// Interval between checks.
const LOOK: Duration = Duration::from_millis(250);

/// The gate of a call without a caller: only a stop or a takeover ends it, by withdrawing its right to command.
struct Own;

impl Gate for Own {
    fn command(&self, send: &mut dyn FnMut()) -> bool {
        send();
        true
    }
    fn progress(&self, _: f64, _: &str) {}
    fn caller(&self) -> Caller {
        Caller::default()
    }
}

/// Watches a vehicle's battery until [`Vehicle::close`].
pub(crate) fn keep_watch(vehicle: &Arc<Vehicle>) {
    vehicle.spawn(watch(Arc::clone(vehicle)));
}

/// # Cancel safety
/// When dropped, nothing more is sent.
async fn watch(vehicle: Arc<Vehicle>) {
    let mut low_since: Option<Instant> = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(pct) = vehicle.acts_on_battery() else {
            low_since = None;
            continue;
        };
        let since = *low_since.get_or_insert_with(Instant::now);
        if vehicle.clock.since(since) >= SURE {
            low_since = None;
            act(&vehicle, pct).await;
        }
    }
}

async fn act(vehicle: &Arc<Vehicle>, pct: f64) {
    let (tool, args) = match vehicle.config.battery_action {
        BatteryAction::Rtl => ("rtl", json!({})),
        BatteryAction::Land => ("land", json!({})),
        BatteryAction::Hold => ("hold", json!({"ms": 0})),
    };
    let id = format!("battery-{}", uuid::Uuid::new_v4());
    let reserve = vehicle.config.flight_limits.min_battery_pct;
    let record = json!({"vehicle": vehicle.id, "call_id": id, "tool": tool, "battery_pct": pct, "reserve_pct": reserve});
    tracing::warn!(
        vehicle = vehicle.id,
        tool,
        pct,
        reserve,
        "the battery is below the reserve"
    );
    vehicle.log.write(
        "call",
        || json!({"call_id": id, "tool": tool, "args": args, "by": "battery_action", "battery_pct": pct}),
    );
    vehicle.event("battery_action", record.clone());
    // Begins before the motion call ends, so that the brake of that call does not stop this one.
    let call = vehicle.begin(id.clone(), Effect::Safe, Arc::new(Own));
    vehicle.give_up_motion(format!(
        "the battery is at {pct:.0} %, below the reserve of {reserve:.0} %: {tool}"
    ));
    let done = run(call, tool, args);
    let reply = tokio::select! {
        reply = done => reply,
        // A user's own land, rtl or hold has priority.
        () = vehicle.another_safe_call() => Reply::failed("cancelled", "another call brings it to safety"),
    };
    let mut ended = record;
    ended["answer"] = reply.json(None, vehicle.is_simulated());
    vehicle.log.write(
        "answer",
        || json!({"call_id": id, "tool": tool, "answer": ended["answer"]}),
    );
    vehicle.event("battery_action", ended);
}

async fn run(call: Call, tool: &str, args: Value) -> Reply {
    let judged = tools::entry(tool).map(|entry| {
        let facts = call.vehicle.facts();
        guard::require(entry.row.needs, &facts, &call.vehicle.config.flight_limits).map(|()| entry)
    });
    match judged {
        Some(Ok(entry)) => {
            (entry.run)(Job {
                call,
                row: entry.row,
                args,
            })
            .await
        }
        Some(Err(Refusal { code, msg })) => Reply::failed(code, msg),
        None => Reply::failed("bad_args", format!("no tool {tool}")),
    }
}
