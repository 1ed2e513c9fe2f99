//! Where to fly: turns the mode's goal into a velocity command.
//!
//! Refuses nothing; the commander does. Start with [`Vehicle::fly`].

use super::motion::{self, Speeds, Want};
use super::plan::{Plan, Setpoint};
use super::state::Vehicle;
use crate::{
    geo::{Ned, difference, horizontal, length},
    log::Cause,
    mission,
    mode::Mode,
    quirks::Quirk,
};

/// Time the motors spin up before lift-off, seconds.
const SPOOL_UP_S: f64 = 2.5;
/// Landing speed below five metres (`MPC_LAND_SPEED`, reduced near the ground), metres per second: 8.5 m take about 20
/// s, as measured.
const LAND_SPEED: f64 = 0.4;
/// Descent speed above five metres while landing, metres per second.
const LAND_APPROACH_SPEED: f64 = 0.7;
/// Turn rate limit of offboard, radians per second.
const OFFBOARD_TURN: f64 = 2.8;
/// A vehicle with this acceleration brakes, metres per second squared.
const SLOWS: f64 = -0.5;
/// Radius within which it is at home, metres.
const HOME_RADIUS_M: f64 = 1.0;

impl Vehicle {
    pub(super) fn cruise(&self, speed: Option<f64>) -> Speeds {
        Speeds {
            cruise: speed.unwrap_or_else(|| self.params.float("MPC_XY_CRUISE")),
            up: self.params.float("MPC_Z_V_AUTO_UP"),
            down: self.params.float("MPC_Z_V_AUTO_DN"),
        }
    }

    /// Advances the flight by `dt` seconds.
    pub(super) fn fly(&mut self, dt: f64) {
        if self.plan == Plan::Fall {
            self.body.fall(dt);
            return;
        }
        let mut want = self.want();
        self.own_cruise = self.cruise_of_plan();
        if self.own_cruise.is_some() && self.has(Quirk::StopsSurge) {
            want.accelerating = motion::AUTO_ACCELERATION;
        }
        let [north, east, _] = self.body.velocity;
        let flat_speed = north.hypot(east);
        if self.has(Quirk::SlowBraking) {
            want.braking = motion::BRAKING;
            if self.time() < self.reacts_at && flat_speed > 0.0 {
                let faster = self.surges_to.max(flat_speed) / flat_speed;
                want.velocity[0] = north * faster;
                want.velocity[1] = east * faster;
                want.lag = if faster > 1.0 {
                    motion::POSITION_LAG
                } else {
                    want.lag
                };
            }
        }
        let push = self.push();
        for (axis, value) in want.velocity.iter_mut().enumerate() {
            *value += push[axis];
        }
        self.body.follow(want, dt);
    }

    /// Starts the reaction time after a new command. A vehicle that accelerates in a flight of PX4's own becomes faster
    /// first, at most as fast as that flight.
    pub(super) fn react(&mut self) {
        // A vehicle that slows down already goes on to: PX4 plans the new stop from its present deceleration.
        let slows = self.has(Quirk::StopsSurge) && self.body.acceleration < SLOWS;
        if self.time() < self.reacts_at || slows {
            return;
        }
        self.reacts_at = self.time() + motion::REACTION_S;
        self.surges_to = 0.0;
        if let Some(cruise) = self.own_cruise.filter(|_| self.has(Quirk::StopsSurge)) {
            let acceleration = self.body.acceleration.clamp(0.0, motion::AUTO_ACCELERATION);
            let [north, east, _] = self.body.velocity;
            self.surges_to = (north.hypot(east) + motion::surge(acceleration)).min(cruise);
            self.reacts_at += acceleration * motion::SURGE_S;
        }
    }

    /// The set speed of the flight, if it is one of PX4's own.
    fn cruise_of_plan(&self) -> Option<f64> {
        match self.plan {
            Plan::GoTo { speeds, .. } => Some(speeds.cruise.min(self.leg_peak)),
            Plan::Mission => Some(self.cruise(self.mission.speed).cruise),
            Plan::Stay { .. } | Plan::Return { .. } => Some(self.cruise(None).cruise),
            _ => None,
        }
    }

    /// The disturbance that makes it drift in the air, metres per second.
    fn push(&self) -> Ned {
        if self.body.on_ground() || !self.armed() || !self.has(Quirk::HoverWanders) {
            return [0.0; 3];
        }
        self.noise.push(self.time())
    }

    fn want(&mut self) -> Want {
        match self.plan {
            Plan::Idle | Plan::Fall => Want::rest(motion::NO_LAG),
            Plan::Brake { lag } => self.brake(lag),
            Plan::Stay { place, yaw } => self.to(place, yaw, self.cruise(None)),
            Plan::GoTo { place, yaw, speeds } => self.to(place, self.course(place, yaw), speeds),
            Plan::Takeoff { place, since } => self.take_off(place, since),
            Plan::Descend { place } => self.descend(place),
            Plan::Return { climb_to, climbed } => self.go_home(climb_to, climbed),
            Plan::Mission => self.fly_mission(),
            Plan::Offboard => self.follow_setpoint(),
        }
    }

    fn to(&self, place: Ned, yaw: f64, speeds: Speeds) -> Want {
        let way = horizontal(difference(place, self.body.position));
        let speeds = if self.has(Quirk::SlowBraking) {
            Speeds {
                cruise: speeds.cruise.min(motion::stops_within(way)),
                ..speeds
            }
        } else {
            speeds
        };
        let limit = self.params.float("MPC_YAWRAUTO_MAX").to_radians();
        Want {
            velocity: self.body.towards(place, speeds),
            lag: motion::POSITION_LAG,
            yaw_rate: self.body.turning_to(yaw, limit),
            braking: motion::ACCELERATION,
            accelerating: motion::ACCELERATION,
        }
    }

    /// The heading on the way to a position.
    fn course(&self, place: Ned, yaw: Option<f64>) -> f64 {
        let way = difference(place, self.body.position);
        match yaw {
            Some(yaw) => yaw,
            None if horizontal(way) > 1.0 && self.has(Quirk::GotoTurnsNose) => way[1].atan2(way[0]),
            None => self.body.yaw,
        }
    }

    fn brake(&mut self, lag: f64) -> Want {
        let sticks = self.sticks;
        if self.mode == Mode::Posctl && length(sticks) > 0.0 {
            return Want {
                velocity: self.to_world(sticks),
                lag: motion::POSITION_LAG,
                yaw_rate: 0.0,
                braking: motion::ACCELERATION,
                accelerating: motion::ACCELERATION,
            };
        }
        let pushed = length(self.push());
        if length(self.body.velocity) < 0.1 + pushed && self.mode != Mode::Posctl {
            self.plan = Plan::Stay {
                place: self.body.position,
                yaw: self.body.yaw,
            };
        }
        Want::rest(lag)
    }

    fn to_world(&self, v: Ned) -> Ned {
        let (sin, cos) = self.body.yaw.sin_cos();
        [v[0] * cos - v[1] * sin, v[0] * sin + v[1] * cos, v[2]]
    }

    fn take_off(&mut self, place: Ned, since: f64) -> Want {
        if self.time() - since < SPOOL_UP_S {
            return Want::rest(motion::NO_LAG);
        }
        if (self.body.position[2] - place[2]).abs() < 0.1 {
            self.enter(Mode::Hold, Cause::Completed);
            self.plan = Plan::Stay {
                place,
                yaw: self.body.yaw,
            };
        }
        let speed = self.params.float("MPC_TKO_SPEED");
        let speeds = Speeds {
            cruise: speed,
            up: speed,
            down: speed,
        };
        self.to(place, self.body.yaw, speeds)
    }

    fn descend(&self, place: Ned) -> Want {
        let down = if self.height() > 5.0 {
            LAND_APPROACH_SPEED
        } else {
            LAND_SPEED
        };
        // Keeps the position where the landing began, unless the vehicle was still fast there.
        let mut want = self.to(
            [place[0], place[1], self.body.position[2]],
            self.body.yaw,
            self.cruise(None),
        );
        want.velocity[2] = down;
        want
    }

    fn go_home(&mut self, climb_to: f64, climbed: bool) -> Want {
        let at = self.body.position;
        if !climbed {
            if at[2] - climb_to < 0.5 {
                self.plan = Plan::Return {
                    climb_to,
                    climbed: true,
                };
            }
            let lag = self.lag(motion::BRAKE_LAG);
            let mut want = self.to([at[0], at[1], climb_to], self.body.yaw, self.cruise(None));
            want.velocity[0] = 0.0;
            want.velocity[1] = 0.0;
            want.lag = lag.min(motion::POSITION_LAG);
            return want;
        }
        let (north, east) = self.launch;
        let way = [north - at[0], east - at[1], 0.0];
        if horizontal(way) < HOME_RADIUS_M {
            self.plan = Plan::Descend {
                place: [north, east, at[2]],
            };
        }
        let yaw = if horizontal(way) > 2.0 {
            way[1].atan2(way[0])
        } else {
            self.body.yaw
        };
        self.to([north, east, climb_to], yaw, self.cruise(None))
    }

    fn follow_setpoint(&self) -> Want {
        let body = &self.body;
        let Some(setpoint) = self.current_setpoint() else {
            return Want::rest(self.lag(motion::BRAKE_LAG));
        };
        let turn = |yaw: Option<f64>, rate: f64| yaw.map_or(rate, |yaw| body.turning_to(yaw, OFFBOARD_TURN));
        match setpoint {
            Setpoint::Position { place, velocity, yaw } => {
                let place = self.real(place);
                let speeds = self.cruise(Some(self.params.float("MPC_XY_VEL_MAX")));
                let mut want = body.towards(place, speeds);
                for (axis, value) in want.iter_mut().enumerate() {
                    *value += velocity.map_or(0.0, |velocity| velocity[axis]);
                }
                Want {
                    velocity: want,
                    lag: motion::POSITION_LAG,
                    yaw_rate: turn(yaw, 0.0),
                    braking: motion::ACCELERATION,
                    accelerating: motion::ACCELERATION,
                }
            }
            Setpoint::Velocity {
                velocity,
                yaw,
                yaw_rate,
            } => Want {
                velocity,
                lag: self.lag(motion::VELOCITY_LAG),
                yaw_rate: turn(yaw, yaw_rate),
                braking: motion::ACCELERATION,
                accelerating: motion::ACCELERATION,
            },
            Setpoint::BodyVelocity { velocity, yaw_rate } => Want {
                velocity: self.to_world(velocity),
                lag: self.lag(motion::VELOCITY_LAG),
                yaw_rate,
                braking: motion::ACCELERATION,
                accelerating: motion::ACCELERATION,
            },
        }
    }

    /// The position of a waypoint, whose height is relative to the autopilot's home.
    fn waypoint(&self, item: &mission::Item) -> Ned {
        let (north, east) = self.home.to_local(item.lat, item.lon);
        let below_home = self.home.alt - self.home_amsl() - item.alt.max(0.0);
        self.real([north, east, below_home])
    }

    fn last_waypoint(&self) -> Option<Ned> {
        let mut places = self.mission.items.iter().filter(|item| item.is_place());
        places.next_back().map(|item| self.waypoint(item))
    }

    fn fly_mission(&mut self) -> Want {
        let seq = self.mission.current;
        let Some(item) = self.mission.items.get(seq).copied() else {
            self.enter(Mode::Hold, Cause::Completed);
            self.plan_for_mode();
            if let Some(place) = self.last_waypoint() {
                self.plan = Plan::Stay {
                    place,
                    yaw: self.body.yaw,
                };
            }
            return self.want();
        };
        let here = self.body.position;
        let rest = Want::rest(motion::POSITION_LAG);
        match item.command {
            mission::LAND => {
                self.reach(seq);
                self.enter(Mode::Land, Cause::Completed);
                self.plan_for_mode();
                return rest;
            }
            mission::RETURN => {
                self.reach(seq);
                self.enter(Mode::Return, Cause::Completed);
                self.plan_for_mode();
                return rest;
            }
            _ if !item.is_place() => {
                if item.command == mission::CHANGE_SPEED && item.params[1] > 0.0 {
                    self.mission.speed = Some(item.params[1]);
                }
                self.reach(seq);
                self.mission.current = seq + 1;
                return Want {
                    velocity: self.body.velocity,
                    ..rest
                };
            }
            _ => {}
        }
        let place = self.waypoint(&item);
        let way = difference(place, here);
        let radius = if item.params[1].is_finite() && item.params[1] > 0.0 {
            item.params[1]
        } else {
            1.0
        };
        if length(way) < radius && self.mission.arrived.is_none() {
            self.mission.arrived = Some(self.time());
        }
        let stay = if item.params[0].is_finite() {
            item.params[0]
        } else {
            0.0
        };
        if self.mission.arrived.is_some_and(|at| self.time() - at >= stay) {
            self.reach(seq);
            self.mission.arrived = None;
            self.mission.current = seq + 1;
        }
        let yaw = if item.params[3].is_finite() {
            item.params[3].to_radians()
        } else if horizontal(way) > 1.0 {
            way[1].atan2(way[0])
        } else {
            self.body.yaw
        };
        self.to(place, yaw, self.cruise(self.mission.speed))
    }
}
