//! What is allowed: arming, mode changes, the fence, the battery and the loss of control links.
//!
//! Decides; the navigator flies. The rules are PX4 1.16's as far as tools meet them; surprising behaviour is a
//! [`Quirk`].

use super::motion;
use super::notice::{Notice, severity};
use super::plan::{Landed, Plan, Setpoint};
use super::state::Vehicle;
use crate::{
    fence::Fence,
    geo::{Ned, horizontal},
    log::{Ack, Cause, What},
    mission::Mission,
    mode::Mode,
    quirks::Quirk,
};

/// Greatest age of a setpoint at a change to offboard, seconds.
const OFFBOARD_PROOF_S: f64 = 0.5;
/// Time after an upload during which the mission is not checked yet, seconds.
const SETTLE_S: f64 = 1.0;
/// How long the vehicle holds after a loss of the remote control before `NAV_RCL_ACT` applies (`COM_FAIL_ACT_T`),
/// seconds.
const STICKS_HOLD_S: f64 = 5.0;
/// Time on the ground until the vehicle counts as landed, seconds.
const LAND_DETECT_S: f64 = 0.5;

impl Vehicle {
    /// Starts the motors.
    pub fn arm(&mut self) -> Ack {
        if self.armed {
            return self.command("arm", Ack::Accepted);
        }
        if !self.armable() {
            self.say(
                severity::CRITICAL,
                "Arming denied: Resolve system health failures first",
            );
            return self.command("arm", Ack::Denied);
        }
        self.armed = true;
        self.armed_at = self.time;
        self.has_flown = false;
        self.launch = (self.body.position[0], self.body.position[1]);
        self.log.push(
            self.time,
            What::Armed {
                armed: true,
                cause: Cause::Command,
            },
        );
        self.say(severity::INFO, "Armed by external command");
        // A take-off that was accepted on the ground starts now.
        self.plan_for_mode();
        self.command("arm", Ack::Accepted)
    }

    /// Stops the motors; in the air only when forced, and then the vehicle falls.
    pub fn disarm(&mut self, force: bool, cause: Cause) -> Ack {
        let flying = self.landed != Landed::OnGround;
        if flying && !force && self.has(Quirk::DisarmInAirDenied) {
            self.say(severity::CRITICAL, "Disarming denied: not landed");
            return self.command("disarm", Ack::Denied);
        }
        if self.armed {
            self.stop_motors(cause);
        }
        self.command(if force { "kill" } else { "disarm" }, Ack::Accepted)
    }

    fn stop_motors(&mut self, cause: Cause) {
        self.armed = false;
        if self.has(Quirk::DisarmCharges) {
            self.battery_pct = 100.0;
            self.battery_stage = 0;
        }
        self.log.push(self.time, What::Armed { armed: false, cause });
        self.say(
            severity::INFO,
            match cause {
                Cause::Completed => "Disarmed by auto preflight disarming",
                _ => "Disarmed by external command",
            },
        );
        self.plan = if self.body.on_ground() {
            Plan::Idle
        } else {
            Plan::Fall
        };
        if self.has(Quirk::ModeAfterDisarm) {
            self.enter(self.mode_after_disarm, Cause::Completed);
        } else if self.mode.prevents_arming() || self.mode == Mode::Offboard {
            self.enter(Mode::Hold, Cause::Completed);
        }
    }

    /// Climbs to `MIS_TAKEOFF_ALT` above the ground.
    pub fn takeoff(&mut self) -> Ack {
        if !self.armed && !self.has(Quirk::TakeoffWhileDisarmed) {
            return self.command("takeoff", Ack::Denied);
        }
        let ack = self.switch(Mode::Takeoff, Cause::Command);
        self.command("takeoff", ack)
    }

    /// Lands at the present position.
    pub fn land(&mut self) -> Ack {
        let ack = self.switch(Mode::Land, Cause::Command);
        self.command("land", ack)
    }

    /// Changes the mode.
    pub fn set_mode(&mut self, mode: Mode, cause: Cause) -> Ack {
        let name = format!("set_mode {}", serde_name(mode));
        let ack = self.switch(mode, cause);
        self.command(&name, ack)
    }

    fn switch(&mut self, mode: Mode, cause: Cause) -> Ack {
        match mode {
            Mode::Offboard if !self.setpoint_is_fresh() => {
                self.say(
                    severity::CRITICAL,
                    "Switching to Offboard is currently not available",
                );
                return Ack::TemporarilyRejected;
            }
            Mode::Mission if !self.mission_ready() => {
                self.say(
                    severity::CRITICAL,
                    "Switching to Mission is currently not available",
                );
                // The quirk: the answer is yes, and the mode does not change.
                return if self.has(Quirk::MissionNeedsSettling) {
                    Ack::Accepted
                } else {
                    Ack::TemporarilyRejected
                };
            }
            _ if mode != Mode::Land && !mode.is_manual() && !self.health.gps => {
                self.say(
                    severity::CRITICAL,
                    "Switching mode denied: no global position estimate",
                );
                return Ack::TemporarilyRejected;
            }
            _ => {}
        }
        // The navigator restarts a mode only when the mode changes: the flight to a position continues.
        let goes_on = mode == Mode::Hold
            && self.mode == Mode::Hold
            && self.armed
            && matches!(self.plan, Plan::GoTo { .. })
            && self.has(Quirk::HoldKeepsReposition);
        if goes_on {
            return Ack::Accepted;
        }
        self.enter(mode, cause);
        self.plan_for_mode();
        Ack::Accepted
    }

    fn mission_ready(&self) -> bool {
        let settled = !self.has(Quirk::MissionNeedsSettling) || self.time - self.mission.uploaded >= SETTLE_S;
        let inside = |item: &crate::mission::Item| {
            let (north, east) = self.home.to_local(item.lat, item.lon);
            !item.is_place() || !self.fence_holds() || self.fence.allows(north, east)
        };
        settled && !self.mission.items.is_empty() && self.mission.items.iter().all(inside)
    }

    pub(super) fn setpoint_is_fresh(&self) -> bool {
        self.setpoint
            .is_some_and(|(_, at)| self.time - at <= OFFBOARD_PROOF_S)
    }

    /// Flies to a position and stays there. `None` keeps the present value; altitude above sea level, heading in
    /// radians.
    pub fn reposition(&mut self, place: Option<(f64, f64)>, alt: Option<f64>, yaw: Option<f64>) -> Ack {
        if self.landed == Landed::OnGround || !self.armed {
            return self.command("reposition", Ack::Denied);
        }
        let at = self.body.position;
        let (north, east) = place.map_or((at[0], at[1]), |(lat, lon)| self.home.to_local(lat, lon));
        let down = alt.map_or(at[2], |alt| self.real([0.0, 0.0, self.home.alt - alt])[2]);
        if self.fence_holds() && !self.fence.allows(north, east) {
            self.say(severity::CRITICAL, "Reposition is outside geofence");
            let ack = if self.has(Quirk::GotoOutsideFenceAcked) {
                Ack::Accepted
            } else {
                Ack::Denied
            };
            return self.command("reposition", ack);
        }
        self.enter(Mode::Hold, Cause::Command);
        let way = horizontal([north - at[0], east - at[1], 0.0]);
        self.leg_peak = motion::peak(way).max(horizontal(self.body.velocity));
        self.plan = Plan::GoTo {
            place: [north, east, down.min(0.0)],
            yaw,
            speeds: self.cruise(None),
        };
        self.react();
        self.command("reposition", Ack::Accepted)
    }

    /// Stores an offboard setpoint; it moves the vehicle only in offboard mode.
    pub fn take_setpoint(&mut self, setpoint: Setpoint) {
        let (sin, cos) = self.body.yaw.sin_cos();
        let what = match setpoint {
            Setpoint::Position { place, yaw, .. } => What::Setpoint {
                position: Some(place),
                velocity: None,
                yaw_deg: yaw.map(f64::to_degrees),
            },
            Setpoint::Velocity { velocity, yaw, .. } => What::Setpoint {
                position: None,
                velocity: Some(velocity),
                yaw_deg: yaw.map(f64::to_degrees),
            },
            Setpoint::BodyVelocity { velocity: v, .. } => What::Setpoint {
                position: None,
                velocity: Some([v[0] * cos - v[1] * sin, v[0] * sin + v[1] * cos, v[2]]),
                yaw_deg: None,
            },
        };
        self.log.push(self.time, what);
        self.setpoint = Some((setpoint, self.time));
    }

    pub(super) fn current_setpoint(&self) -> Option<Setpoint> {
        self.setpoint.map(|(setpoint, _)| setpoint)
    }

    /// Records a message from a ground station or companion computer.
    pub fn hear_station(&mut self) {
        self.station_heard = Some(self.time);
        self.station_lost = false;
    }

    /// Replaces the mission.
    pub fn upload_mission(&mut self, items: Vec<crate::mission::Item>) -> Ack {
        self.mission = Mission {
            items,
            uploaded: self.time,
            ..Mission::default()
        };
        self.command("upload_mission", Ack::Accepted)
    }

    /// Continues the mission with this item.
    pub fn set_mission_item(&mut self, seq: usize) -> Ack {
        let exists = seq < self.mission.items.len() || seq == 0;
        if exists {
            self.mission.current = seq;
            self.mission.arrived = None;
            self.mission.reached = seq.checked_sub(1);
        }
        self.command(
            "set_mission_item",
            if exists { Ack::Accepted } else { Ack::Denied },
        )
    }

    /// Replaces the fence.
    pub fn upload_fence(&mut self, fence: Fence) -> Ack {
        let holds_home = fence.allows(0.0, 0.0);
        if !holds_home {
            self.say(
                severity::CRITICAL,
                "Geofence invalid, doesn't contain Home position",
            );
            if !self.has(Quirk::FenceWithoutHomeIgnored) {
                return self.command("upload_fence", Ack::Denied);
            }
        }
        self.fence = fence;
        self.fence_valid = holds_home;
        self.breach = None;
        self.command("upload_fence", Ack::Accepted)
    }

    pub(super) fn fence_holds(&self) -> bool {
        self.fence_valid && !self.fence.is_empty()
    }

    /// Triggers a failsafe of the autopilot, for tests.
    pub fn failsafe(&mut self, mode: Mode, text: &str) {
        self.say(severity::CRITICAL, text);
        self.enter(mode, Cause::Failsafe);
        self.plan_for_mode();
    }

    /// Applies the rules that act without a command.
    pub(super) fn supervise(&mut self) {
        self.watch_offboard();
        self.watch_station();
        self.watch_sticks();
        self.watch_battery();
        self.watch_position();
        self.watch_fence();
        self.watch_ground();
    }

    fn watch_offboard(&mut self) {
        let patience = self.params.float("COM_OF_LOSS_T");
        let silent = self.setpoint.is_none_or(|(_, at)| self.time - at > patience);
        if self.mode != Mode::Offboard || !silent || !self.armed {
            return;
        }
        let mode = if self.has(Quirk::OffboardLossPosctl) {
            match self.params.int("COM_OBL_RC_ACT") {
                3 => Mode::Return,
                4 => Mode::Land,
                5 => Mode::Hold,
                _ if self.health.rc => Mode::Posctl,
                _ => Mode::Return,
            }
        } else {
            Mode::Hold
        };
        self.failsafe(mode, "Failsafe activated: no offboard signal");
    }

    fn watch_station(&mut self) {
        let patience = self.params.float("COM_DL_LOSS_T");
        let silent = self.station_heard.is_some_and(|at| self.time - at > patience);
        if !silent || self.station_lost || !self.armed {
            return;
        }
        self.station_lost = true;
        let mode = match self.params.int("NAV_DLL_ACT") {
            1 => Mode::Hold,
            2 => Mode::Return,
            3 => Mode::Land,
            _ => return,
        };
        if self.mode != mode && self.mode != Mode::Land {
            self.failsafe(mode, "Failsafe activated: ground station connection lost");
        }
    }

    /// Detects the loss of the remote control in the air.
    fn watch_sticks(&mut self) {
        let flies = self.armed && self.landed != Landed::OnGround;
        let had_sticks = std::mem::replace(&mut self.sticks_heard, self.health.rc);
        if self.health.rc || !flies {
            self.sticks_lost = None;
            return;
        }
        let mode = match self.params.int("NAV_RCL_ACT") {
            1 => Mode::Hold,
            2 => Mode::Return,
            3 => Mode::Land,
            _ => return,
        };
        if had_sticks && self.has(Quirk::SticksLostHoldsFirst) {
            self.sticks_lost = Some(self.time);
            self.failsafe(Mode::Hold, "Failsafe activated: entering Hold for 5 seconds");
        } else if had_sticks || self.sticks_lost.is_some_and(|at| self.time - at > STICKS_HOLD_S) {
            self.sticks_lost = None;
            self.failsafe(mode, "Failsafe activated: manual control lost");
        }
    }

    fn watch_battery(&mut self) {
        let below = |name: &str| self.battery_pct < self.params.float(name) * 100.0;
        let stage = if below("BAT_EMERGEN_THR") {
            3
        } else if below("BAT_CRIT_THR") {
            2
        } else {
            u8::from(below("BAT_LOW_THR"))
        };
        if stage > self.battery_stage {
            let text = [
                "",
                "Low battery level",
                "Critical battery level",
                "Emergency battery level",
            ];
            self.say(severity::CRITICAL, text[usize::from(stage)]);
            let action = match (self.params.int("COM_LOW_BAT_ACT"), stage) {
                (1, 2..) => Some(Mode::Return),
                (2, 2..) | (3, 3) => Some(Mode::Land),
                (3, 2) => Some(Mode::Return),
                _ => None,
            };
            if let Some(mode) = action
                && self.armed
                && self.landed != Landed::OnGround
                && self.mode != Mode::Land
            {
                self.failsafe(mode, "Failsafe activated: battery");
            }
        }
        self.battery_stage = stage;
        if self.battery_pct <= 0.0 && self.armed {
            self.stop_motors(Cause::Failsafe);
        }
    }

    fn watch_position(&mut self) {
        let blind = !self.health.gps && self.armed && self.landed != Landed::OnGround;
        if blind && self.mode != Mode::Land && !self.mode.is_manual() {
            self.failsafe(Mode::Land, "Failsafe activated: global position lost");
        }
    }

    fn watch_fence(&mut self) {
        let at = self.body.position;
        let far = self.params.float("GF_MAX_HOR_DIST");
        let high = self.params.float("GF_MAX_VER_DIST");
        let beyond = (self.fence_holds() && !self.fence.allows(at[0], at[1]))
            || (far > 0.0 && at[0].hypot(at[1]) > far)
            || (high > 0.0 && -at[2] > high);
        if !beyond || !self.armed || self.landed == Landed::OnGround {
            self.breach = None;
            return;
        }
        let first = self.breach.is_none();
        if first {
            self.breach = Some(self.time);
            self.say(severity::CRITICAL, "Geofence: approaching or outside geofence");
        }
        let mode = match self.params.int("GF_ACTION") {
            0 | 1 => return,
            3 => Mode::Return,
            5 => Mode::Land,
            _ => Mode::Hold,
        };
        let towards_inside = match self.plan {
            Plan::GoTo { place, .. } => self.fence.allows(place[0], place[1]),
            _ => false,
        };
        let obeys = matches!(self.mode, Mode::Return | Mode::Land)
            || self.mode == mode && !first
            || self.mode.is_manual() && !first
            || towards_inside;
        if !obeys {
            self.failsafe(mode, "Failsafe activated");
            if !self.has(Quirk::FenceOvershoot) {
                self.body.velocity = [0.0; 3];
            }
        }
    }

    fn watch_ground(&mut self) {
        if !self.armed {
            return;
        }
        let preflight = self.params.float("COM_DISARM_PRFLT");
        let after_landing = self.params.float("COM_DISARM_LAND");
        let idle = self.landed == Landed::OnGround;
        let waited = idle && !self.has_flown && preflight > 0.0 && self.time - self.armed_at > preflight;
        let landed = self
            .touched
            .is_some_and(|at| self.time - at > LAND_DETECT_S + after_landing);
        if waited || idle && self.has_flown && after_landing > 0.0 && landed {
            self.stop_motors(Cause::Completed);
        }
    }

    /// Determines whether it stands on the ground.
    pub(super) fn notice_ground(&mut self) {
        let still = self.body.on_ground() && self.body.velocity[2].abs() < 0.05;
        if !still {
            self.touched = None;
            if self.armed {
                self.has_flown = true;
            }
        } else if self.touched.is_none() {
            self.touched = Some(self.time);
        }
        let settled = self
            .touched
            .is_some_and(|at| self.time - at >= LAND_DETECT_S || !self.has_flown);
        let before = self.landed;
        self.landed = match (settled, self.mode, self.plan) {
            (true, ..) => Landed::OnGround,
            (false, _, Plan::Takeoff { .. }) => Landed::TakingOff,
            (false, Mode::Land, _) => Landed::Landing,
            _ => Landed::InAir,
        };
        if self.landed == Landed::OnGround && before != Landed::OnGround {
            if !self.armed {
                self.plan = Plan::Idle;
            }
            self.say(severity::INFO, "Landing detected");
        } else if before == Landed::OnGround && self.landed != Landed::OnGround {
            self.say(severity::INFO, "Takeoff detected");
        }
    }

    /// Sets the action with which the present mode starts.
    pub(super) fn plan_for_mode(&mut self) {
        let at: Ned = self.body.position;
        let on_ground = self.landed == Landed::OnGround;
        self.plan = match self.mode {
            _ if !self.armed => {
                if on_ground {
                    Plan::Idle
                } else {
                    Plan::Fall
                }
            }
            Mode::Takeoff if on_ground => Plan::Takeoff {
                place: [at[0], at[1], -self.takeoff_height()],
                since: self.time,
            },
            Mode::Offboard => Plan::Offboard,
            Mode::Mission => {
                self.mission.arrived = None;
                Plan::Mission
            }
            _ if on_ground => Plan::Idle,
            Mode::Land => Plan::Descend { place: at },
            Mode::Return => {
                let height = -at[2];
                let wanted = self.params.float("RTL_RETURN_ALT");
                let climb = if self.has(Quirk::ReturnClimbs) {
                    wanted
                } else {
                    0.0
                };
                Plan::Return {
                    climb_to: -height.max(climb),
                    climbed: false,
                }
            }
            _ => Plan::Brake {
                lag: self.lag(if self.has(Quirk::SlowBraking) {
                    motion::POSITION_LAG
                } else {
                    motion::BRAKE_LAG
                }),
            },
        };
        if matches!(self.plan, Plan::Brake { .. }) {
            self.react();
        }
    }

    fn takeoff_height(&self) -> f64 {
        let height = self.params.float("MIS_TAKEOFF_ALT");
        if self.has(Quirk::TakeoffSettlesLow) {
            (height - 0.4).max(0.5)
        } else {
            height
        }
    }

    pub(super) fn lag(&self, lag: f64) -> f64 {
        if self.has(Quirk::SluggishVelocity) {
            lag
        } else {
            motion::NO_LAG
        }
    }

    pub(super) fn reach(&mut self, seq: usize) {
        self.mission.reached = Some(seq);
        self.notify(Notice::Reached(u16::try_from(seq).unwrap_or(u16::MAX)));
    }
}

fn serde_name(mode: Mode) -> String {
    serde_json::to_value(mode)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}
