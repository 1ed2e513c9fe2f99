//! Who flies: what we have commanded, whether the vehicle does it, and whether somebody else has taken over.
//!
//! Pure state, no IO. A mode that was reached and then left without our command is somebody else's: a pilot, a ground
//! station, PX4's own failsafe. Read [`Control::observe`].

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::telemetry::Telemetry;
use crate::guard::{Landed, Mode};

/// Why running calls were ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// A halt: cancelled, timed out, or an emergency stop.
    Halted,
    /// Somebody else has taken over, and how.
    Override(String),
    /// The toolbox closes.
    Closed,
}

/// A right to command that can be withdrawn. Motion and safe calls have one each.
#[derive(Clone, Debug)]
pub(crate) struct Right {
    number: u64,
    token: CancellationToken,
    why: Arc<std::sync::OnceLock<Ended>>,
}

impl Right {
    fn new(number: u64) -> Self {
        Self {
            number,
            token: CancellationToken::new(),
            why: Arc::default(),
        }
    }

    /// Resolves when the right is withdrawn.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn withdrawn(&self) -> Ended {
        self.token.cancelled().await;
        self.why.get().cloned().unwrap_or(Ended::Halted)
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.token.is_cancelled()
    }

    pub(crate) fn why(&self) -> Ended {
        self.why.get().cloned().unwrap_or(Ended::Halted)
    }
}

/// What we asked for last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wanted {
    mode: Mode,
    reached: bool,
    /// The mode before, which may be seen until the wanted one is reached.
    before: Option<Mode>,
}

/// Who flies.
#[derive(Debug)]
pub(crate) struct Control {
    wanted: Option<Wanted>,
    overridden: Option<String>,
    may_disarm: bool,
    was_armed: bool,
    last: Option<Mode>,
    motion: Right,
    safe: Right,
    /// Safe calls under way: a halt that is no emergency leaves them alone.
    pub(crate) safe_calls: usize,
    /// Motion calls under way.
    pub(crate) motion_calls: usize,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            wanted: None,
            overridden: None,
            may_disarm: true,
            was_armed: false,
            last: None,
            motion: Right::new(0),
            safe: Right::new(0),
            safe_calls: 0,
            motion_calls: 0,
        }
    }
}

impl Control {
    /// The current right of motion calls, or of safe ones.
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

    /// Ends the motion calls, with `safe` also the safe ones.
    pub(crate) fn withdraw(&mut self, why: &Ended, safe: bool) {
        let end = |right: &mut Right| {
            let old = std::mem::replace(right, Right::new(right.number + 1));
            // The first reason is the one that counts.
            let _ = old.why.set(why.clone());
            old.token.cancel();
        };
        end(&mut self.motion);
        if safe {
            end(&mut self.safe);
        }
    }

    /// We are about to ask for a mode.
    pub(crate) fn want(&mut self, mode: Mode) {
        if self
            .wanted
            .is_some_and(|wanted| wanted.mode == mode && wanted.reached)
        {
            return;
        }
        self.may_disarm = matches!(mode, Mode::Land | Mode::ReturnToLaunch);
        self.wanted = Some(Wanted {
            mode,
            reached: false,
            before: self.last,
        });
    }

    /// We are about to disarm.
    pub(crate) fn want_disarmed(&mut self) {
        self.may_disarm = true;
    }

    /// What we asked for did not come about, or a pilot has handed back: whatever flies now is taken as it is.
    pub(crate) fn settle(&mut self) {
        self.wanted = None;
        self.may_disarm = true;
    }

    /// Whether the mode that was asked for was seen.
    pub(crate) fn reached(&self, mode: Mode) -> bool {
        self.wanted
            .is_some_and(|wanted| wanted.mode == mode && wanted.reached)
    }

    /// Whether nothing else was asked for since.
    pub(crate) fn still_wants(&self, mode: Mode) -> bool {
        self.wanted.is_none_or(|wanted| wanted.mode == mode)
    }

    /// Whether offboard control was asked for last.
    pub(crate) fn is_offboard(&self) -> bool {
        self.wanted.is_some_and(|wanted| wanted.mode == Mode::Offboard)
    }

    /// Somebody else's takeover, once one was seen.
    pub(crate) fn overridden(&self) -> Option<&str> {
        self.overridden.as_deref()
    }

    /// The operator has lifted the latch.
    pub(crate) fn hand_back(&mut self) {
        self.overridden = None;
        self.settle();
    }

    /// Compares what is heard with what we asked for. Returns how somebody else has taken over, once.
    pub(crate) fn observe(&mut self, heard: &Telemetry) -> Option<String> {
        let how = self.look(heard);
        self.was_armed = heard.armed == Some(true);
        self.last = heard.mode.or(self.last);
        let how = how?;
        if self.overridden.is_some() {
            return None;
        }
        let words = heard
            .last_words()
            .map_or(String::new(), |words| format!("; the vehicle said last: {words}"));
        let how = format!("{how}{words}");
        self.overridden = Some(how.clone());
        Some(how)
    }

    fn look(&mut self, heard: &Telemetry) -> Option<String> {
        if self.was_armed && heard.armed == Some(false) {
            let standing = heard.landed == Some(Landed::OnGround) || heard.in_air == Some(false);
            let ours = self.may_disarm || standing && self.motion_calls == 0;
            self.wanted = None;
            return (!ours).then(|| "the vehicle was disarmed, not by us".to_string());
        }
        if heard.armed != Some(true) {
            return None;
        }
        let (mode, wanted) = (heard.mode?, self.wanted.as_mut()?);
        if mode == wanted.mode {
            wanted.reached = true;
            return None;
        }
        let expected = if wanted.reached {
            follows(wanted.mode, mode, heard)
        } else {
            // On the way to a goto, an arming or a mission MAVSDK itself asks for Hold first.
            Some(mode) == wanted.before || matches!(mode, Mode::Hold | Mode::Ready | Mode::Unknown)
        };
        if expected {
            if wanted.reached {
                *wanted = Wanted {
                    mode,
                    reached: true,
                    before: None,
                };
            }
            return None;
        }
        let was = wanted.mode;
        self.wanted = None;
        Some(format!(
            "the flight mode became {}, not by us (it was to be {})",
            mode.name(),
            was.name()
        ))
    }
}

/// What a mode turns into by itself when it has done its work.
fn follows(mode: Mode, next: Mode, heard: &Telemetry) -> bool {
    let standing = heard.in_air == Some(false);
    match mode {
        Mode::Takeoff | Mode::Mission => matches!(next, Mode::Hold | Mode::Ready),
        Mode::Land | Mode::ReturnToLaunch => standing || next == Mode::Land,
        Mode::Hold | Mode::Ready => matches!(next, Mode::Hold | Mode::Ready),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(mode: Mode, armed: bool, in_air: bool) -> Telemetry {
        Telemetry {
            mode: Some(mode),
            armed: Some(armed),
            in_air: Some(in_air),
            landed: Some(if in_air { Landed::InAir } else { Landed::OnGround }),
            ..Telemetry::default()
        }
    }

    /// A mode, whether it is armed, whether it flies.
    type Heard = (Mode, bool, bool);

    /// What we want (`Some`) and what is then heard, and whether somebody else flies at the end.
    fn check(story: &[(Option<Mode>, Heard)], overridden: bool) {
        let mut control = Control::default();
        control.observe(&heard(Mode::Hold, true, true));
        let mut found = None;
        for (want, (mode, armed, in_air)) in story {
            if let Some(want) = want {
                control.want(*want);
            }
            found = found.or(control.observe(&heard(*mode, *armed, *in_air)));
        }
        assert_eq!(found.is_some(), overridden, "{story:?}: {found:?}");
    }

    #[test]
    fn what_we_did_not_command_is_somebody_elses() {
        use Mode::{Hold, Land, Mission, Offboard, Posctl, ReturnToLaunch, Takeoff};
        let fly = |mode| (mode, true, true);
        check(
            &[
                (Some(Offboard), fly(Hold)),
                (None, fly(Offboard)),
                (None, fly(Offboard)),
            ],
            false,
        );
        check(&[(Some(Offboard), fly(Offboard)), (None, fly(Posctl))], true);
        check(&[(Some(Offboard), fly(Hold)), (None, fly(Posctl))], true);
        check(&[(Some(Offboard), fly(Offboard)), (None, fly(Hold))], true);
        check(
            &[
                (Some(Offboard), fly(Offboard)),
                (Some(Hold), fly(Offboard)),
                (None, fly(Hold)),
            ],
            false,
        );
        check(
            &[
                (Some(Takeoff), fly(Takeoff)),
                (None, fly(Hold)),
                (None, fly(ReturnToLaunch)),
            ],
            true,
        );
        check(&[(Some(Mission), fly(Mission)), (None, fly(Hold))], false);
        check(
            &[(Some(Mission), fly(Mission)), (None, fly(ReturnToLaunch))],
            true,
        );
        check(
            &[
                (Some(Land), fly(Land)),
                (None, (Land, true, false)),
                (None, (Hold, false, false)),
            ],
            false,
        );
        check(
            &[(Some(ReturnToLaunch), fly(ReturnToLaunch)), (None, fly(Hold))],
            true,
        );
        check(&[(Some(Hold), fly(Hold)), (None, (Hold, false, true))], true);
        // Nothing was commanded yet: whoever flies may do what they like.
        check(&[(None, fly(Posctl)), (None, fly(Mission))], false);
    }

    #[test]
    fn a_halt_ends_motion_and_an_emergency_ends_safe_calls_too() {
        let mut control = Control::default();
        let (motion, safe) = (control.right(false), control.right(true));
        control.withdraw(&Ended::Halted, false);
        assert!(motion.is_withdrawn() && !safe.is_withdrawn());
        control.withdraw(&Ended::Override("a pilot".into()), true);
        assert_eq!(
            (motion.why(), safe.why()),
            (Ended::Halted, Ended::Override("a pilot".into()))
        );
        assert!(control.holds(&control.right(false)) && control.holds(&control.right(true)));
    }

    #[test]
    fn only_the_first_takeover_is_reported_until_it_is_handed_back() {
        let mut control = Control::default();
        control.observe(&heard(Mode::Hold, true, true));
        control.want(Mode::Offboard);
        control.observe(&heard(Mode::Offboard, true, true));
        assert!(control.observe(&heard(Mode::Posctl, true, true)).is_some());
        assert!(control.observe(&heard(Mode::Altctl, true, true)).is_none());
        assert!(control.overridden().is_some());
        control.hand_back();
        assert!(control.overridden().is_none());
        assert!(control.observe(&heard(Mode::Posctl, true, true)).is_none());
    }
}
