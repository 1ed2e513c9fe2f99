//! Whether the robot reports that it stands.
//!
//! A K1 reports on `/fall_down` that it falls, lies or gets up. No action is begun with a robot that does not stand.
//! Read [`Posture`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::adapter::{BackendState, Notice, Notify};
use crate::dds::Participant;
use crate::dds::booster::{FALL_DOWN, FALL_DOWN_STATE, FallDownState};
use crate::ros::RosError;

/// The robot stands, or has reported nothing.
const READY: u32 = 0;

/// The robot's last report.
pub(super) struct Posture(Arc<AtomicU32>);

impl Posture {
    /// Subscribes to the report, and sends a notice when it changes.
    pub(super) fn hear(participant: &Participant, notify: &Notify) -> Result<Self, RosError> {
        let posture = Arc::new(AtomicU32::new(READY));
        let latest = Arc::clone(&posture);
        let notify = notify.clone();
        participant.subscribe(FALL_DOWN, FALL_DOWN_STATE, false, move |report: FallDownState| {
            if latest.swap(report.fall_down_state, Ordering::SeqCst) == report.fall_down_state {
                return;
            }
            let (state, reason) = match trouble(report.fall_down_state) {
                Some(trouble) => (BackendState::Degraded, trouble),
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

    /// Drops the report: the robot may have been restarted.
    pub(super) fn forget(&self) {
        self.0.store(READY, Ordering::SeqCst);
    }
}

fn trouble(state: u32) -> Option<String> {
    Some(match state {
        READY => return None,
        1 => "the robot is falling".to_owned(),
        2 => "the robot has fallen and lies on the floor; get it up with its remote control".to_owned(),
        3 => "the robot is getting up; wait until it stands".to_owned(),
        other => format!("the robot does not stand: /fall_down says {other}"),
    })
}
