//! Who commands the vehicle: what we requested, whether the vehicle follows, and whether another party has taken over.
//!
//! Pure state, no IO. A mode that was reached and then left without our command was changed by another party: a pilot,
//! a ground station, or PX4's failsafe. Read [`Control::observe`].

use std::time::Duration;

use tokio::time::Instant;

use super::command::{Command, Waypoint};
use super::right::{EndReason, Right};
use super::telemetry::{ModeReport, Telemetry};
use crate::geo::Ned;
use crate::guard::{Landed, Mode, OverrideCause, Pose};

/// PX4 ends a take-off 0.8 m below its height; the height varies by another half a metre, metres.
const RISEN_M: f64 = 1.3;
/// PX4 ends a path within a metre of its last waypoint. The mode is reported up to a second later, and PX4 may have
/// moved its height reference meanwhile. Metres.
const PATH_END_M: f64 = 3.0;
const PATH_END_HEIGHT_M: f64 = 4.5;
/// How far the vehicle may be from the last waypoint once PX4 has reported that one reached: PX4's simulation overshoots
/// a stop by 2 m and drifts by up to 1.3 m. Metres.
const PATH_REACHED_M: f64 = 5.0;
/// How long a command may take to be carried out and reported: its request ends after 5 s, modes come once a second.
const LATE: Duration = Duration::from_secs(7);
/// A mode shown within this time of a command may be from before the vehicle obeyed it.
const CROSSES: Duration = Duration::from_secs(1);

/// The last mode requested.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ModeRequest {
    mode: Mode,
    reached: bool,
    /// The previous mode, which may still be reported until the wanted one is reached.
    before: Option<Mode>,
}

/// A takeover by another party, or by the autopilot itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Takeover {
    pub(crate) taken: OverrideCause,
    /// The pilot's mode, if a command of ours may have ended it.
    pub(crate) give_back: Option<Mode>,
    /// Whether it may still turn out to be a failsafe; see [`Control::is_unsure`].
    pub(crate) unsure: bool,
    /// Whether it is the first since an operator lifted the latch; later ones are not reported to the bus.
    pub(crate) first: bool,
}

/// A change that we did not command.
struct ForeignChange {
    how: String,
    failsafe: bool,
    /// The mode in which a pilot flies.
    pilot: Option<Mode>,
    /// The mode and the one that we wanted, where a failsafe has not been excluded yet.
    unsure: Option<(Mode, Mode)>,
}

impl ForeignChange {
    fn changed(mode: Mode, wanted: Mode, failsafe: bool) -> Self {
        let (mode_name, wanted) = (mode.name(), wanted.name());
        Self {
            how: if failsafe {
                format!(
                    "a failsafe of the vehicle changed the flight mode to {mode_name} (expected {wanted})"
                )
            } else {
                format!("the flight mode changed to {mode_name}, and not by our command (expected {wanted})")
            },
            failsafe,
            pilot: Some(mode).filter(|mode| mode.is_manual() && !failsafe),
            unsure: None,
        }
    }
}

/// What the vehicle has said, as the end of a sentence.
fn quote_last_words(heard: &Telemetry, failsafe: bool) -> String {
    let words = heard.failsafe_words().filter(|_| failsafe).or(heard.last_words());
    words.map_or(String::new(), |words| format!("; the vehicle said last: {words}"))
}

/// Whether PX4's own failsafe has changed to this mode: PX4 reports that a user intended another one, or, where it does
/// not report intentions, has spoken of a failsafe just now.
fn is_failsafe(mode: Mode, heard: &Telemetry) -> bool {
    match heard.present {
        Some(present) if present.mode == mode => present.intended != mode,
        _ => heard.failsafe_words().is_some(),
    }
}

/// Who commands the vehicle.
#[derive(Debug)]
pub(crate) struct Control {
    wanted: Option<ModeRequest>,
    /// Modes requested before that one which the vehicle may still enter until this time, because MAVSDK may send the
    /// commands in another order.
    late: Vec<(Mode, Instant)>,
    /// When a mode was last requested, even if the vehicle was already in that mode.
    requested: Option<Instant>,
    overridden: Option<OverrideCause>,
    /// Whether the last mode was requested by an emergency stop.
    pub(super) stops: bool,
    /// When the last switch to a pilot's mode was heard that was looked at.
    switched_at: Option<Instant>,
    /// A mode that another party or a failsafe selected: which of them is not known yet, and the mode that we wanted.
    unsure: Option<(Mode, Mode)>,
    /// Whether one of our calls has flown the vehicle since arming, and no other party has flown it since that call.
    flown: bool,
    /// Whether this flight's battery action was used.
    battery_spent: bool,
    /// Whether an emergency stop is in force.
    pub(super) latched: bool,
    may_disarm: bool,
    was_armed: bool,
    last: Option<Mode>,
    /// The height requested for the take-off, metres above home.
    rises_to_m: Option<f64>,
    /// The last waypoint of the uploaded path.
    path_end: Option<Waypoint>,
    /// The last position setpoint.
    pointed: Option<Ned>,
    motion: Right,
    safe: Right,
    /// Number of running safe calls; a halt that is no emergency does not end them.
    pub(crate) safe_calls: usize,
    /// Number of running motion calls.
    pub(crate) motion_calls: usize,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            wanted: None,
            late: Vec::new(),
            requested: None,
            overridden: None,
            stops: false,
            switched_at: None,
            unsure: None,
            flown: false,
            battery_spent: false,
            latched: false,
            may_disarm: true,
            was_armed: false,
            last: None,
            rises_to_m: None,
            path_end: None,
            pointed: None,
            motion: Right::new(0),
            safe: Right::new(0),
            safe_calls: 0,
            motion_calls: 0,
        }
    }
}

impl Control {
    /// The current right of the safe calls or of the motion calls.
    pub(crate) fn right(&self, safe: bool) -> Right {
        if safe {
            self.safe.clone()
        } else {
            self.motion.clone()
        }
    }

    /// Whether a right still holds.
    pub(crate) fn holds(&self, right: &Right) -> bool {
        !right.is_withdrawn()
    }

    /// Ends the motion calls, and with `safe` also the safe calls.
    pub(crate) fn withdraw(&mut self, why: &EndReason, safe: bool) {
        self.motion.withdraw(why);
        if safe {
            self.safe.withdraw(why);
        }
    }

    /// Stores the height, the last waypoint or the position to which a command leads; called right before it is sent.
    pub(crate) fn store_target(&mut self, command: &Command) {
        match command {
            Command::TakeoffAltitude(metres) => self.rises_to_m = Some(*metres),
            Command::UploadMission(path) => self.path_end = path.last().copied(),
            Command::Position { ned, .. } => self.pointed = Some(*ned),
            _ => {}
        }
    }

    /// Remembers the mode about to be requested.
    pub(crate) fn want(&mut self, mode: Mode) {
        self.requested = Some(Instant::now());
        if self
            .wanted
            .is_some_and(|wanted| wanted.mode == mode && wanted.reached)
        {
            return;
        }
        self.may_disarm = matches!(mode, Mode::Land | Mode::ReturnToLaunch);
        let unreached = self
            .wanted
            .filter(|wanted| !wanted.reached && wanted.mode != mode);
        self.expect_late(unreached.map(|wanted| wanted.mode).into_iter());
        self.wanted = Some(ModeRequest {
            mode,
            reached: false,
            before: self.last,
        });
    }

    /// Records that the vehicle may still enter these modes after it has reached the one requested next.
    pub(crate) fn expect_late(&mut self, modes: impl Iterator<Item = Mode>) {
        let now = Instant::now();
        self.late.retain(|(_, until)| now < *until);
        self.late.extend(modes.map(|mode| (mode, now + LATE)));
    }

    /// Whether a command sent before the last one may have led to `mode`.
    fn may_be_late(&self, mode: Mode) -> bool {
        let now = Instant::now();
        self.late
            .iter()
            .any(|(late, until)| *late == mode && now < *until)
    }

    /// Remembers that we are about to disarm.
    pub(crate) fn want_disarmed(&mut self) {
        self.may_disarm = true;
    }

    /// Accepts the present state after a failed request or a pilot's handover.
    pub(crate) fn settle(&mut self) {
        self.wanted = None;
        self.late.clear();
        self.may_disarm = true;
    }

    /// Whether the requested mode was reached.
    pub(crate) fn reached(&self, mode: Mode) -> bool {
        self.wanted
            .is_some_and(|wanted| wanted.mode == mode && wanted.reached)
    }

    /// The last position setpoint, while offboard control continues.
    pub(crate) fn pointed(&self) -> Option<Ned> {
        self.pointed.filter(|_| self.reached(Mode::Offboard))
    }

    /// Whether no other mode was requested since.
    pub(crate) fn still_wants(&self, mode: Mode) -> bool {
        self.wanted.is_none_or(|wanted| wanted.mode == mode)
    }

    /// Whether the last requested mode is offboard.
    pub(crate) fn is_offboard(&self) -> bool {
        self.wanted.is_some_and(|wanted| wanted.mode == Mode::Offboard)
    }

    /// How the vehicle was taken from us, if it was.
    pub(crate) fn overridden(&self) -> Option<&OverrideCause> {
        self.overridden.as_ref()
    }

    /// Whether the reports that tell a failsafe from a ground station have not come yet: the mode, the intention and the
    /// words of the vehicle come by three streams, within some milliseconds.
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure.is_some()
    }

    /// Takes the change that it is not sure about for another party's.
    pub(crate) fn stop_waiting(&mut self) {
        self.unsure = None;
    }

    /// Looks for what names the last takeover.
    fn name(&mut self, heard: &Telemetry) {
        let Some((mode, wanted)) = self.unsure else { return };
        let reported = heard.present.is_some_and(|present| present.mode == mode);
        if !reported && heard.failsafe_words().is_none() {
            return;
        }
        self.unsure = None;
        if is_failsafe(mode, heard)
            && let Some(taken) = &mut self.overridden
        {
            taken.failsafe = true;
            taken.how = ForeignChange::changed(mode, wanted, true).how + &quote_last_words(heard, true);
        }
    }

    /// Records that a call relies on this mode, which the vehicle has already; a change of it is a takeover from now on.
    pub(crate) fn keep(&mut self, mode: Mode) {
        if self.wanted.is_none() {
            self.wanted = Some(ModeRequest {
                mode,
                reached: true,
                before: None,
            });
        }
    }

    /// Records that a motion call commands the vehicle.
    pub(crate) fn flies(&mut self) {
        self.flown = true;
    }

    /// Whether the battery action may command it; see [`super::unit::Vehicle::acts_on_battery`].
    pub(crate) fn acts_on_battery(&self) -> bool {
        self.flown
            && !self.battery_spent
            && !self.latched
            && self.overridden.is_none()
            && self.safe_calls == 0
    }

    /// Ends the motion calls because of the battery.
    pub(crate) fn spend_battery_action(&mut self, why: String) {
        self.battery_spent = true;
        self.withdraw(&EndReason::Battery(why), false);
    }

    /// Lifts the latch for an operator.
    pub(crate) fn hand_back(&mut self) {
        self.latched = false;
        self.overridden = None;
        self.settle();
    }

    /// Compares telemetry with our requests. After a takeover no running call may command any more when this returns,
    /// even one that began after an earlier takeover.
    pub(crate) fn observe(&mut self, heard: &Telemetry) -> Option<Takeover> {
        self.name(heard);
        let pilot = self.pilot_switched(heard);
        let found = pilot.or_else(|| self.find_change(heard));
        if heard.armed == Some(false) {
            (self.flown, self.battery_spent) = (false, false);
        }
        self.was_armed = heard.armed == Some(true);
        self.last = heard.mode.or(self.last);
        let ForeignChange {
            how,
            failsafe,
            pilot,
            unsure,
        } = found?;
        let words = quote_last_words(heard, failsafe);
        self.unsure = unsure;
        let crosses = self.requested.is_some_and(|at| at.elapsed() < CROSSES);
        let crossed = match (crosses, self.stops) {
            (false, _) => "",
            (true, false) => {
                "; a command of this toolbox was still on its way; if it has changed the mode, the pilot's mode is set again"
            }
            (true, true) => "; an emergency stop was still on its way and may have taken effect",
        };
        let taken = OverrideCause {
            how: format!("{how}{crossed}{words}"),
            failsafe,
        };
        self.flown = false;
        self.withdraw(&EndReason::Override(taken.clone()), true);
        let first = self.overridden.replace(taken.clone()).is_none();
        Some(Takeover {
            taken,
            give_back: pilot.filter(|_| crosses && !self.stops),
            unsure: unsure.is_some(),
            first,
        })
    }

    /// A pilot's mode in the vehicle's frequent reports, which a command of ours may have ended before the next
    /// heartbeat. We command no such mode, so it does not matter in which order those reports and the heartbeats arrive.
    fn pilot_switched(&mut self, heard: &Telemetry) -> Option<ForeignChange> {
        let switch = heard.switch?;
        let is_new = self.switched_at.replace(switch.at) != Some(switch.at);
        let wanted = self.wanted.filter(|wanted| !wanted.mode.is_manual())?;
        let switched = is_new && heard.armed == Some(true);
        switched.then(|| {
            let ModeReport { mode, intended } = switch.present;
            self.wanted = None;
            ForeignChange::changed(mode, wanted.mode, intended != mode)
        })
    }

    fn find_change(&mut self, heard: &Telemetry) -> Option<ForeignChange> {
        if self.was_armed && heard.armed == Some(false) {
            let standing = heard.landed == Some(Landed::OnGround) || heard.in_air == Some(false);
            let ours = self.may_disarm || standing && self.motion_calls == 0;
            self.wanted = None;
            return (!ours).then(|| ForeignChange {
                how: "the vehicle was disarmed, and not by our command".to_string(),
                failsafe: false,
                pilot: None,
                unsure: None,
            });
        }
        if heard.armed != Some(true) {
            return None;
        }
        let (mode, wanted) = (heard.mode?, self.wanted?);
        if mode == wanted.mode {
            self.wanted = Some(ModeRequest {
                reached: true,
                ..wanted
            });
            return None;
        }
        if self.may_be_late(mode) {
            // The brake or the call sends its command again.
            return None;
        }
        let expected = if wanted.reached {
            // Without a position the decision waits: the position comes with the next message.
            self.follows(wanted.mode, mode, heard)?
        } else {
            // Before a goto, an arming or a mission MAVSDK itself requests Hold.
            Some(mode) == wanted.before
                || matches!(mode, Mode::Hold | Mode::Ready | Mode::Unknown)
                || wanted
                    .before
                    .is_some_and(|before| self.follows(before, mode, heard) != Some(false))
        };
        if expected {
            if wanted.reached {
                self.late.clear();
                self.wanted = Some(ModeRequest {
                    mode,
                    reached: true,
                    before: None,
                });
            }
            return None;
        }
        self.wanted = None;
        let failsafe = is_failsafe(mode, heard);
        let reported = heard.present.is_some_and(|present| present.mode == mode);
        let unsure = !failsafe && !reported && !mode.is_manual();
        Some(ForeignChange {
            unsure: unsure.then_some((mode, wanted.mode)),
            ..ForeignChange::changed(mode, wanted.mode, failsafe)
        })
    }

    /// Whether PX4 changes from `mode` to `next` by itself because the mode's work is done here. The same change
    /// elsewhere comes from a failsafe or a ground station. `None` while the position is unknown.
    fn follows(&self, mode: Mode, next: Mode, heard: &Telemetry) -> Option<bool> {
        let rests = matches!(next, Mode::Hold | Mode::Ready);
        let standing = heard.in_air == Some(false);
        match mode {
            Mode::Takeoff if rests => Some(self.has_risen(heard.pose()?)),
            Mode::Mission if rests => Some(self.has_flown_its_path(heard.pose()?, heard)),
            Mode::ReturnToLaunch => Some(standing || next == Mode::Land && heard.is_over_launch()),
            Mode::Land => Some(standing),
            Mode::Hold | Mode::Ready => Some(rests),
            _ => Some(false),
        }
    }

    fn has_risen(&self, pose: Pose) -> bool {
        self.rises_to_m.is_some_and(|to| pose.alt_m >= to - RISEN_M)
    }

    fn has_flown_its_path(&self, pose: Pose, heard: &Telemetry) -> bool {
        let Some(end) = self.path_end else {
            return false;
        };
        // A path may cross its last waypoint early. The last progress message may arrive after the mode.
        let left = heard
            .mission
            .map_or(1, |seen| seen.value.total - seen.value.current);
        let within_m = if left <= 0 { PATH_REACHED_M } else { PATH_END_M };
        // Heights of a path are above PX4's own home.
        let flat = pose.away_from(end.lat, end.lon);
        let height = (pose.relative_m - end.alt_m).abs();
        left <= 1 && flat <= within_m && height <= PATH_END_HEIGHT_M
    }
}

#[cfg(test)]
mod tests;
