//! PX4's behaviour that a simple simulator would not have; each quirk can be switched on and off.
//!
//! Observed on PX4 1.16.1 to 1.18 (its SIH simulation) with mavsdk_server 3.17.4 and 4.0.5, except
//! [`Quirk::HoldKeepsReposition`], which is from PX4's sources, and [`Quirk::LateModeAcks`], which is from MAVSDK's. Start
//! with [`Quirk`].

use std::{collections::BTreeSet, str::FromStr};

macro_rules! quirks {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// One quirk of the real vehicle. Off: the behaviour that one would expect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Quirk {
            $($(#[$doc])+ $variant,)+
        }

        impl Quirk {
            /// Every quirk.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

quirks! {
    /// `takeoff` while disarmed is accepted and the mode changes, but nothing takes off. Off: denied.
    TakeoffWhileDisarmed = "takeoff_while_disarmed",
    /// Takeoff settles 0.4 m below the requested altitude. Off: at the altitude.
    TakeoffSettlesLow = "takeoff_settles_low",
    /// Within a second of an upload a switch to mission mode is accepted but not made. Off: it is made.
    MissionNeedsSettling = "mission_needs_settling",
    /// A reposition outside the fence is accepted and ignored. Off: denied.
    GotoOutsideFenceAcked = "goto_outside_fence_acked",
    /// A fence that does not contain home is accepted and then not enforced. Off: the upload is denied.
    FenceWithoutHomeIgnored = "fence_without_home_ignored",
    /// The fence acts at its edge, and the vehicle brakes beyond it. Off: it stops at the edge.
    FenceOvershoot = "fence_overshoot",
    /// Velocities are followed with a lag: it takes seconds and metres to brake. Off: at once.
    SluggishVelocity = "sluggish_velocity",
    /// Disarming in the air is denied. Off: the motors stop and it falls.
    DisarmInAirDenied = "disarm_in_air_denied",
    /// Mode, landed state and battery are sent every second or two. Off: ten times a second.
    SlowStreams = "slow_streams",
    /// Return climbs to `RTL_RETURN_ALT` first. Off: it keeps its altitude.
    ReturnClimbs = "return_climbs",
    /// Without setpoints OFFBOARD changes to the mode of `COM_OBL_RC_ACT`, by default position control; without a
    /// remote control it changes to a return (PX4 1.17). Off: hold.
    OffboardLossPosctl = "offboard_loss_posctl",
    /// A request for hold in hold is accepted without effect: a reposition, which flies in hold, continues. Off: it
    /// stops.
    HoldKeepsReposition = "hold_keeps_reposition",
    /// Disarming selects the last requested mode that allows arming, which may be OFFBOARD; without setpoints that mode
    /// does not arm (PX4 1.17, `UserModeIntention.cpp`; observed in flight). Off: hold.
    ModeAfterDisarm = "mode_after_disarm",
    /// It drifts by about half a metre while it hovers, at 0.2 to 0.5 m/s (PX4 1.17 SIH). Off: it stands still.
    HoverWanders = "hover_wanders",
    /// It starts to brake 0.35 s after the command, at 1.65 m/s²: 6.5 m from 4 m/s, 0.7 m from 0.95 m/s. It overshoots
    /// a target that is too close and flies back (PX4 1.17 SIH). Off: as `sluggish_velocity` says.
    SlowBraking = "slow_braking",
    /// A stop does not end an acceleration at once: PX4's own flights build acceleration up and down with a limited jerk,
    /// and the velocity setpoint runs ahead of the vehicle. Told to stop while it accelerates at 3 m/s², the vehicle
    /// becomes up to 2.2 m/s faster first, overshoots its stop point and flies back: 4.4 m from 0.9 m/s, 8.8 m from
    /// 2.6 m/s (PX4 1.18 SIH, 25 stops). Off: it brakes from the speed that it has.
    StopsSurge = "stops_surge",
    /// For 120 s after a take-off PX4 corrects its home altitude, and with it the reported height, by up to 1.5 m every
    /// two seconds (PX4 since mid-2025, `HomePosition.cpp`; observed in flight). Off: it stays as at arming.
    HomeMovesInFlight = "home_moves_in_flight",
    /// The estimated height of the ground changes by up to 2 m in half an hour (PX4 1.17 SIH). Off: it does not.
    GroundDrifts = "ground_drifts",
    /// A reposition without a heading turns the nose towards the target (`MPC_YAW_MODE`). Off: the heading is kept.
    GotoTurnsNose = "goto_turns_nose",
    /// Disarming charges the battery (SIH only). Off: it does not.
    DisarmCharges = "disarm_charges",
    /// When the remote control is lost in the air, it holds for 5 s before it does what `NAV_RCL_ACT` says (PX4 1.17).
    /// Off: at once.
    SticksLostHoldsFirst = "sticks_lost_holds_first",
    /// Arming is denied for three seconds after boot. Off: it arms at once.
    ArmingDeniedAfterBoot = "arming_denied_after_boot",
    /// It has no texts of its events, like a board whose firmware omits them: mavsdk_server receives the arming checks
    /// without their texts. Not part of `all`, because PX4's simulations have them. Off: the texts can be read.
    NoEventMetadata = "no_event_metadata",
    /// The vehicle changes its mode at once and acknowledges it 50 to 450 ms later, as over a radio that loses
    /// acknowledgements. mavsdk_server sends a flight to a position only then (`ActionImpl::goto_location_async`, MAVSDK
    /// 158e339), and so after commands that it was given later. Not part of `all`, because PX4's simulations acknowledge
    /// within milliseconds. Off: acknowledged at once.
    LateModeAcks = "late_mode_acks",
}

/// The quirks that are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quirks(BTreeSet<Quirk>);

impl Quirks {
    /// The behaviour of the real vehicle: every quirk but [`Quirk::NoEventMetadata`] and [`Quirk::LateModeAcks`].
    #[must_use]
    pub fn all() -> Self {
        let mut quirks = Self(Quirk::ALL.iter().copied().collect());
        quirks.set(Quirk::NoEventMetadata, false);
        quirks.set(Quirk::LateModeAcks, false);
        quirks
    }

    /// The expected behaviour: no quirks.
    #[must_use]
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether a quirk is on.
    #[must_use]
    pub fn has(&self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }

    /// Switches a quirk on or off.
    pub fn set(&mut self, quirk: Quirk, on: bool) {
        if on {
            self.0.insert(quirk);
        } else {
            self.0.remove(&quirk);
        }
    }
}

impl Default for Quirks {
    fn default() -> Self {
        Self::all()
    }
}

/// The error for a name that no quirk has.
#[derive(Debug, thiserror::Error)]
#[error("no quirk is called {name:?}; there are all, none, {}", names())]
pub struct UnknownQuirk {
    name: String,
}

fn names() -> String {
    let names: Vec<_> = Quirk::ALL.iter().map(|quirk| quirk.name()).collect();
    names.join(", ")
}

impl FromStr for Quirk {
    type Err = UnknownQuirk;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |quirk: &&Self| quirk.name() == text;
        Self::ALL.iter().find(named).copied().ok_or_else(|| UnknownQuirk {
            name: text.to_owned(),
        })
    }
}

impl FromStr for Quirks {
    type Err = UnknownQuirk;

    /// `all`, `none`, or names with commas between them; after `all`, a name with a leading `-` is switched off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut quirks = Self::none();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "all" => quirks = Self::all(),
                "none" => quirks = Self::none(),
                _ => match word.strip_prefix('-') {
                    Some(name) => quirks.set(name.parse()?, false),
                    None => quirks.set(word.parse()?, true),
                },
            }
        }
        Ok(quirks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_from_left_to_right() {
        let only: Quirks = "slow_streams, return_climbs".parse().expect("known names");
        assert!(only.has(Quirk::SlowStreams) && !only.has(Quirk::SluggishVelocity));
        let but: Quirks = "all,-slow_streams".parse().expect("known names");
        assert!(!but.has(Quirk::SlowStreams) && but.has(Quirk::SluggishVelocity));
        let wrong = "all,warp"
            .parse::<Quirks>()
            .expect_err("no such quirk")
            .to_string();
        assert!(
            wrong.contains("\"warp\"") && wrong.contains("slow_streams"),
            "{wrong}"
        );
    }
}
