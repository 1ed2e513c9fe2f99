//! Ends the calls of a door that was killed: the door cannot do so itself, and its clients cannot stop the motion that
//! they started.
//!
//! A door sends `ovos.tools.door.hello`, and `ovos.tools.door.beat` every 250 ms while something moves for its clients.
//! Both messages have the session of the door, which its calls have, too. Read [`watch`].

use std::collections::{BTreeSet, HashMap, HashSet};
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

/// How many doors are known. If there are more, one for which nothing moves is forgotten; the doors for which something moves
/// are as many as the calls at most.
const DOORS: usize = 256;

/// Longer messages of doors, in bytes, are ignored.
const LARGEST: usize = 4 << 10;

/// The doors that have sent a message, by session.
#[derive(Default)]
pub(super) struct Doors {
    signs: Mutex<HashMap<String, DoorSign>>,
    /// The sessions in which something moved when the doors were last checked.
    moving: Mutex<HashSet<String>>,
}

/// What was heard of a door.
#[derive(Clone, Copy)]
struct DoorSign {
    /// The time of its last message.
    at: Instant,
    /// Whether it has ever beaten, as doors do before something moves for them.
    beats: bool,
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
            let beats = head.kind == "ovos.tools.door.beat";
            self.heard_of(session, beats, Instant::now());
        }
    }

    fn heard_of(&self, session: &str, beats: bool, at: Instant) {
        let mut signs = self.signs.lock();
        let is_alive = signs.get(session).is_some_and(|known| known.beats);
        if !signs.contains_key(session) && signs.len() >= DOORS {
            // A message costs nothing, so it must not push out a door that has to be watched.
            let moving = self.moving.lock();
            let idle = signs.iter().filter(|(session, _)| !moving.contains(*session));
            let oldest = idle.min_by_key(|(_, sign)| (sign.beats, sign.at));
            if let Some(oldest) = oldest.map(|(session, _)| session.clone()) {
                signs.remove(&oldest);
            }
        }
        let beats = beats || is_alive;
        signs.insert(session.to_owned(), DoorSign { at, beats });
    }

    /// Ends the calls of doors that were silent for too long while something moved for them. `awake` is the time since
    /// which this process has run without a gap; before that it could receive nothing.
    fn end_orphans(&self, engine: &Engine, awake: Instant) {
        let signs = self.signs.lock().clone();
        if signs.is_empty() {
            return;
        }
        let calls = engine.calls();
        let moving = calls.iter().filter(|call| call.effect == Effect::Motion);
        *self.moving.lock() = moving.filter_map(|call| call.session_id.clone()).collect();
        let silent: BTreeSet<&str> = calls
            .iter()
            .filter(|call| call.effect == Effect::Motion)
            .filter_map(|call| {
                let session = call.session_id.as_deref()?;
                // A call is a sign of life, too.
                let last = signs.get(session)?.at.max(call.received).max(awake);
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
                    "the door of the call disconnected"
                );
                call.end(Cause::Cancelled {
                    by: "the service, because its door disconnected".to_owned(),
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
            doors.moving.lock().clear();
        }
    };
    tokio::select! {
        () = looking => {}
        () = shutdown.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_messages_makes_no_moving_door_forgotten() {
        let doors = Doors::default();
        let begin = Instant::now();
        let after = |ms: u64| begin + Duration::from_millis(ms);
        let knows = |session: &str| doors.signs.lock().contains_key(session);
        doors.heard_of("moving", true, after(0));
        doors.heard_of("beating", true, after(1));
        doors.heard_of("idle", false, after(2));
        doors.moving.lock().insert("moving".to_owned());
        for n in 0..1000 {
            doors.heard_of(&format!("hello{n}"), false, after(10 + n));
        }
        assert!(knows("moving") && knows("beating") && knows("hello999"));
        assert!(
            !knows("idle"),
            "the one that was silent for the longest time goes first"
        );
        for n in 0..1000 {
            doors.heard_of(&format!("beat{n}"), true, after(2000 + n));
        }
        assert!(knows("moving") && knows("beat999"));
        assert_eq!(doors.signs.lock().len(), DOORS);
        // The doors for which something moves are all known, even if they are more.
        let moving: HashSet<String> = (0..2 * DOORS).map(|n| format!("moving{n}")).collect();
        doors.moving.lock().extend(moving.iter().cloned());
        for session in &moving {
            doors.heard_of(session, true, after(4000));
        }
        assert!(moving.iter().all(|session| knows(session)) && knows("moving"));
    }
}
