//! The state of the vehicle, what can be asked of it, and what it notes and reports.
//!
//! Start with [`Vehicle`].

use super::excursions::Excursions;
use super::health::Health;
use super::motion::{self, Body};
use super::noise::Noise;
use super::notice::Notice;
use super::payload::Payload;
use super::plan::{Landed, Plan, Setpoint};
use crate::{
    fence::Fence,
    geo::{Home, Ned},
    log::{Ack, Cause, FlightLog, What},
    mission::Mission,
    mode::Mode,
    params::Params,
    quirks::{Quirk, Quirks},
    world::World,
};

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
    pub(super) time: f64,
    pub(super) body: Body,
    pub(super) mode: Mode,
    /// The last requested mode that allows arming: PX4 selects it when it disarms.
    pub(super) mode_after_disarm: Mode,
    /// The last mode that a user or the end of a flight selected; a failsafe does not change it.
    pub(super) intended: Mode,
    pub(super) plan: Plan,
    pub(super) armed: bool,
    pub(super) armed_at: f64,
    pub(super) has_flown: bool,
    pub(super) launch: (f64, f64),
    pub(super) touched: Option<f64>,
    pub(super) landed: Landed,
    pub(super) setpoint: Option<(Setpoint, f64)>,
    pub(super) station_heard: Option<f64>,
    pub(super) station_lost: bool,
    pub(super) sticks_heard: bool,
    pub(super) sticks_lost: Option<f64>,
    pub(super) battery_stage: u8,
    pub(super) fence: Fence,
    pub(super) fence_valid: bool,
    pub(super) breach: Option<f64>,
    pub(super) colliding: bool,
    pub(super) mission: Mission,
    pub(super) notices: Vec<Notice>,
    pub(super) noise: Noise,
    /// Simulated time at which it reacts to a new command; until then it keeps its velocity.
    pub(super) reacts_at: f64,
    /// The speed that it reaches before it obeys that command, metres per second.
    pub(super) surges_to: f64,
    /// The highest speed that the length of the present flight to a position allows, metres per second.
    pub(super) leg_peak: f64,
    /// The set speed of the flight in the last step, if it was one of PX4's own, metres per second.
    pub(super) own_cruise: Option<f64>,
    /// Simulated time of its take-off.
    pub(super) took_off: Option<f64>,
    /// The autopilot's estimate of its home altitude, metres above sea level.
    pub(super) home_amsl: f64,
    pub(super) excursions: Excursions,
    pub(super) high: bool,
}

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
    pub(super) fn real(&self, believed: Ned) -> Ned {
        [believed[0], believed[1], believed[2] - self.ground_drift()]
    }

    pub(super) fn ground_drift(&self) -> f64 {
        if self.has(Quirk::GroundDrifts) {
            self.noise.ground(self.time)
        } else {
            0.0
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

    pub(super) fn notify(&mut self, notice: Notice) {
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

    pub(super) fn enter(&mut self, mode: Mode, cause: Cause) {
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

    pub(super) fn command(&mut self, name: &str, ack: Ack) -> Ack {
        let name = name.to_owned();
        self.log.push(self.time, What::Command { name, ack });
        ack
    }

    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.has(quirk)
    }
}
