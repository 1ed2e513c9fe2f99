//! What the vehicle says, as it was last heard.
//!
//! Plain data with the moment each piece came; written by the streams of [`super::streams`], read by everybody else
//! without waiting. Read [`Telemetry`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::geo::{Ned, Origin, length};
use crate::guard::{Checks, HOME_M, Health, Home, Landed, Mode, POSE_MAX_AGE_S, Pose};

/// A value and when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<T> {
    pub(crate) value: T,
    pub(crate) at: Instant,
}

impl<T> Seen<T> {
    pub(crate) fn now(value: T) -> Self {
        Self {
            value,
            at: Instant::now(),
        }
    }
}

/// Place in degrees, heights in metres.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) lat: f64,
    pub(crate) lon: f64,
    pub(crate) amsl_m: f64,
    pub(crate) relative_m: f64,
}

/// Charge in percent, volts, and seconds left where the vehicle says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Battery {
    pub(crate) pct: f64,
    pub(crate) voltage_v: f64,
    pub(crate) remaining_s: Option<f64>,
}

/// Something the vehicle said in words.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Counts up, so that a caller can tell what came later.
    pub(crate) number: u64,
    pub(crate) severity: &'static str,
    pub(crate) text: Arc<str>,
}

/// Progress of a mission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mission {
    pub(crate) current: i32,
    pub(crate) total: i32,
}

/// Everything heard from one vehicle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    /// What MAVSDK says of the connection.
    pub(crate) connected: bool,
    /// When anything came last.
    pub(crate) heard: Option<Instant>,
    /// The vehicle's own time since it has booted, microseconds, as far as it tells.
    pub(super) booted_us: u64,
    /// Messages in a row with an earlier time.
    pub(super) behind: u32,
    /// How many times it was seen to restart.
    pub(crate) boots: u32,
    pub(crate) place: Option<Seen<Place>>,
    pub(crate) local: Option<Seen<(Ned, Ned)>>,
    pub(crate) yaw_deg: Option<Seen<f64>>,
    pub(crate) armed: Option<bool>,
    pub(crate) in_air: Option<bool>,
    pub(crate) landed: Option<Landed>,
    pub(crate) mode: Option<Mode>,
    pub(crate) health: Option<Health>,
    /// What it says of the checks before arming.
    pub(crate) checks: Option<Checks>,
    pub(crate) satellites: Option<i32>,
    /// By the vehicle's numbers for them.
    pub(crate) batteries: BTreeMap<u32, Seen<Battery>>,
    pub(crate) clearance_m: Option<Seen<f64>>,
    pub(crate) camera: Option<i32>,
    /// Photos the camera has reported as taken.
    pub(crate) captures: u64,
    /// Photos the camera has reported as failed.
    pub(crate) failed_captures: u64,
    /// Whether the camera records a video.
    pub(crate) recording: Option<Seen<bool>>,
    pub(crate) mission: Option<Seen<Mission>>,
    pub(crate) texts: VecDeque<Text>,
    pub(crate) texts_so_far: u64,
    pub(crate) origin: Option<Origin>,
    /// Where it stood before it was armed.
    pub(crate) home: Option<Home>,
    /// Latitude and longitude where it was seen standing before it was armed; not known of a vehicle found in the air.
    pub(crate) launch: Option<(f64, f64)>,
    /// Latitude and longitude of the first home: it holds the fence in its place.
    pub(crate) anchor: Option<(f64, f64)>,
}

/// Texts that are kept: a refusal is explained by the last one or two.
const TEXTS: usize = 16;
/// The vehicle is lost after this silence: MAVSDK's own limit for heartbeats.
const LOST: Duration = Duration::from_secs(3);

/// So many in a row tell of a restart: another part of the vehicle may have a clock of its own.
const BEHIND: u32 = 5;
/// Messages of one boot come in the wrong order by less than this, microseconds.
const DISORDER_US: u64 = 1_000_000;

impl Telemetry {
    /// Whether the vehicle is heard.
    pub(crate) fn link_ok(&self) -> bool {
        self.connected && self.heard.is_some_and(|at| at.elapsed() < LOST)
    }

    /// Takes the vehicle's time since it has booted. Where that goes back it has restarted, and what it said before is
    /// about another flight, or another vehicle.
    pub(crate) fn time(&mut self, booted_us: u64) {
        if booted_us + DISORDER_US < self.booted_us {
            self.behind += 1;
            if self.behind < BEHIND {
                return;
            }
            *self = Self {
                connected: self.connected,
                heard: self.heard,
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

    /// Where the vehicle is, if that is fresh.
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

    /// The emptiest battery that was told within `at_most`. One without an estimate counts when no other has any.
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

    /// Whether it may be moving: armed, in the air, or nobody knows.
    pub(crate) fn may_move(&self) -> bool {
        self.armed != Some(false) || self.in_air != Some(false)
    }

    /// Whether it stands.
    pub(crate) fn on_ground(&self) -> bool {
        self.landed == Some(Landed::OnGround) && self.in_air != Some(true)
    }

    /// Whether it is where it took off, some metres more or less. Where that is not known, it is not.
    pub(crate) fn is_over_launch(&self) -> bool {
        matches!((self.pose(), self.launch), (Some(pose), Some((lat, lon))) if pose.away_from(lat, lon) <= HOME_M)
    }

    /// Adds something said.
    pub(crate) fn said(&mut self, severity: &'static str, text: &str) {
        self.texts_so_far += 1;
        if self.texts.len() == TEXTS {
            self.texts.pop_front();
        }
        let number = self.texts_so_far;
        self.texts.push_back(Text {
            number,
            severity,
            text: text.into(),
        });
    }

    /// What was said after text `number`, the newest last, or nothing.
    pub(crate) fn words_since(&self, number: u64) -> Option<String> {
        let words: Vec<&str> = self
            .texts
            .iter()
            .filter(|text| text.number > number)
            .map(|text| &*text.text)
            .collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The last words that were a warning or worse.
    pub(crate) fn last_warning(&self) -> Option<String> {
        let grave = |text: &&Text| !matches!(text.severity, "debug" | "info" | "notice");
        self.texts
            .iter()
            .rev()
            .find(grave)
            .map(|text| text.text.to_string())
    }

    /// Forgets what is asked of it anew after a silence.
    pub(crate) fn forget_health(&mut self) {
        (self.health, self.checks) = (None, None);
    }

    /// The last words.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.texts.back().map(|text| text.text.to_string())
    }

    /// Works out where home is. While the vehicle is disarmed it is where it stands; then its place and its height stay for
    /// the whole flight: PX4 corrects its own home for two minutes after a take-off, by a metre and more, and what it calls
    /// its height jumps with it. Where the vehicle was found in the air, it is the origin of its local frame, at the height
    /// that the vehicle counts from.
    pub(crate) fn settle_home(&mut self) {
        let (Some(place), Some(local)) = (self.place, self.local) else {
            return;
        };
        let (ned, velocity) = local.value;
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
            centre: origin.local(lat, lon),
        });
    }
}
