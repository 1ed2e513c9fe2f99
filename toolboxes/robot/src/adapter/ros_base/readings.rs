//! What a robot tells of itself, read from its messages. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::bearing::half_circle;
use crate::spot::Spot;

/// How long a channel that was found may keep quiet before it counts as silent.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

/// Where a base is, and how fast it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Odometry {
    /// Metres.
    pub(super) x: f64,
    /// Metres.
    pub(super) y: f64,
    /// Radians, counter-clockwise.
    pub(super) heading: f64,
    /// Metres per second, in any direction.
    pub(super) speed: f64,
    /// Radians per second.
    pub(super) turn: f64,
}

impl Odometry {
    /// From nav_msgs/Odometry, or a pose with its header alone.
    pub(super) fn read(message: &Value) -> Option<Self> {
        let pose = &message["pose"]["pose"];
        let [x, y] = ["x", "y"].map(|key| pose["position"][key].as_f64());
        let [qx, qy, qz, qw] = ["x", "y", "z", "w"].map(|key| pose["orientation"][key].as_f64());
        let (qx, qy, qz, qw) = (qx?, qy?, qz?, qw?);
        let twist = &message["twist"]["twist"];
        let linear = ["x", "y"].map(|key| twist["linear"][key].as_f64().unwrap_or_default());
        Some(Self {
            x: x?,
            y: y?,
            heading: (2.0 * (qw * qz + qx * qy)).atan2(1.0 - 2.0 * (qy * qy + qz * qz)),
            speed: linear[0].hypot(linear[1]),
            turn: twist["angular"]["z"].as_f64().unwrap_or_default(),
        })
    }

    /// Where this is after the way from one odometry to another.
    pub(super) fn moved(&self, from: &Self, to: &Self) -> Self {
        let (sin, cos) = (self.heading - from.heading).sin_cos();
        let (x, y) = (to.x - from.x, to.y - from.y);
        Self {
            x: self.x + x * cos - y * sin,
            y: self.y + x * sin + y * cos,
            heading: self.heading + to.heading - from.heading,
            ..self.clone()
        }
    }

    /// Whether this is the beginning of a count, as after a start of the program that counts, and what it was before was not.
    pub(super) fn begins_after(&self, before: &Self) -> bool {
        let is_beginning = |odometry: &Self, within: f64| {
            odometry.x.hypot(odometry.y) < within && odometry.heading.abs() < within
        };
        is_beginning(self, 0.05) && !is_beginning(before, 0.2)
    }

    /// In a frame of this name, to the millimetre and a tenth of a degree.
    pub(super) fn spot(&self, frame: &str) -> Spot {
        let rounded = |value: f64, parts: f64| (value * parts).round() / parts + 0.0;
        Spot {
            frame: frame.to_owned(),
            x: rounded(self.x, 1000.0),
            y: rounded(self.y, 1000.0),
            heading: rounded(self.degrees(), 10.0),
        }
    }

    /// Degrees, above -180 to 180.
    fn degrees(&self) -> f64 {
        half_circle(self.heading.to_degrees())
    }
}

/// Odometry that is elsewhere by more than this, in metres, beyond what a base goes at twice its speed, is not of one count.
const JUMP: f64 = 0.3;

/// A robot has at most so many joints that are kept.
const MOST: usize = 256;

/// Where each joint is, in radians or metres, and when it was told: several publishers may tell of some joints each.
#[derive(Default)]
pub(super) struct JointStates(Mutex<BTreeMap<String, (Instant, f64)>>);

impl JointStates {
    /// Keeps sensor_msgs/JointState, or control_msgs/JointTrajectoryControllerState of any distribution, that came then.
    pub(super) fn put(&self, message: &Value, at: Instant) -> Option<()> {
        let (names, positions) = match message["name"].as_array() {
            Some(names) => (names, message["position"].as_array()?),
            None => {
                let measured = ["feedback", "actual"].map(|key| message[key]["positions"].as_array());
                let measured = measured.into_iter().flatten().find(|found| !found.is_empty());
                (message["joint_names"].as_array()?, measured?)
            }
        };
        let mut known = self.0.lock();
        for (name, position) in names.iter().zip(positions) {
            if let (Some(name), Some(position)) = (name.as_str(), position.as_f64())
                && (known.len() < MOST || known.contains_key(name))
            {
                known.insert(name.to_owned(), (at, position));
            }
        }
        Some(())
    }

    /// Where a joint is, and how long ago that was told.
    pub(super) fn get(&self, joint: &str) -> Option<(Duration, f64)> {
        let known = self.0.lock();
        known.get(joint).map(|(at, position)| (at.elapsed(), *position))
    }

    /// Where a joint is, and when that was told, unless that is a second ago.
    pub(super) fn fresh(&self, joint: &str) -> Option<(Instant, f64)> {
        let known = self.0.lock();
        known.get(joint).copied().filter(|(at, _)| at.elapsed() < SILENCE)
    }

    /// Degrees of all joints, and how long ago the newest was told.
    pub(super) fn all(&self) -> Option<(Duration, serde_json::Map<String, Value>)> {
        let known = self.0.lock();
        let newest = known.values().map(|(at, _)| at.elapsed()).min()?;
        let degrees = |position: f64| (position.to_degrees() * 10.0).round() / 10.0;
        let each = known
            .iter()
            .map(|(name, (_, position))| (name.clone(), degrees(*position).into()));
        Some((newest, each.collect()))
    }
}

/// How far a base has gone since it was somewhere.
#[derive(Clone, Debug)]
pub(super) struct Trip {
    start: Odometry,
    last: (Instant, Odometry),
    /// Radians, also beyond a full turn.
    turned: f64,
    /// Metres per second.
    fastest: f64,
}

impl Trip {
    /// From what was told at a time; the base goes no faster than told, or so it should be.
    pub(super) fn new((at, start): (Instant, Odometry), fastest: f64) -> Self {
        Self {
            last: (at, start.clone()),
            start,
            turned: 0.0,
            fastest,
        }
    }

    /// Has to be told more than twice in a turn.
    ///
    /// # Errors
    /// No base goes so far in the time since the last one: by how many metres it is elsewhere.
    pub(super) fn at(&mut self, (at, now): (Instant, Odometry)) -> Result<(), f64> {
        let (before_at, before) = &self.last;
        let seconds = at.saturating_duration_since(*before_at).as_secs_f64();
        let metres = (now.x - before.x).hypot(now.y - before.y);
        if metres > JUMP + 2.0 * self.fastest * seconds {
            return Err(metres);
        }
        self.turned += half_circle((now.heading - before.heading).to_degrees()).to_radians();
        self.last = (at, now);
        Ok(())
    }

    /// When the last of it was told.
    pub(super) fn told_at(&self) -> Instant {
        self.last.0
    }

    /// Metres, as the crow flies.
    pub(super) fn metres(&self) -> f64 {
        let (_, last) = &self.last;
        (last.x - self.start.x).hypot(last.y - self.start.y)
    }

    /// Radians, counter-clockwise.
    pub(super) fn turned(&self) -> f64 {
        self.turned
    }

    /// Whether the base has come to rest.
    pub(super) fn is_at_rest(&self) -> bool {
        let (_, last) = &self.last;
        last.speed < 0.01 && last.turn.abs() < 0.02
    }
}

/// What a base says of its battery.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Battery {
    pub(super) percent: Option<f64>,
    pub(super) volts: Option<f64>,
    pub(super) charges: Option<bool>,
}

impl Battery {
    pub(super) fn read(message: &Value) -> Self {
        let tenth = |value: f64| (value * 10.0).round() / 10.0;
        let share = message["percentage"].as_f64().filter(|share| *share >= 0.0);
        Self {
            // The definition has 0 to 1; some bases send 0 to 100.
            percent: share.map(|share| tenth(if share > 1.0 { share } else { share * 100.0 })),
            volts: message["voltage"].as_f64().map(tenth),
            charges: match message["power_supply_status"].as_u64() {
                Some(1 | 4) => Some(true),
                Some(2 | 3) => Some(false),
                _ => None,
            },
        }
    }
}

/// What lies around a base.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scan {
    /// Metres from the scanner: ahead and to the left.
    points: Vec<[f64; 2]>,
    /// How far it sees, in metres.
    pub(super) reach: f64,
    /// The frame of the scanner.
    frame: String,
}

impl Scan {
    /// `ahead` is where straight ahead is, in the angles of the scan, in degrees.
    pub(super) fn read(message: &Value, ahead: f64) -> Option<Self> {
        let number = |key: &str| message[key].as_f64();
        let (first, step) = (number("angle_min")?, number("angle_increment")?);
        let (least, reach) = (number("range_min")?, number("range_max")?);
        let mut angle = first - ahead.to_radians();
        let mut points = Vec::new();
        for range in message["ranges"].as_array()? {
            // An infinity is a text, and means that nothing is there.
            if let Some(range) = range.as_f64().filter(|range| (least..=reach).contains(range)) {
                points.push([range * angle.cos(), range * angle.sin()]);
            }
            angle += step;
        }
        Some(Self {
            points,
            reach,
            frame: message["header"]["frame_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// How far it is to what lies in a way of this direction and width, in metres; `None` where nothing was seen. `towards` is
    /// in radians from straight ahead.
    pub(super) fn free(&self, towards: f64, half_width: f64) -> Option<f64> {
        let (sin, cos) = towards.sin_cos();
        let along = self.points.iter().filter_map(|[x, y]| {
            let (along, across) = (x * cos + y * sin, y * cos - x * sin);
            (along > 0.0 && across.abs() <= half_width).then_some(along)
        });
        along.min_by(f64::total_cmp)
    }
}

/// What the scanners of one topic have told last, each by its frame.
#[derive(Default)]
pub(super) struct Scans(Mutex<BTreeMap<String, (Instant, Scan)>>);

impl Scans {
    /// Keeps a scan that came then, and forgets the scanners that are silent.
    pub(super) fn put(&self, scan: Scan, at: Instant) {
        let mut scans = self.0.lock();
        scans.retain(|_, (at, _)| at.elapsed() < SILENCE);
        if scans.len() < MOST || scans.contains_key(&scan.frame) {
            scans.insert(scan.frame.clone(), (at, scan));
        }
    }

    /// What was seen last, and how long ago; nothing where that is longer than a second.
    ///
    /// # Errors
    /// Scanners in several places tell it, and nothing says which of them looks ahead: the text names them.
    pub(super) fn fresh(&self) -> Result<Option<(Duration, Scan)>, String> {
        let scans = self.0.lock();
        let fresh: Vec<_> = scans.values().filter(|(at, _)| at.elapsed() < SILENCE).collect();
        match fresh.as_slice() {
            [] => Ok(None),
            [(at, scan)] => Ok(Some((at.elapsed(), scan.clone()))),
            several => {
                let frames: Vec<&str> = several.iter().map(|(_, scan)| scan.frame.as_str()).collect();
                Err(format!(
                    "several scanners publish there ({}), and only one of them looks ahead: name a topic that has only the scans of that \
                     one, or one with all scans in one frame",
                    frames.join(", ")
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use serde_json::json;

    use super::*;

    fn odometry(x: f64, heading: f64) -> Odometry {
        let (z, w) = (heading / 2.0).sin_cos();
        Odometry::read(&json!({
            "pose": {"pose": {"position": {"x": x, "y": 0.0}, "orientation": {"x": 0.0, "y": 0.0, "z": z, "w": w}}},
        }))
        .unwrap()
    }

    #[test]
    fn a_trip_counts_metres_and_whole_turns() {
        let at = Instant::now();
        let mut trip = Trip::new((at, odometry(1.0, 3.0)), 0.2);
        for step in 1..=80 {
            let now = odometry(1.0 - f64::from(step) / 100.0, 3.0 + f64::from(step) / 10.0);
            trip.at((at, now)).unwrap();
        }
        assert!((trip.metres() - 0.8).abs() < 1e-9, "{}", trip.metres());
        assert!((trip.turned() - 8.0).abs() < 1e-9, "{}", trip.turned());
        // Of another count, whoever tells it.
        let elsewhere = odometry(5.0, 11.0);
        assert!(trip.at((at + Duration::from_secs(1), elsewhere)).is_err());
        assert!((trip.metres() - 0.8).abs() < 1e-9, "{}", trip.metres());
        assert!((odometry(0.0, PI - 0.1).degrees() - 174.27).abs() < 0.01);
        assert_eq!(Odometry::read(&json!({"pose": {}})), None);
        // A place on the map, a quarter turn to the left of what the wheels count from, after a metre straight ahead.
        let there = odometry(5.0, FRAC_PI_2).moved(&odometry(1.0, 0.0), &odometry(2.0, 0.0));
        let Spot { x, y, heading, .. } = there.spot("map");
        assert_eq!((x, y, heading), (5.0, 1.0, 90.0));
    }

    #[test]
    fn a_battery_is_in_percent_however_it_is_sent() {
        for (share, status, percent, charges) in [
            (json!(0.5), 2, Some(50.0), Some(false)),
            (json!(87.0), 1, Some(87.0), Some(true)),
            (json!("NaN"), 0, None, None),
            (json!(-1.0), 4, None, Some(true)),
        ] {
            let message = json!({"percentage": share, "voltage": 12.06, "power_supply_status": status});
            let battery = Battery::read(&message);
            assert_eq!(
                battery,
                Battery {
                    percent,
                    volts: Some(12.1),
                    charges
                },
                "{message}"
            );
        }
    }

    #[test]
    fn a_way_is_free_up_to_the_nearest_thing_in_it() {
        // From straight right to straight left: a wall at 2 m, something at 0.5 m straight ahead, and nothing to the right.
        let ranges = json!(["Infinity", 2.0, 0.5, 2.0, "NaN", 0.01]);
        let message = json!({
            "angle_min": -FRAC_PI_2, "angle_increment": FRAC_PI_2 / 2.0, "range_min": 0.1, "range_max": 10.0, "ranges": ranges
        });
        let scan = Scan::read(&message, 0.0).unwrap();
        for (towards, half_width, free) in [
            (0.0, 0.2, Some(0.5)),
            (FRAC_PI_2, 0.2, None),
            (FRAC_PI_2 / 2.0, 0.2, Some(2.0)),
            (PI, 0.2, None),
            (FRAC_PI_2 / 2.0, 0.4, Some(0.5 / 2_f64.sqrt())),
        ] {
            let found = scan.free(towards, half_width);
            let same = match (found, free) {
                (Some(found), Some(free)) => (found - free).abs() < 1e-9,
                (found, free) => found == free,
            };
            assert!(same, "{towards} {half_width}: {found:?}, expected {free:?}");
        }
        // A scanner that is mounted a quarter turn to the left.
        let turned = Scan::read(&message, -90.0).unwrap();
        assert_eq!(
            turned.free(FRAC_PI_2, 0.2).map(|free| (free * 10.0).round()),
            Some(5.0)
        );
        assert_eq!(Scan::read(&json!({}), 0.0), None);
    }
}
