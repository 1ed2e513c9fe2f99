//! Clients that call testbed all the time and check that each call gets one answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{RwLock, RwLockWriteGuard};

use serde_json::{Value, json};

use crate::support::client::Client;

pub(crate) const CALLERS: usize = 2;

/// Calls of one caller that are under way.
const AT_ONCE: usize = 8;

/// Whether and on which bus the callers call.
#[derive(Default)]
pub(crate) struct Pace {
    over: AtomicBool,
    /// Read while calls are under way.
    calling: RwLock<()>,
    /// The number of the bus: a restart makes the next one.
    bus: AtomicU64,
}

impl Pace {
    /// Waits until no call of a caller is under way, and keeps it so.
    pub(crate) fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.calling.write().unwrap()
    }

    /// Makes every caller reconnect.
    pub(crate) fn new_bus(&self) {
        self.bus.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the callers when dropped.
    pub(crate) fn over_on_drop(&self) -> Over<'_> {
        Over(&self.over)
    }
}

/// Sets a flag when dropped.
pub(crate) struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The answers that a caller got.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) calls: usize,
    /// Calls that ended with their toolbox, or with its stop.
    pub(crate) disturbed: usize,
}

/// Calls until it is told to end.
pub(crate) fn caller(number: usize, seed: u64, port: u16, pace: &Pace) -> Seen {
    let mine = format!("c{number}-");
    let mut client = Client::connect(port).in_session(&format!("caller-{number}"));
    let mut random = fastrand::Rng::with_seed(seed ^ (number as u64 + 1));
    let mut seen = Seen::default();
    let mut bus = 0;
    while !pace.over.load(Ordering::SeqCst) {
        let _calling = pace.calling.read().unwrap();
        let current = pace.bus.load(Ordering::SeqCst);
        if current != bus {
            client.reconnect();
            bus = current;
        }
        let batch: Vec<(String, u8)> = (seen.calls..seen.calls + AT_ONCE)
            .map(|n| (format!("{mine}{n}"), random.u8(..8)))
            .collect();
        for (call_id, kind) in &batch {
            let (name, args) = question(*kind);
            client.call(call_id, name, &args);
        }
        client.until_answered(batch.iter().map(|(call_id, _)| call_id));
        for (call_id, kind) in &batch {
            let answer = client.settled(call_id);
            seen.disturbed += usize::from(!is_right(*kind, &answer));
        }
        let strays = client.strays(&mine);
        assert!(strays.is_empty(), "answered twice: {strays:?}");
        seen.calls += batch.len();
    }
    let _calling = pace.calling.read().unwrap();
    if pace.bus.load(Ordering::SeqCst) != bus {
        client.reconnect();
    }
    // An answer that was sent twice has arrived by now.
    client.ask("ovos.tools.status", &json!({}));
    let strays = client.strays(&mine);
    assert!(strays.is_empty(), "answered twice: {strays:?}");
    seen
}

fn question(kind: u8) -> (&'static str, Value) {
    match kind {
        0..=2 => ("add", json!({ "a": 20, "b": "22" })),
        3 => ("echo", json!({ "text": "x".repeat(2000) })),
        4 => ("slow", json!({ "seconds": 0.02 })),
        5 => ("fail", json!({ "message": "as told" })),
        6 => ("add", json!({ "a": [] })),
        _ => (
            "assemble",
            json!({ "steps": 1, "step_ms": 1, "subsystems": ["base"] }),
        ),
    }
}

/// Whether an answer is the usual result. Errors because the toolbox died or was stopped are allowed; anything else
/// fails the test.
#[track_caller]
fn is_right(kind: u8, answer: &Value) -> bool {
    let (result, error) = (&answer["result"], answer["error"].as_str().unwrap_or_default());
    let right = match kind {
        0..=2 => result["result"] == 42,
        3 => result["text"].as_str().is_some_and(|text| text.len() == 2000),
        4 => result["seconds"] == 0.02,
        5 => error.ends_with("RuntimeError: as told"),
        6 => error.contains('a') && result.is_null() && !error.starts_with("Toolbox"),
        _ => result["success"].is_boolean(),
    };
    let disturbed = [
        "ToolboxCrashed",
        "ToolboxUnavailable",
        "ToolboxClosed",
        "TimeoutError",
        "CancelledError",
        "EmergencyStop",
    ];
    assert!(
        right || disturbed.iter().any(|kind| error.starts_with(kind)),
        "call of kind {kind}: {answer}"
    );
    right
}
