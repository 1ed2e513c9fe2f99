//! The latest telemetry of the vehicle.
//!
//! Plain data with the time of each message. [`super::streams`] writes it; all other modules read it without waiting.
//! Read [`Telemetry`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::geo::{Ned, Origin, length};
use crate::guard::{Checks, HOME_M, Health, Home, Landed, Mode, POSE_MAX_AGE_S, Pose};

/// A value and its time of receipt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<T> {
    pub(crate) value: T,
    pub(crate) at: Instant,
}

impl<T> Reading<T> {
    pub(crate) fn now(value: T) -> Self {
        Self {
            value,
            at: Instant::now(),
        }
    }
}

/// Position in degrees, heights in metres.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalPosition {
    pub(crate) lat: f64,
    pub(crate) lon: f64,
    pub(crate) amsl_m: f64,
    pub(crate) relative_m: f64,
}

/// Charge in percent, volts, and seconds left if the vehicle reports them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Battery {
    pub(crate) pct: f64,
    pub(crate) voltage_v: f64,
    pub(crate) remaining_s: Option<f64>,
}

/// A status text of the vehicle.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Sequence number, so that a caller can tell which texts came later.
    pub(crate) number: u64,
    pub(super) at: Instant,
    pub(crate) severity: &'static str,
    pub(crate) text: Arc<str>,
}

/// What PX4 reports of its mode in `CURRENT_MODE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModeReport {
    pub(crate) mode: Mode,
    /// The mode that a user selected; a failsafe changes the mode and not this.
    pub(crate) intended: Mode,
}

/// A switch to a mode that a pilot flies, as `CURRENT_MODE` showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PilotSwitch {
    /// When it was heard, which tells it from others.
    pub(crate) at: Instant,
    pub(crate) present: ModeReport,
}

/// Progress of a mission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mission {
    pub(crate) current: i32,
    pub(crate) total: i32,
}

/// Everything received from one vehicle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    /// MAVSDK's view of the connection.
    pub(crate) connected: bool,
    /// When the last message of any kind came.
    pub(crate) heard: Option<Instant>,
    /// The vehicle's time since boot, microseconds; 0 until it is reported.
    pub(super) booted_us: u64,
    /// Its number in MAVLink, once an autopilot's heartbeat was seen.
    pub(super) system: Option<u32>,
    /// Its type in MAVLink (`MAV_TYPE`), once an autopilot's heartbeat was seen.
    pub(crate) kind: Option<u64>,
    /// Number of consecutive messages whose time since boot goes back.
    pub(super) behind: u32,
    /// Number of restarts detected.
    pub(crate) boots: u32,
    pub(crate) place: Option<Reading<GlobalPosition>>,
    pub(crate) local: Option<Reading<(Ned, Ned)>>,
    /// The velocities of the last [`ACCELERATES`], oldest first.
    pub(super) velocities: VecDeque<(Instant, Ned)>,
    /// Converts the time between messages; real time when it is missing.
    pub(super) clock: Option<Clock>,
    pub(crate) yaw_deg: Option<Reading<f64>>,
    pub(crate) armed: Option<bool>,
    pub(crate) in_air: Option<bool>,
    pub(crate) landed: Option<Landed>,
    pub(crate) mode: Option<Mode>,
    /// When the mode was last reported.
    pub(crate) mode_at: Option<Instant>,
    /// The mode in PX4's last `CURRENT_MODE`, many times a second from an armed vehicle. It shows a switch of which the
    /// heartbeats of `mode` show nothing; the two come by different streams, in any order.
    pub(crate) present: Option<ModeReport>,
    /// The last switch to a pilot's mode. Reports that arrive together overwrite each other before anyone looks at them, and this
    /// stays.
    pub(crate) switch: Option<PilotSwitch>,
    pub(crate) health: Option<Health>,
    /// Its arming checks.
    pub(crate) checks: Option<Checks>,
    pub(crate) satellites: Option<i32>,
    /// By battery id.
    pub(crate) batteries: BTreeMap<u32, Reading<Battery>>,
    pub(crate) clearance_m: Option<Reading<f64>>,
    pub(crate) camera: Option<i32>,
    /// Photos that the camera reported as taken.
    pub(crate) captures: u64,
    /// Where the last photo taken is, as the camera reports it.
    pub(crate) photo_url: String,
    /// Photos that the camera reported as failed.
    pub(crate) failed_captures: u64,
    /// Whether the camera records a video.
    pub(crate) recording: Option<Reading<bool>>,
    pub(crate) mission: Option<Reading<Mission>>,
    pub(crate) texts: VecDeque<Text>,
    pub(crate) texts_so_far: u64,
    pub(crate) origin: Option<Origin>,
    /// Where it stood before arming.
    pub(crate) home: Option<Home>,
    /// Latitude and longitude where it stood before arming; unknown for a vehicle found in the air.
    pub(crate) launch: Option<(f64, f64)>,
    /// Latitude and longitude of the first home; the centre of a round fence stays there.
    pub(crate) anchor: Option<(f64, f64)>,
}

/// A status text may explain a change of mode that is shown within this time: modes come once a second.
const RECENT: Duration = Duration::from_secs(3);
/// Words of PX4's status texts about its failsafes, in lower case.
const FAILSAFE_WORDS: [&str; 5] = [
    "failsafe",
    "battery level",
    "geofence",
    "connection lost",
    "control lost",
];

/// Time over which the acceleration is taken, vehicle time: longer than the noise of a velocity, shorter than PX4 takes to
/// build an acceleration up.
const ACCELERATES: Duration = Duration::from_millis(400);
/// Velocities closer together than this say nothing about the acceleration, seconds.
const APART_S: f64 = 0.08;

/// Texts that are kept; one or two explain a refusal.
const TEXTS: usize = 16;
/// The link is lost after this silence: MAVSDK's own limit for heartbeats.
const LOST: Duration = Duration::from_secs(3);

/// Consecutive earlier messages that prove a restart; a few may come from a component with its own clock.
const BEHIND: u32 = 5;
/// Messages of one boot may be out of order by less than this, microseconds.
const DISORDER_US: u64 = 1_000_000;

impl Telemetry {
    /// Whether telemetry arrives.
    pub(crate) fn link_ok(&self) -> bool {
        self.connected && self.heard.is_some_and(|at| at.elapsed() < LOST)
    }

    /// Stores the vehicle's time since boot. When it goes back, the vehicle has restarted, and older data belongs to
    /// another flight or another vehicle.
    pub(crate) fn time(&mut self, booted_us: u64) {
        if booted_us + DISORDER_US < self.booted_us {
            self.behind += 1;
            if self.behind < BEHIND {
                return;
            }
            *self = Self {
                connected: self.connected,
                heard: self.heard,
                system: self.system,
                kind: self.kind,
                clock: self.clock,
                boots: self.boots + 1,
                texts_so_far: self.texts_so_far,
                camera: self.camera,
                captures: self.captures,
                failed_captures: self.failed_captures,
                ..Self::default()
            };
        }
        (self.booted_us, self.behind) = (booted_us, 0);
    }

    /// Stores a position and a velocity in the local frame.
    pub(super) fn moved(&mut self, ned: Ned, velocity: Ned) {
        let now = Reading::now((ned, velocity));
        let over = self.clock.map_or(ACCELERATES, |clock| clock.wall(ACCELERATES));
        if velocity.iter().all(|part| part.is_finite()) {
            self.velocities.push_back((now.at, velocity));
        }
        while let Some((at, _)) = self.velocities.front()
            && now.at.duration_since(*at) > over
        {
            self.velocities.pop_front();
        }
        self.local = Some(now);
    }

    /// The acceleration over the last [`ACCELERATES`], metres per second squared; zero when too little was heard.
    fn acceleration(&self) -> Ned {
        let (Some((from, before)), Some((to, now))) = (self.velocities.front(), self.velocities.back())
        else {
            return [0.0; 3];
        };
        let wall = to.duration_since(*from);
        let passed_s = self.clock.map_or(wall, |clock| clock.vehicle(wall)).as_secs_f64();
        if passed_s < APART_S {
            return [0.0; 3];
        }
        std::array::from_fn(|axis| (now[axis] - before[axis]) / passed_s)
    }

    /// The pose, if it is fresh.
    pub(crate) fn pose(&self) -> Option<Pose> {
        let fresh = |at: Instant| at.elapsed().as_secs_f64() <= POSE_MAX_AGE_S;
        let (place, local, yaw) = (self.place?, self.local?, self.yaw_deg?);
        if !(fresh(place.at) && fresh(local.at) && fresh(yaw.at)) {
            return None;
        }
        let (ned, velocity) = local.value;
        let numbers = [
            place.value.lat,
            place.value.lon,
            place.value.amsl_m,
            place.value.relative_m,
            yaw.value,
        ];
        if ned
            .iter()
            .chain(&velocity)
            .chain(&numbers)
            .any(|number| !number.is_finite())
        {
            return None;
        }
        Some(Pose {
            ned,
            velocity,
            acceleration: self.acceleration(),
            yaw_deg: yaw.value,
            alt_m: self
                .home
                .map_or(place.value.relative_m, |home| home.down_m - ned[2]),
            relative_m: place.value.relative_m,
            amsl_m: place.value.amsl_m,
            lat: place.value.lat,
            lon: place.value.lon,
        })
    }

    /// The battery with the lowest charge reported within `at_most`. One without an estimate of the charge counts only
    /// when no other has one.
    pub(crate) fn battery(&self, at_most: Duration) -> Option<Battery> {
        let fresh = self
            .batteries
            .values()
            .filter(|seen| seen.at.elapsed() <= at_most);
        fresh
            .map(|seen| seen.value)
            .min_by(|a, b| match (a.pct.is_finite(), b.pct.is_finite()) {
                (true, true) => a.pct.total_cmp(&b.pct),
                (a, b) => b.cmp(&a),
            })
    }

    /// Whether it may be moving: armed, in the air, or unknown.
    pub(crate) fn may_move(&self) -> bool {
        self.armed != Some(false) || self.in_air != Some(false)
    }

    /// Whether it stands on the ground.
    pub(crate) fn on_ground(&self) -> bool {
        self.landed == Some(Landed::OnGround) && self.in_air != Some(true)
    }

    /// Whether it is within a few metres of its take-off point; false when that is unknown.
    pub(crate) fn is_over_launch(&self) -> bool {
        matches!((self.pose(), self.launch), (Some(pose), Some((lat, lon))) if pose.away_from(lat, lon) <= HOME_M)
    }

    /// Adds a status text.
    pub(crate) fn record_text(&mut self, severity: &'static str, text: &str) {
        self.texts_so_far += 1;
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        let number = self.texts_so_far;
        self.texts.push_back(Text {
            number,
            at: Instant::now(),
            severity,
            text: text.into(),
        });
    }

    /// The status texts after text `number`, oldest first, if any.
    pub(crate) fn words_since(&self, number: u64) -> Option<String> {
        let words: Vec<&str> = self
            .texts
            .iter()
            .filter(|text| text.number > number)
            .map(|text| &*text.text)
            .collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The last of the recent status texts in which the vehicle speaks of a failsafe.
    pub(super) fn failsafe_words(&self) -> Option<String> {
        let names_it = |text: &&Text| {
            let words = text.text.to_lowercase();
            text.at.elapsed() < RECENT && FAILSAFE_WORDS.iter().any(|word| words.contains(word))
        };
        self.texts
            .iter()
            .rev()
            .find(names_it)
            .map(|text| text.text.to_string())
    }

    /// The last status text of severity warning or worse.
    pub(crate) fn last_warning(&self) -> Option<String> {
        let grave = |text: &&Text| !matches!(text.severity, "debug" | "info" | "notice");
        self.texts
            .iter()
            .rev()
            .find(grave)
            .map(|text| text.text.to_string())
    }

    /// Clears the health and the arming checks, which are requested again after a silence.
    pub(crate) fn forget_health(&mut self) {
        (self.health, self.checks) = (None, None);
    }

    /// The last status text.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.texts.back().map(|text| text.text.to_string())
    }

    /// The mode in which a pilot flies it, as either of the two streams that report modes has it: each may be behind the other.
    pub(crate) fn pilots_mode(&self) -> Option<Mode> {
        let present = self.present.map(|present| present.mode);
        present.into_iter().chain(self.mode).find(|mode| mode.is_manual())
    }

    /// Takes a report of the mode.
    pub(crate) fn hear_mode(&mut self, present: ModeReport, at: Instant) {
        let before = self.present.replace(present);
        if present.mode.is_manual() && before.is_some_and(|before| !before.mode.is_manual()) {
            self.switch = Some(PilotSwitch { at, present });
        }
    }

    /// Determines home. While the vehicle is disarmed, home is where it stands; during a flight it stays fixed, because
    /// PX4 corrects its own home by a metre and more for two minutes after a take-off, and its reported height jumps
    /// with it. For a vehicle found in the air, home is the origin of its local frame, at the vehicle's height
    /// reference.
    pub(crate) fn settle_home(&mut self) {
        let (Some(place), Some(local)) = (self.place, self.local) else {
            return;
        };
        let (ned, velocity) = local.value;
        // A vehicle without a fix says that it does not know where it is, with NaN or with zeros. The centre of a round
        // fence would stay there.
        let place_is_known = crate::guard::check_position(place.value.lat, place.value.lon).is_ok();
        if !place_is_known || !ned.iter().all(|metres| metres.is_finite()) || !place.value.amsl_m.is_finite()
        {
            return;
        }
        let standing = self.armed == Some(false) || self.on_ground();
        if self.origin.is_none() || standing && length(velocity) < 0.3 {
            self.origin = Some(Origin::from_fix(place.value.lat, place.value.lon, ned));
        }
        let Some(origin) = self.origin else {
            return;
        };
        let before_flight = self.armed == Some(false) || self.home.is_none() && self.in_air == Some(false);
        if before_flight {
            self.launch = Some((place.value.lat, place.value.lon));
        }
        let [north_m, east_m, down_m] = match (before_flight, self.home, self.in_air) {
            (true, ..) => ned,
            (false, None, Some(true)) => [0.0, 0.0, ned[2] + place.value.relative_m],
            _ => return,
        };
        let (lat, lon) = *self.anchor.get_or_insert_with(|| origin.global(north_m, east_m));
        self.home = Some(Home {
            origin,
            north_m,
            east_m,
            down_m,
            amsl_m: place.value.amsl_m - (down_m - ned[2]),
            centre: origin.local(lat, lon),
        });
    }
}

#[cfg(test)]
mod tests;
