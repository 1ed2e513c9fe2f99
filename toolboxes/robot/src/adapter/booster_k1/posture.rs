//! Whether the robot reports that it stands.
//!
//! A K1 reports on `/fall_down` whether it stands, falls, lies or gets up: recordings of two users have it once a second, and the
//! vendor gives no figure. No action is begun with a robot that does not stand, or has not said that it does. Read [`Posture`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::adapter::{BackendState, Notice, Notify};
use crate::dds::Participant;
use crate::dds::booster::{FALL_DOWN, FALL_DOWN_STATE, FallDownState};
use crate::ros::RosError;

/// The robot stands.
const READY: u32 = 0;
/// The robot has reported nothing; no number of the vendor's.
const UNKNOWN: u32 = u32::MAX;

/// The robot's last report.
pub(super) struct Posture(Arc<AtomicU32>);

impl Posture {
    /// Subscribes to the report, and sends a notice when it changes.
    pub(super) fn hear(participant: &Participant, notify: &Notify) -> Result<Self, RosError> {
        let posture = Arc::new(AtomicU32::new(UNKNOWN));
        let latest = Arc::clone(&posture);
        let notify = notify.clone();
        participant.subscribe(FALL_DOWN, FALL_DOWN_STATE, false, move |report: FallDownState| {
            let before = latest.swap(report.fall_down_state, Ordering::SeqCst);
            if before == report.fall_down_state {
                return;
            }
            let (state, reason) = match trouble(report.fall_down_state) {
                Some(trouble) => (BackendState::Degraded, trouble),
                None if before == UNKNOWN => return,
                None => (BackendState::Connected, "it stands again".to_owned()),
            };
            notify(Notice::Backend { state, reason });
        })?;
        Ok(Self(posture))
    }

    /// Why the robot cannot move; `None` if it stands or has reported nothing.
    pub(super) fn unfit(&self) -> Option<String> {
        trouble(self.0.load(Ordering::SeqCst))
    }

    /// What the robot has not reported yet.
    pub(super) fn unreported(&self) -> Option<&'static str> {
        (self.0.load(Ordering::SeqCst) == UNKNOWN).then_some(
            "no report on /fall_down whether the robot stands: look at it, and check that its motion control runs",
        )
    }

    /// Drops the report: the robot may have been restarted.
    pub(super) fn forget(&self) {
        self.0.store(UNKNOWN, Ordering::SeqCst);
    }
}

fn trouble(state: u32) -> Option<String> {
    Some(match state {
        READY | UNKNOWN => return None,
        1 => "the robot is falling".to_owned(),
        2 => "the robot has fallen and lies on the floor; get it up with its remote control".to_owned(),
        3 => "the robot is getting up; wait until it stands".to_owned(),
        other => format!("the robot does not stand: /fall_down says {other}"),
    })
}
