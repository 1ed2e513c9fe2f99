//! The G1's own arm actions: wave, clap and so on.
//!
//! The robot performs one at a time and answers when it is over. Some keep the arms up until the arms are released.
//! Owns starting the actions, and releasing the arms in every case. Read [`Gestures`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::dds::Participant;
use crate::dds::asked::DdsRequest;
use crate::dds::unitree::{Rpc, api};
use crate::ros::RosError;

/// How long the answer to an action may take. By the vendor's example for `G1ArmActionClient` all take less than ten
/// seconds.
pub(super) const LONGEST: Duration = Duration::from_secs(12);
/// The action that releases the arms.
const RELEASE: i64 = 99;
/// The pause between two tries to release the arms: the robot may refuse during an action.
const AGAIN: Duration = Duration::from_millis(500);

/// The robot's service `arm`.
pub(super) struct Gestures {
    participant: Arc<Participant>,
    rpc: Rpc,
    under_way: Arc<UnderWay>,
}

/// The newest action whose release was not confirmed.
#[derive(Default)]
struct UnderWay {
    last: AtomicU64,
    now: Mutex<Option<u64>>,
}

impl UnderWay {
    fn now(&self) -> MutexGuard<'_, Option<u64>> {
        self.now.lock()
    }

    /// Marks this action as over: the arms are released, or the last try to release them has ended.
    fn over(&self, number: Option<u64>) {
        let mut now = self.now();
        if *now == number {
            *now = None;
        }
    }
}

impl Gestures {
    pub(super) fn new(participant: Arc<Participant>) -> Result<Self, RosError> {
        Ok(Self {
            rpc: Rpc::new(&participant, "arm", LONGEST)?,
            participant,
            under_way: Arc::default(),
        })
    }

    /// Whether the arms may be performing or holding an action.
    pub(super) fn are_under_way(&self) -> bool {
        self.under_way.now().is_some()
    }

    /// Whether the robot's service hears requests and we hear its answers. Before that, a request or an answer may be
    /// lost.
    pub(super) fn are_heard(&self) -> bool {
        self.rpc.is_ready()
    }

    /// Begins an action; its answer comes when it is over.
    pub(super) fn begin(&self, action: i64) -> Result<DdsRequest, RosError> {
        let number = self.under_way.last.fetch_add(1, Ordering::SeqCst);
        *self.under_way.now() = Some(number);
        let asked = self.rpc.ask(api::ARM_ACTION, &action_body(action));
        if asked.is_err() {
            self.forget();
        }
        asked
    }

    /// Releases the arms; the answer comes when they are back.
    pub(super) fn release(&self) -> Result<DdsRequest, RosError> {
        self.rpc.ask(api::ARM_ACTION, &release_body())
    }

    /// Drops the action: the robot has confirmed its end, never began it, or was away.
    pub(super) fn forget(&self) {
        *self.under_way.now() = None;
    }

    /// Releases the arms now, and again until the robot confirms it, another action is begun, or no action can run
    /// any more.
    pub(super) fn insist(&self) -> Result<(), RosError> {
        let number = *self.under_way.now();
        let mut asked = self.release()?;
        let (rpc, under_way) = (self.rpc.clone(), Arc::clone(&self.under_way));
        // The release is sent already. If no task can be started, the release is not repeated.
        let _ = self.participant.start(async move {
            let end = Instant::now() + LONGEST;
            while let Err(error) = asked.answer().await {
                if Instant::now() >= end || *under_way.now() != number {
                    tracing::warn!(%error, "the robot did not say that its arms are released");
                    break;
                }
                tokio::time::sleep(AGAIN).await;
                match rpc.ask(api::ARM_ACTION, &release_body()) {
                    Ok(again) => asked = again,
                    Err(_) => break,
                }
            }
            under_way.over(number);
        });
        Ok(())
    }
}

/// The body has both keys: the C++ SDK uses `action_id`, the Python SDK and older firmwares use `data`.
fn action_body(action: i64) -> Value {
    json!({"action_id": action, "data": action})
}

/// The body of the request that releases the arms.
pub(super) fn release_body() -> Value {
    action_body(RELEASE)
}
