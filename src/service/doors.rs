//! Ends the calls of a door that was killed: the door cannot do so itself, and its clients cannot stop the motion that
//! they started.
//!
//! A door sends `ovos.tools.door.hello`, and `ovos.tools.door.beat` every 250 ms while something moves for its clients.
//! Both messages have the session of the door, which its calls have, too. Read [`watch`].

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use bus::Envelope;
use engine::{Cause, Engine};
use ovos_toolbox_wire::Effect;

/// How long a door may be silent while something moves for it.
const SILENCE: Duration = Duration::from_millis(800);

/// How often the doors are checked.
const LOOK: Duration = Duration::from_millis(100);

/// How many doors are known. If there are more, those that have been silent for the longest time are forgotten.
const DOORS: usize = 256;

/// Longer messages of doors, in bytes, are ignored.
const LARGEST: usize = 4 << 10;

/// The time of the last message of each door, by session.
#[derive(Default)]
pub(super) struct Doors {
    heard: Mutex<HashMap<String, Instant>>,
}

impl Doors {
    /// Whether messages of this type come from doors.
    pub(super) fn says(kind: &str) -> bool {
        matches!(kind, "ovos.tools.door.hello" | "ovos.tools.door.beat")
    }

    /// Notes that a door has sent a message.
    pub(super) fn hear(&self, text: &str) {
        if text.len() > LARGEST {
            return;
        }
        let Some(head) = Envelope::parse(text)
            .ok()
            .and_then(|envelope| envelope.head().ok())
        else {
            return;
        };
        if let Some(session) = head.session_id() {
            self.heard_of(session, Instant::now());
        }
    }

    fn heard_of(&self, session: &str, at: Instant) {
        let mut heard = self.heard.lock();
        if !heard.contains_key(session) && heard.len() >= DOORS {
            let oldest = heard.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(session, _)| session.clone()) {
                heard.remove(&oldest);
            }
        }
        heard.insert(session.to_owned(), at);
    }

    /// Ends the calls of doors that were silent for too long while something moved for them. `awake` is the time since
    /// which this process has run without a gap; before that it could receive nothing.
    fn end_orphans(&self, engine: &Engine, awake: Instant) {
        let heard = self.heard.lock().clone();
        if heard.is_empty() {
            return;
        }
        let calls = engine.calls();
        let silent: BTreeSet<&str> = calls
            .iter()
            .filter(|call| call.effect == Effect::Motion)
            .filter_map(|call| {
                let session = call.session_id.as_deref()?;
                // A call is a sign of life, too.
                let last = (*heard.get(session)?).max(call.received).max(awake);
                (last.elapsed() > SILENCE).then_some(session)
            })
            .collect();
        for call in &calls {
            let session = call.session_id.as_deref().unwrap_or_default();
            if silent.contains(session) && call.cause().is_none() {
                tracing::error!(
                    call_id = call.call_id,
                    tool = call.tool,
                    session,
                    "the call's door is gone"
                );
                call.end(Cause::Cancelled {
                    by: "the service, because its door is gone".to_owned(),
                });
            }
        }
    }
}

/// Checks the doors while something moves, until the shutdown.
pub(super) async fn watch(doors: Arc<Doors>, engine: Arc<Engine>, shutdown: CancellationToken) {
    let mut motion = engine.motion();
    let looking = async {
        while motion.wait_for(|moves| *moves).await.is_ok() {
            let mut awake = Instant::now();
            while *motion.borrow_and_update() {
                let looked = Instant::now();
                tokio::time::sleep(LOOK).await;
                if looked.elapsed() > 3 * LOOK {
                    awake = Instant::now();
                }
                doors.end_orphans(&engine, awake);
            }
        }
    };
    tokio::select! {
        () = looking => {}
        () = shutdown.cancelled() => {}
    }
}
