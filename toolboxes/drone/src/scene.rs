//! What cameras and range sensors report: detections and the distance to the nearest obstacle.
//!
//! Every source writes to this store (bus messages, a file, range sensors) and every perception tool reads it. It
//! rejects a scene that is malformed, from the future or older than the last one of its source. Stale data counts as
//! unknown: never as free, never as absent. Read [`SceneStore`].

use std::collections::BTreeMap;
use std::path::Path;

use ovos_toolbox_sdk::prelude::*;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::Perception;

/// One scene, as a source writes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct SceneMessage {
    schema: u32,
    ts: f64,
    #[serde(default)]
    frame: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    detections: Option<Vec<Detection>>,
    #[serde(default)]
    obstacle: Option<WrittenObstacle>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct WrittenObstacle {
    min_dist_m: f64,
    #[serde(default)]
    ts: Option<f64>,
}

/// The side on which an obstacle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Ahead,
    Behind,
}

/// A detected object. Image coordinates run from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detection {
    pub(crate) label: String,
    pub(crate) conf: f64,
    pub(crate) x: f64,
    pub(crate) y: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) z_m: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dist_m: Option<f64>,
}

impl Detection {
    fn is_sound(&self) -> bool {
        let unit = |value: f64| (0.0..=1.0).contains(&value);
        let metres = |value: Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
        unit(self.conf) && unit(self.x) && unit(self.y) && metres(self.z_m) && metres(self.dist_m)
    }

    /// The distance along the line of sight, or else the depth, in metres.
    pub(crate) fn distance(&self) -> Option<f64> {
        self.dist_m.or(self.z_m)
    }
}

/// Why a scene is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SceneError {
    #[error("scene: {0}")]
    Malformed(String),
    #[error("scene: schema {0}, expected 1")]
    Schema(u32),
    #[error(
        "scene: a number is out of range: expected conf, x and y from 0 to 1, finite times, and distances of 0 or more"
    )]
    Range,
    #[error("scene: its time is {0:.2} s in the future: set the clocks")]
    Future(f64),
    #[error("scene: its time `ts` went back by {0:.3} s")]
    Regressed(f64),
}

#[derive(Default)]
struct SceneState {
    /// The sources, by frame and name. Each has its own clock, and one does not replace another's data.
    eyes: BTreeMap<(String, String), Eye>,
    /// The detections, the time of receipt, and the time stamp of the scene.
    detections: Option<(Vec<Detection>, Stamp, f64)>,
    /// Readings of the vehicle's own range sensors, oldest first. Two sensors on one side cannot be told apart, so the
    /// nearest fresh reading counts; a reading is dropped when a later one is nearer.
    ranges: BTreeMap<Side, Vec<(f64, Instant)>>,
    error: Option<String>,
}

/// The state of one source in one frame.
struct Eye {
    /// Its newest time stamp.
    ts: f64,
    received: Instant,
    obstacle: Option<(f64, Stamp)>,
}

/// The time of receipt, and the age at that time.
#[derive(Clone, Copy)]
struct Stamp {
    received: Instant,
    older_s: f64,
}

impl Stamp {
    fn age_s(self) -> f64 {
        self.received.elapsed().as_secs_f64() + self.older_s
    }
}

/// The newest data of every source.
pub(crate) struct SceneStore {
    kept: Mutex<SceneState>,
    version: watch::Sender<u64>,
    rules: Perception,
    clock: Clock,
}

/// A source that is silent for this long is forgotten, seconds.
const FORGOTTEN_S: f64 = 60.0;
/// Tolerance for clock differences, seconds: enough for programs on one machine, or machines with NTP.
const FUTURE_S: f64 = 0.5;

impl SceneStore {
    pub(crate) fn new(rules: Perception, clock: Clock) -> Self {
        Self {
            kept: Mutex::default(),
            version: watch::Sender::new(0),
            rules,
            clock,
        }
    }

    /// Stores a scene.
    ///
    /// # Errors
    /// The scene is malformed, from the future or older than the last one; the store keeps its data.
    pub(crate) fn put(&self, scene: Value) -> Result<(), SceneError> {
        let taken = self.take(scene);
        self.kept.lock().error = taken.as_ref().err().map(ToString::to_string);
        if taken.is_ok() {
            self.version.send_modify(|version| *version += 1);
        }
        taken
    }

    fn take(&self, scene: Value) -> Result<(), SceneError> {
        let scene: SceneMessage =
            serde_json::from_value(scene).map_err(|error| SceneError::Malformed(error.to_string()))?;
        if scene.schema != 1 {
            return Err(SceneError::Schema(scene.schema));
        }
        let obstacle_sound = |obstacle: &WrittenObstacle| {
            obstacle.min_dist_m >= 0.0
                && obstacle.min_dist_m.is_finite()
                && obstacle.ts.is_none_or(f64::is_finite)
        };
        let sound = scene.ts.is_finite()
            && scene.detections.iter().flatten().all(Detection::is_sound)
            && scene.obstacle.as_ref().is_none_or(obstacle_sound);
        if !sound {
            return Err(SceneError::Range);
        }
        let (now, received) = (self.clock.unix(), Instant::now());
        let newest = scene
            .obstacle
            .as_ref()
            .and_then(|obstacle| obstacle.ts)
            .map_or(scene.ts, |ts| ts.max(scene.ts));
        if newest > now + FUTURE_S {
            return Err(SceneError::Future(newest - now));
        }
        let mut kept = self.kept.lock();
        kept.eyes
            .retain(|_, eye| eye.received.elapsed().as_secs_f64() < FORGOTTEN_S);
        let eye = kept
            .eyes
            .entry((scene.frame, scene.source))
            .or_insert_with(|| Eye {
                ts: scene.ts,
                received,
                obstacle: None,
            });
        if scene.ts < eye.ts {
            return Err(SceneError::Regressed(eye.ts - scene.ts));
        }
        let stamp = |ts: f64| Stamp {
            received,
            older_s: (now - ts).max(0.0),
        };
        (eye.ts, eye.received) = (scene.ts, received);
        if let Some(obstacle) = scene.obstacle {
            eye.obstacle = Some((obstacle.min_dist_m, stamp(obstacle.ts.unwrap_or(scene.ts))));
        }
        let newest = kept.detections.as_ref().is_none_or(|(_, _, ts)| *ts <= scene.ts);
        if let Some(mut detections) = scene.detections
            && newest
        {
            if !self.rules.use_depth {
                for detection in &mut detections {
                    (detection.z_m, detection.dist_m) = (None, None);
                }
            }
            kept.detections = Some((detections, stamp(scene.ts), scene.ts));
        }
        Ok(())
    }

    /// Stores a reading of a range sensor with the range `reach_m`, both in metres. A sensor that detects nothing
    /// reports its range, more, or infinity.
    pub(crate) fn put_range(&self, side: Side, metres: f64, reach_m: f64) {
        let reach_m = if reach_m > 0.0 { reach_m } else { f64::INFINITY };
        let metres = if metres > reach_m { reach_m } else { metres };
        if !(metres.is_finite() && metres >= 0.0) {
            return;
        }
        let fresh = std::time::Duration::from_millis(self.rules.obstacle_max_age_ms);
        let mut kept = self.kept.lock();
        let ranges = kept.ranges.entry(side).or_default();
        ranges.retain(|(nearer, at)| *nearer < metres && at.elapsed() <= fresh);
        ranges.push((metres, Instant::now()));
    }

    /// The detections, if they are fresh.
    ///
    /// # Errors
    /// A sentence that says why there are none.
    pub(crate) fn detections(&self) -> Result<Vec<Detection>, String> {
        if !self.rules.use_vision {
            return Err("vision is switched off in the configuration (use_vision)".to_string());
        }
        let kept = self.kept.lock();
        let wrong = kept.error.as_ref().map_or(String::new(), |error| {
            format!(" (the last one was refused: {error})")
        });
        let Some((detections, stamp, _)) = &kept.detections else {
            return Err(format!(
                "no vision data has arrived yet{wrong}; start the vision program"
            ));
        };
        let (age, limit) = (stamp.age_s(), self.rules.detection_max_age_ms as f64 / 1000.0);
        if age > limit {
            return Err(format!(
                "what vision has seen is {age:.1} s old, at most {limit:.1} s are used{wrong}"
            ));
        }
        Ok(detections.clone())
    }

    /// Metres to the nearest obstacle on that side, over all fresh sources.
    ///
    /// # Errors
    /// A sentence that says why it is unknown.
    pub(crate) fn free(&self, side: Side) -> Result<f64, String> {
        if !self.rules.use_obstacles {
            return Err("obstacle data is switched off in the configuration (use_obstacles)".to_string());
        }
        let limit = self.rules.obstacle_max_age_ms as f64 / 1000.0;
        let kept = self.kept.lock();
        let eyes = kept.eyes.iter();
        let (there, elsewhere): (Vec<_>, Vec<_>) = eyes
            .filter_map(|((frame, _), eye)| Some((frame, eye.obstacle?)))
            .partition(|(frame, _)| looks(frame) == Some(side));
        let seen = there.iter().map(|(_, (metres, stamp))| (*metres, stamp.age_s()));
        let ranges = kept.ranges.get(&side).map(Vec::as_slice).unwrap_or_default();
        let ranges = ranges
            .iter()
            .map(|(metres, at)| (*metres, at.elapsed().as_secs_f64()));
        let readings: Vec<(f64, f64)> = seen.chain(ranges).collect();
        let fresh = readings.iter().filter(|(_, age)| *age <= limit);
        let frame = match side {
            Side::Ahead => "front",
            Side::Behind => "rear",
        };
        match fresh.map(|(metres, _)| *metres).reduce(f64::min) {
            Some(metres) => Ok(metres),
            None if !readings.is_empty() => Err(format!("the obstacle data is older than {limit:.1} s")),
            None => match elsewhere.first() {
                Some((other, _)) => Err(format!(
                    "obstacle data has arrived for the frame {other}, but none for {frame}"
                )),
                None => Err(format!("no obstacle data has arrived yet for {frame}")),
            },
        }
    }

    /// The fresh detection of an object with the highest confidence.
    ///
    /// # Errors
    /// A sentence that says why vision is not available.
    pub(crate) fn find(&self, object: &str, conf_min: f64) -> Result<Option<Detection>, String> {
        Ok(best(&self.detections()?, object, conf_min).cloned())
    }

    /// Waits at most this long for a scene that was taken after `moment`.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn after(&self, moment: Instant, at_most: std::time::Duration) -> bool {
        let mut version = self.version.subscribe();
        let newer = async {
            loop {
                let seen = self.kept.lock().detections.as_ref().map(|(_, stamp, _)| *stamp);
                if seen.is_some_and(|stamp| stamp.age_s() < moment.elapsed().as_secs_f64()) {
                    return;
                }
                if version.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(at_most, newer).await.is_ok()
    }
}

/// The side that the camera of this frame looks at: ahead if the frame has no name.
fn looks(frame: &str) -> Option<Side> {
    match frame.trim().to_ascii_lowercase().as_str() {
        "" | "front" => Some(Side::Ahead),
        "rear" | "back" => Some(Side::Behind),
        _ => None,
    }
}

/// The detection of an object with the highest confidence.
fn best<'a>(detections: &'a [Detection], object: &str, conf_min: f64) -> Option<&'a Detection> {
    detections
        .iter()
        .filter(|seen| seen.conf >= conf_min && is_called(&seen.label, object))
        .max_by(|a, b| a.conf.total_cmp(&b.conf))
}

/// Whether a label matches what was asked for: `cup` matches `red cup`, but `red cup` does not match `cup`.
pub(crate) fn is_called(label: &str, object: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    let (label, object) = (words(label), words(object));
    !object.is_empty() && object.iter().all(|word| label.contains(word))
}

/// Reads a scene file: the whole file, or else its last line that is JSON, so that a log of scenes works too.
pub(crate) fn read(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    serde_json::from_str(&text).ok().or_else(|| {
        text.lines()
            .rev()
            .find_map(|line| serde_json::from_str(line).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_000_000.0;

    fn store(rules: Perception) -> SceneStore {
        SceneStore::new(rules, Clock::new(1.0).virtual_from(NOW))
    }

    fn scene(ts: f64, detections: Value, obstacle: Value) -> Value {
        json!({"schema": 1, "ts": ts, "frame": "front", "source": "test", "detections": detections, "obstacle": obstacle})
    }

    #[tokio::test(start_paused = true)]
    async fn scenes_are_taken_or_refused_with_a_reason() {
        let cup =
            json!([{"label": "Red Cup", "conf": 0.8, "x": 0.5, "y": 0.5, "w": 0.1, "h": 0.2, "z_m": 1.3}]);
        for (case, given, taken) in [
            ("good", scene(NOW, cup.clone(), json!({"min_dist_m": 2.0})), true),
            ("future", scene(NOW + 2.0, cup.clone(), Value::Null), false),
            ("schema", json!({"schema": 2, "ts": NOW, "detections": []}), false),
            ("no time", json!({"schema": 1, "detections": []}), false),
            (
                "x",
                scene(
                    NOW,
                    json!([{"label": "a", "conf": 0.5, "x": 1.5, "y": 0.5}]),
                    Value::Null,
                ),
                false,
            ),
            (
                "conf",
                scene(
                    NOW,
                    json!([{"label": "a", "conf": -0.5, "x": 0.5, "y": 0.5}]),
                    Value::Null,
                ),
                false,
            ),
            (
                "depth",
                scene(
                    NOW,
                    json!([{"label": "a", "conf": 0.5, "x": 0.5, "y": 0.5, "z_m": -1}]),
                    Value::Null,
                ),
                false,
            ),
            (
                "obstacle",
                scene(NOW, json!([]), json!({"min_dist_m": -1})),
                false,
            ),
            ("not an object", json!([1]), false),
        ] {
            let store = store(Perception::default());
            let result = store.put(given);
            assert_eq!(result.is_ok(), taken, "{case}: {result:?}");
            assert_eq!(store.detections().is_ok(), taken, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_counts_as_unknown() {
        let store = store(Perception::default());
        assert!(store.free(Side::Ahead).is_err() && store.detections().is_err());
        store
            .put(scene(NOW, json!([]), json!({"min_dist_m": 2.5})))
            .unwrap();
        assert_eq!(store.free(Side::Ahead), Ok(2.5));
        let behind = store.put(scene(NOW - 0.1, json!([]), Value::Null));
        assert!(matches!(behind, Err(SceneError::Regressed(_))), "{behind:?}");
        tokio::time::advance(std::time::Duration::from_millis(600)).await;
        assert!(store.free(Side::Ahead).is_err());
        assert_eq!(store.detections(), Ok(vec![]));
        store.put_range(Side::Ahead, 4.0, 12.0);
        assert_eq!(store.free(Side::Ahead), Ok(4.0));
        tokio::time::advance(std::time::Duration::from_millis(600)).await;
        assert!(store.detections().unwrap_err().contains("old"));
        store
            .put(scene(NOW + 0.5, json!([]), json!({"min_dist_m": 1.0})))
            .unwrap();
        assert!(store.free(Side::Ahead).is_err(), "it was 0.7 s old when it came");
    }

    /// A scene with an obstacle and nothing else, from one source in one frame.
    fn obstacle(ts: f64, frame: &str, source: &str, metres: f64) -> Value {
        json!({"schema": 1, "ts": ts, "frame": frame, "source": source, "obstacle": {"min_dist_m": metres}})
    }

    #[tokio::test(start_paused = true)]
    async fn the_nearest_thing_ahead_counts_from_any_source() {
        let wall = || {
            let store = store(Perception::default());
            store.put(obstacle(NOW, "front", "depth", 0.8)).unwrap();
            store
        };
        for (other, ahead) in [
            (obstacle(NOW, "down", "depth", 5.0), 0.8),
            (obstacle(NOW, "front", "yolo", 5.0), 0.8),
            (obstacle(NOW, "", "", 5.0), 0.8),
            (obstacle(NOW, "front", "yolo", 0.5), 0.5),
            (obstacle(NOW, "down", "depth", 0.2), 0.8),
            (obstacle(NOW, "Front", "depth", 0.3), 0.3),
            // A later scene of the same source replaces its data.
            (obstacle(NOW, "front", "depth", 5.0), 5.0),
            // The clocks of two sources may differ.
            (obstacle(NOW - 0.05, "front", "yolo", 0.6), 0.6),
        ] {
            let eyes = wall();
            let case = other.to_string();
            eyes.put(other).unwrap();
            assert_eq!(eyes.free(Side::Ahead), Ok(ahead), "{case}");
        }
        let eyes = wall();
        tokio::time::advance(std::time::Duration::from_millis(300)).await;
        eyes.put(obstacle(NOW + 0.3, "front", "yolo", 5.0)).unwrap();
        assert_eq!(eyes.free(Side::Ahead), Ok(0.8));
        tokio::time::advance(std::time::Duration::from_millis(300)).await;
        assert_eq!(eyes.free(Side::Ahead), Ok(5.0), "the wall was seen too long ago");
        let eyes = store(Perception::default());
        eyes.put(obstacle(NOW, "down", "depth", 5.0)).unwrap();
        assert!(eyes.free(Side::Ahead).unwrap_err().contains("down"));
    }

    #[tokio::test(start_paused = true)]
    async fn every_range_sensor_counts_and_nothing_within_reach_is_free() {
        const INF: f64 = f64::INFINITY;
        // Readings 50 ms apart as (metres, range), and the free distance after them.
        for (readings, free) in [
            (vec![(0.8, 12.0), (6.0, 12.0)], Some(0.8)),
            (vec![(6.0, 12.0), (0.8, 12.0), (6.0, 12.0)], Some(0.8)),
            (vec![(INF, 12.0)], Some(12.0)),
            (vec![(13.0, 12.0)], Some(12.0)),
            (vec![(INF, 12.0), (2.0, 4.0)], Some(2.0)),
            (vec![(INF, f64::NAN)], None),
            (vec![(INF, 0.0)], None),
            (vec![(f64::NAN, 12.0)], None),
            (vec![(-1.0, 12.0)], None),
        ] {
            let store = store(Perception::default());
            for (metres, reach) in &readings {
                store.put_range(Side::Ahead, *metres, *reach);
                tokio::time::advance(std::time::Duration::from_millis(50)).await;
            }
            assert_eq!(store.free(Side::Ahead).ok(), free, "{readings:?}");
            assert!(store.free(Side::Behind).is_err(), "{readings:?}");
        }
        let store = store(Perception::default());
        store.put_range(Side::Ahead, 0.8, 12.0);
        for _ in 0..12 {
            store.put_range(Side::Ahead, 6.0, 12.0);
            tokio::time::advance(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(
            store.free(Side::Ahead),
            Ok(6.0),
            "the near one was seen too long ago"
        );
        store.put(obstacle(NOW + 0.6, "rear", "depth", 1.5)).unwrap();
        assert_eq!(
            (store.free(Side::Ahead), store.free(Side::Behind)),
            (Ok(6.0), Ok(1.5))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn older_detections_of_another_source_do_not_replace_newer_ones() {
        let seen = |ts: f64, source: &str, label: &str| {
            let detections = json!([{"label": label, "conf": 0.8, "x": 0.5, "y": 0.5}]);
            json!({"schema": 1, "ts": ts, "frame": "front", "source": source, "detections": detections})
        };
        let store = store(Perception::default());
        store.put(seen(NOW, "a", "cup")).unwrap();
        store.put(seen(NOW - 0.2, "b", "tree")).unwrap();
        assert!(store.find("cup", 0.5).unwrap().is_some());
        store.put(seen(NOW + 0.1, "b", "tree")).unwrap();
        assert!(store.find("tree", 0.5).unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn ablation_takes_information_away_and_never_a_guard() {
        let cup = json!([{"label": "cup", "conf": 0.8, "x": 0.5, "y": 0.5, "z_m": 1.3, "dist_m": 1.4}]);
        let rules = Perception {
            use_depth: false,
            use_obstacles: false,
            ..Perception::default()
        };
        let blind = store(rules);
        blind
            .put(scene(NOW, cup.clone(), json!({"min_dist_m": 2.5})))
            .unwrap();
        assert_eq!(blind.find("cup", 0.5).unwrap().unwrap().distance(), None);
        assert!(blind.free(Side::Ahead).is_err());
        let rules = Perception {
            use_vision: false,
            ..Perception::default()
        };
        let blind = store(rules);
        blind.put(scene(NOW, cup, json!({"min_dist_m": 2.5}))).unwrap();
        assert!(blind.detections().is_err());
    }

    #[test]
    fn names_match_by_word() {
        for (label, object, expected) in [
            ("red cup", "Red  Cup ", true),
            ("red cup", "cup", true),
            ("cup", "red cup", false),
            ("cupboard", "cup", false),
            ("cup", "", false),
        ] {
            assert_eq!(is_called(label, object), expected, "{label} for {object}");
        }
    }
}
