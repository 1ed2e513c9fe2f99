//! What PX4 does that a simple simulator would not, each to be switched on and off.
//!
//! The rows were seen on PX4 1.16.1 (its SIH simulation) with mavsdk_server 3.17.4 and 4.0.5, but for
//! [`Quirk::HoldKeepsReposition`], which is read from PX4's sources. Start with [`Quirk`].

use std::{collections::BTreeSet, str::FromStr};

macro_rules! quirks {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// One awkward behaviour of the real vehicle. Off, the vehicle does what one would expect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Quirk {
            $($(#[$doc])+ $variant,)+
        }

        impl Quirk {
            /// Every quirk.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name on the command line.
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
    /// Takeoff settles 0.4 m below the altitude asked for. Off: at the altitude.
    TakeoffSettlesLow = "takeoff_settles_low",
    /// Within a second of an upload a switch to mission mode is accepted and then not made. Off: it is made.
    MissionNeedsSettling = "mission_needs_settling",
    /// A reposition to a place outside the fence is accepted and ignored. Off: denied.
    GotoOutsideFenceAcked = "goto_outside_fence_acked",
    /// A fence that does not contain home is accepted and then ignored altogether. Off: the upload is denied.
    FenceWithoutHomeIgnored = "fence_without_home_ignored",
    /// The fence acts at the line, and the vehicle brakes beyond it. Off: it stops dead at the line.
    FenceOvershoot = "fence_overshoot",
    /// Velocities are followed with a lag: it takes seconds and metres to brake. Off: at once.
    SluggishVelocity = "sluggish_velocity",
    /// Disarming in the air is denied. Off: the motors stop and it falls.
    DisarmInAirDenied = "disarm_in_air_denied",
    /// Mode, landed state and battery are told every second or two. Off: ten times a second.
    SlowStreams = "slow_streams",
    /// Return climbs to `RTL_RETURN_ALT` first. Off: it returns at the altitude it has.
    ReturnClimbs = "return_climbs",
    /// Loss of set points drops OFFBOARD to what `COM_OBL_RC_ACT` says, by default position control, or a return where
    /// there is no remote control (PX4 1.17). Off: hold.
    OffboardLossPosctl = "offboard_loss_posctl",
    /// Hold asked for in hold is accepted and changes nothing: a reposition, which flies in hold, goes on. Off: it stops.
    HoldKeepsReposition = "hold_keeps_reposition",
    /// Disarming goes back to the last mode that was asked for and allows arming, which may be OFFBOARD; without set points
    /// that arms no more (PX4 1.17, `UserModeIntention.cpp`; flown). Off: hold.
    ModeAfterDisarm = "mode_after_disarm",
    /// It hovers within half a metre or so of where it is told to be, at 0.2 to 0.5 m/s (PX4 1.17 SIH). Off: it stands.
    HoverWanders = "hover_wanders",
    /// It begins to brake 0.35 s after it was told to, with 1.65 m/s²: 6.5 m from 4 m/s, 0.7 m from 0.95 m/s, and it flies
    /// back to a place that was too near (PX4 1.17 SIH). Off: as `sluggish_velocity` says.
    SlowBraking = "slow_braking",
    /// For 120 s after a take-off the height of home is corrected by up to 1.5 m every two seconds, and with it what the
    /// vehicle calls its height (PX4 since mid-2025, `HomePosition.cpp`; flown). Off: it stays as it was when it armed.
    HomeMovesInFlight = "home_moves_in_flight",
    /// The same spot on the ground has another height half an hour later, by up to 2 m (PX4 1.17 SIH). Off: it does not.
    GroundDrifts = "ground_drifts",
    /// A reposition without a heading turns the nose to the place (`MPC_YAW_MODE`). Off: the heading is kept.
    GotoTurnsNose = "goto_turns_nose",
    /// Disarming charges the battery (SIH alone). Off: it does not.
    DisarmCharges = "disarm_charges",
    /// A remote control that falls silent in the air makes it hold for 5 s before it does what `NAV_RCL_ACT` says (PX4 1.17).
    /// Off: at once.
    SticksLostHoldsFirst = "sticks_lost_holds_first",
    /// For three seconds after boot arming is denied. Off: it arms at once.
    ArmingDeniedAfterBoot = "arming_denied_after_boot",
    /// It has no texts for its events, like a board whose firmware leaves them out: mavsdk_server hears why it does not arm
    /// and cannot say so. Not among `all`, since PX4's simulations have them. Off: they are read from it.
    NoEventMetadata = "no_event_metadata",
}

/// The quirks that are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quirks(BTreeSet<Quirk>);

impl Quirks {
    /// The behaviour of the real vehicle: every quirk but [`Quirk::NoEventMetadata`].
    #[must_use]
    pub fn all() -> Self {
        let mut quirks = Self(Quirk::ALL.iter().copied().collect());
        quirks.set(Quirk::NoEventMetadata, false);
        quirks
    }

    /// The behaviour one would expect.
    #[must_use]
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether this one is on.
    #[must_use]
    pub fn has(&self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }

    /// Switches one on or off.
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

/// A name that no quirk has.
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

    /// `all`, `none`, or names with commas between them; a name after `all` with a `-` in front is switched off.
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
