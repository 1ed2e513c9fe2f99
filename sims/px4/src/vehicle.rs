//! The vehicle: a point-mass quadrotor with PX4's modes, arming rules and failsafes, on virtual time.
//!
//! Pure: no clock, no sockets, and randomness only from its seed. Commands set the goal, [`Vehicle::step`] advances
//! time. [`crate::link`] is the MAVLink interface. Read [`Vehicle`] first, then `commander` (what is allowed), `checks`
//! (arming checks) and `navigator` (where to fly).

pub mod checks;
mod commander;
mod motion;
mod navigator;
mod noise;
mod payload;
mod photos;

use serde::Serialize;

pub use motion::Body;
use motion::Speeds;
use noise::Noise;
pub use payload::{Payload, Photo};

use crate::{
    fence::Fence,
    geo::{Home, Ned, length},
    log::{Ack, Cause, FlightLog, What},
    mission::Mission,
    mode::Mode,
    params::Params,
    quirks::{Quirk, Quirks},
    world::World,
};

/// A report that the autopilot makes without a request; the link sends it.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// MAVLink's severity, 0 to 7, and the text.
    Text(u8, String),
    /// The mission item with this number was reached.
    Reached(u16),
    /// A photo was taken.
    Photo(Photo),
}

/// The severities of MAVLink that the vehicle uses.
pub mod severity {
    /// Critical.
    pub const CRITICAL: u8 = 2;
    /// Error.
    pub const ERROR: u8 = 3;
    /// Warning.
    pub const WARNING: u8 = 4;
    /// For information.
    pub const INFO: u8 = 6;
}

/// MAVLink's landed state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Landed {
    /// On the ground.
    OnGround,
    /// Flying.
    InAir,
    /// Climbing to the take-off altitude.
    TakingOff,
    /// Descending in land mode.
    Landing,
}

/// A setpoint of offboard mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Setpoint {
    /// A position in metres north, east, down of home, with a heading in radians.
    Position {
        /// The position.
        place: Ned,
        /// Feed-forward velocity, metres per second.
        velocity: Option<Ned>,
        /// Heading in radians.
        yaw: Option<f64>,
    },
    /// A velocity in metres per second north, east, down.
    Velocity {
        /// The velocity.
        velocity: Ned,
        /// Heading in radians.
        yaw: Option<f64>,
        /// Turn rate in radians per second, without a heading.
        yaw_rate: f64,
    },
    /// A velocity in metres per second forward, right, down.
    BodyVelocity {
        /// The velocity.
        velocity: Ned,
        /// Turn rate in radians per second.
        yaw_rate: f64,
    },
}

/// The vehicle's present action within its mode.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plan {
    /// Motors idle on the ground.
    Idle,
    /// Come to rest and stay.
    Brake { lag: f64 },
    /// Hold this position and heading.
    Stay { place: Ned, yaw: f64 },
    /// Fly to a position and stay.
    GoTo {
        place: Ned,
        /// `None` keeps the heading.
        yaw: Option<f64>,
        speeds: Speeds,
    },
    /// Climb to this height (down coordinate).
    Takeoff { place: Ned, since: f64 },
    /// Descend until the ground.
    Descend { place: Ned },
    /// Climb, fly home and descend.
    Return { climb_to: f64, climbed: bool },
    /// Fly the mission.
    Mission,
    /// Follow the last setpoint.
    Offboard,
    /// Motors off in the air.
    Fall,
}

/// Health of sensors and estimates; tests can switch each off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Satellites in view, with a fix.
    pub gps: bool,
    /// Gyroscope.
    pub gyro: bool,
    /// Accelerometer.
    pub accel: bool,
    /// Magnetometer.
    pub mag: bool,
    /// A home position is known.
    pub home: bool,
    /// A remote control is connected.
    pub rc: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            gps: true,
            gyro: true,
            accel: true,
            mag: true,
            home: true,
            rc: false,
        }
    }
}

/// Extremes since the start or the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Excursions {
    /// Farthest from home, horizontally, metres.
    pub radius_m: f64,
    /// Greatest height above home, metres.
    pub up_m: f64,
    /// Lowest height above home, metres, while setpoints, missions or hold control the vehicle. Counts from the moment
    /// when it is above a metre until it descends by design: landing, return, or manual flight.
    pub lowest_m: Option<f64>,
    /// Greatest speed, metres per second.
    pub speed: f64,
    /// Smallest distance to the autopilot's fence, metres; negative beyond it. `None` without a fence.
    pub fence_depth_m: Option<f64>,
    /// Smallest distance to a solid object, metres. `None` without one.
    pub clearance_m: Option<f64>,
    /// Distance travelled, metres.
    pub path_m: f64,
}

impl Default for Excursions {
    fn default() -> Self {
        Self {
            radius_m: 0.0,
            up_m: 0.0,
            lowest_m: None,
            speed: 0.0,
            fence_depth_m: None,
            clearance_m: None,
            path_m: 0.0,
        }
    }
}

/// The vehicle.
#[derive(Debug, Clone)]
pub struct Vehicle {
    /// The origin of the local frame, where it stands at the start.
    pub home: Home,
    /// The quirks that are on.
    pub quirks: Quirks,
    /// PX4's parameters.
    pub params: Params,
    /// The objects around it.
    pub world: World,
    /// What has happened.
    pub log: FlightLog,
    /// Health of its sensors.
    pub health: Health,
    /// Its camera.
    pub payload: Payload,
    /// The pilot's sticks: forward, right, down in metres per second; used in position control.
    pub sticks: Ned,
    /// Battery, 0 to 100 percent.
    pub battery_pct: f64,
    /// Percent per second while the motors turn.
    pub drain: f64,
    time: f64,
    body: Body,
    mode: Mode,
    /// The last requested mode that allows arming: PX4 selects it when it disarms.
    mode_after_disarm: Mode,
    /// The last mode that a user or the end of a flight selected; a failsafe does not change it.
    intended: Mode,
    plan: Plan,
    armed: bool,
    armed_at: f64,
    has_flown: bool,
    launch: (f64, f64),
    touched: Option<f64>,
    landed: Landed,
    setpoint: Option<(Setpoint, f64)>,
    station_heard: Option<f64>,
    station_lost: bool,
    sticks_heard: bool,
    sticks_lost: Option<f64>,
    battery_stage: u8,
    fence: Fence,
    fence_valid: bool,
    breach: Option<f64>,
    colliding: bool,
    mission: Mission,
    notices: Vec<Notice>,
    noise: Noise,
    /// Simulated time at which it reacts to a new command; until then it keeps its velocity.
    reacts_at: f64,
    /// The speed that it reaches before it obeys that command, metres per second.
    surges_to: f64,
    /// The highest speed that the length of the present flight to a position allows, metres per second.
    leg_peak: f64,
    /// The set speed of the flight in the last step, if it was one of PX4's own, metres per second.
    own_cruise: Option<f64>,
    /// Simulated time of its take-off.
    took_off: Option<f64>,
    /// The autopilot's estimate of its home altitude, metres above sea level.
    home_amsl: f64,
    excursions: Excursions,
    high: bool,
}

/// How long PX4 corrects its home altitude after a take-off, seconds.
const HOME_MOVES_S: f64 = 120.0;

/// Greatest number of unread notices, so that a vehicle without a listener does not grow.
const NOTICES: usize = 256;

impl Default for Vehicle {
    fn default() -> Self {
        Self::new(Home::default(), Quirks::all(), World::default())
    }
}

impl Vehicle {
    /// A vehicle at home, on the ground, disarmed, in hold, with a full battery.
    #[must_use]
    pub fn new(home: Home, quirks: Quirks, world: World) -> Self {
        let twenty_minutes = 100.0 / 1200.0;
        Self {
            home,
            quirks,
            params: Params::default(),
            world,
            log: FlightLog::default(),
            health: Health::default(),
            payload: Payload::default(),
            sticks: [0.0; 3],
            battery_pct: 100.0,
            drain: twenty_minutes,
            time: 0.0,
            body: Body::default(),
            mode: Mode::Hold,
            mode_after_disarm: Mode::Hold,
            intended: Mode::Hold,
            plan: Plan::Idle,
            armed: false,
            armed_at: 0.0,
            has_flown: false,
            launch: (0.0, 0.0),
            touched: Some(0.0),
            landed: Landed::OnGround,
            setpoint: None,
            station_heard: None,
            station_lost: false,
            sticks_heard: false,
            sticks_lost: None,
            battery_stage: 0,
            fence: Fence::default(),
            fence_valid: true,
            breach: None,
            colliding: false,
            mission: Mission::default(),
            notices: Vec::new(),
            noise: Noise::new(0),
            reacts_at: 0.0,
            surges_to: 0.0,
            leg_peak: f64::INFINITY,
            own_cruise: None,
            took_off: None,
            home_amsl: home.alt,
            excursions: Excursions::default(),
            high: false,
        }
    }

    /// Sets the random seed; the default is 0.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.noise = Noise::new(seed);
        self
    }

    /// Reboots on the ground, as after a loss of power: time, parameters, fence, mission and mode are those of a new
    /// vehicle. The log, the world and the payload stay.
    pub fn reboot(&mut self) {
        let fresh = Self::new(self.home, self.quirks.clone(), self.world.clone());
        let before = std::mem::replace(self, fresh);
        self.body = Body {
            position: before.body.position,
            yaw: before.body.yaw,
            ..Body::default()
        };
        self.launch = (self.body.position[0], self.body.position[1]);
        (self.log, self.payload, self.noise) = (before.log, before.payload, before.noise);
        (self.battery_pct, self.drain) = (before.battery_pct, before.drain);
    }

    /// Advances time by `dt` seconds; steps of at most 0.02 s keep the loops stable.
    pub fn step(&mut self, dt: f64) {
        self.time += dt;
        let before = self.body.position;
        self.supervise();
        self.fly(dt);
        self.notice_ground();
        self.settle_home();
        if self.armed {
            let load = 1.0 + length(self.body.velocity) * 0.02;
            let share = if self.landed == Landed::OnGround {
                0.1
            } else {
                load
            };
            self.battery_pct = (self.battery_pct - self.drain * share * dt).max(0.0);
        }
        self.record(before);
    }

    /// Simulated seconds since the start.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Simulated milliseconds since the start, as messages carry them.
    #[must_use]
    pub fn boot_ms(&self) -> u32 {
        (self.time * 1e3) as u32
    }

    /// Pose and velocity.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The flight mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The mode that was last selected other than by a failsafe (PX4's `nav_state_user_intention`).
    #[must_use]
    pub fn intended(&self) -> Mode {
        self.intended
    }

    /// Whether the motors turn.
    #[must_use]
    pub fn armed(&self) -> bool {
        self.armed
    }

    /// The landed state.
    #[must_use]
    pub fn landed(&self) -> Landed {
        self.landed
    }

    /// The uploaded fence, and whether the autopilot obeys it.
    #[must_use]
    pub fn fence(&self) -> (&Fence, bool) {
        (&self.fence, self.fence_valid)
    }

    /// The uploaded mission and its progress.
    #[must_use]
    pub fn mission(&self) -> &Mission {
        &self.mission
    }

    /// The autopilot's home position, metres north and east of [`Vehicle::home`]: where it was last armed.
    #[must_use]
    pub fn launch(&self) -> (f64, f64) {
        self.launch
    }

    /// The extremes so far.
    #[must_use]
    pub fn excursions(&self) -> Excursions {
        self.excursions
    }

    /// Resets the extremes.
    pub fn reset_excursions(&mut self) {
        self.excursions = Excursions::default();
    }

    /// Latitude, longitude in degrees and altitude above sea level in metres.
    #[must_use]
    pub fn global(&self) -> (f64, f64, f64) {
        let (lat, lon) = self.home.to_global(self.body.position[0], self.body.position[1]);
        (lat, lon, self.home.alt - self.body.position[2])
    }

    /// The estimated position, metres north, east, down of its start.
    #[must_use]
    pub fn believed(&self) -> Ned {
        let [north, east, down] = self.body.position;
        [north, east, down + self.ground_drift()]
    }

    /// The estimated altitude, metres above sea level.
    #[must_use]
    pub fn believed_amsl(&self) -> f64 {
        self.home.alt - self.believed()[2]
    }

    /// The autopilot's home altitude, metres above sea level: the reference of its relative height.
    #[must_use]
    pub fn home_amsl(&self) -> f64 {
        self.home_amsl
    }

    /// Converts an estimated position to the true one.
    fn real(&self, believed: Ned) -> Ned {
        [believed[0], believed[1], believed[2] - self.ground_drift()]
    }

    fn ground_drift(&self) -> f64 {
        if self.has(Quirk::GroundDrifts) {
            self.noise.ground(self.time)
        } else {
            0.0
        }
    }

    /// Updates the home altitude.
    fn settle_home(&mut self) {
        if !self.armed {
            self.home_amsl = self.believed_amsl();
        }
        if self.landed == Landed::OnGround {
            self.took_off = None;
            return;
        }
        let since = self.time - *self.took_off.get_or_insert(self.time);
        if since < HOME_MOVES_S && self.has(Quirk::HomeMovesInFlight) {
            self.home_amsl = self.home.alt - self.ground_drift() + self.noise.home(self.time);
        }
    }

    /// Height above the ground in metres.
    #[must_use]
    pub fn height(&self) -> f64 {
        -self.body.position[2]
    }

    /// Puts the vehicle at a position at rest, for tests.
    pub fn teleport(&mut self, place: Ned, yaw: f64) {
        self.body = Body {
            position: [place[0], place[1], place[2].min(0.0)],
            yaw,
            ..Body::default()
        };
        if self.plan != Plan::Idle && self.plan != Plan::Offboard {
            self.plan = Plan::Brake { lag: motion::NO_LAG };
        }
    }

    /// Takes the notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn notify(&mut self, notice: Notice) {
        if self.notices.len() == NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// Sends a status text.
    pub fn say(&mut self, severity: u8, text: impl Into<String>) {
        let text = text.into();
        self.log.push(
            self.time,
            What::Text {
                severity,
                text: text.clone(),
            },
        );
        self.notify(Notice::Text(severity, text));
    }

    fn enter(&mut self, mode: Mode, cause: Cause) {
        // A failsafe overrides the requested mode but does not replace it.
        if cause != Cause::Failsafe {
            self.intended = mode;
        }
        if cause != Cause::Failsafe && !mode.prevents_arming() {
            self.mode_after_disarm = mode;
        }
        if self.mode != mode {
            let from = self.mode;
            self.mode = mode;
            self.log.push(
                self.time,
                What::Mode {
                    from,
                    to: mode,
                    cause,
                },
            );
        }
    }

    fn command(&mut self, name: &str, ack: Ack) -> Ack {
        let name = name.to_owned();
        self.log.push(self.time, What::Command { name, ack });
        ack
    }

    fn record(&mut self, before: Ned) {
        let at = self.body.position;
        let speed = length(self.body.velocity);
        let depth = self.fence.depth(at[0], at[1]);
        let clearance = self.world.clearance(at);
        let seen = &mut self.excursions;
        seen.radius_m = seen.radius_m.max(at[0].hypot(at[1]));
        seen.up_m = seen.up_m.max(-at[2]);
        let flown = self.armed && matches!(self.mode, Mode::Offboard | Mode::Hold | Mode::Mission);
        self.high = flown && (self.high || -at[2] > 1.0);
        if self.high {
            seen.lowest_m = Some(seen.lowest_m.unwrap_or(f64::INFINITY).min(-at[2]));
        }
        seen.speed = seen.speed.max(speed);
        seen.path_m += length(crate::geo::difference(at, before));
        if depth.is_finite() {
            seen.fence_depth_m = Some(seen.fence_depth_m.unwrap_or(f64::INFINITY).min(depth));
        }
        if clearance.is_finite() {
            seen.clearance_m = Some(seen.clearance_m.unwrap_or(f64::INFINITY).min(clearance));
        }
        let colliding = clearance <= 0.0;
        if colliding && !self.colliding {
            self.log.push(self.time, What::Collision { position: at });
        }
        self.colliding = colliding;
    }

    fn has(&self, quirk: Quirk) -> bool {
        self.quirks.has(quirk)
    }
}
