//! What a robot tells: each of its topics is heard for as long as the robot is driven, and what came last is kept with the time at which
//! it came, which may be before it was read.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ros_graph::error::GraphError;
use ros_graph::graph::Graph;
use ros_graph::inbox::Bounds;
use serde_json::Value;

use super::channels::RosBaseConfig;
use super::lacks::Lacks;
use super::readings::{Battery, JointStates, Odometry, SILENCE, Scan, Scans};

/// The pause between two looks for a topic that is not there.
const LOOK: Duration = Duration::from_millis(100);
/// How long a topic is looked for before it is looked for again.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// What waits of a topic whose messages say all of it each: the newest.
const NEWEST: usize = 1;
/// What waits of a topic whose messages say a part of it each, such as the joints of one controller: more than come at once.
const PARTS: usize = 64;

/// What came last on a channel, and when.
pub(super) struct Newest<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Newest<T> {
    fn put(&self, value: T, at: Instant) {
        *self.0.lock() = Some((at, value));
    }

    /// The value, and when it came.
    pub(super) fn last(&self) -> Option<(Instant, T)> {
        self.0.lock().clone()
    }

    /// The value and its age.
    pub(super) fn get(&self) -> Option<(Duration, T)> {
        self.last().map(|(at, value)| (at.elapsed(), value))
    }

    /// The value, and when it came, unless the channel is silent.
    pub(super) fn fresh(&self) -> Option<(Instant, T)> {
        self.last().filter(|(at, _)| at.elapsed() < SILENCE)
    }

    pub(super) fn is_silent(&self) -> bool {
        self.get().is_some_and(|(age, _)| age >= SILENCE)
    }
}

/// What a robot tells.
#[derive(Default)]
pub(super) struct Readings {
    pub(super) odometry: Newest<Odometry>,
    /// How often the odometry began anew.
    beginnings: AtomicU32,
    /// Where it was in the frame in which it finds its way, and what its odometry was then: the next one, where none had come.
    pose: Newest<(Odometry, Option<Odometry>)>,
    pub(super) battery: Newest<Battery>,
    pub(super) scans: Scans,
    pub(super) joints: JointStates,
}

impl Readings {
    fn put_odometry(&self, now: Odometry, at: Instant) {
        // The program that counts the wheels needs longer than this to start again.
        let begins = self.odometry.last().is_some_and(|(before_at, before)| {
            at.saturating_duration_since(before_at) >= SILENCE && now.begins_after(&before)
        });
        if begins {
            self.beginnings.fetch_add(1, Ordering::Relaxed);
        }
        if let Some((_, (_, then))) = self.pose.0.lock().as_mut()
            && (begins || then.is_none())
        {
            *then = Some(now.clone());
        }
        self.odometry.put(now, at);
    }

    fn put_pose(&self, pose: Odometry, at: Instant) {
        let then = self.odometry.last().map(|(_, then)| then);
        self.pose.put((pose, then), at);
    }

    /// Where it is by the last pose and what its odometry has counted since; `None` before both were told.
    pub(super) fn pose(&self, here: &Odometry) -> Option<Odometry> {
        let (_, (pose, then)) = self.pose.last()?;
        Some(pose.moved(&then?, here))
    }

    /// A name of the frame in which the odometry counts: another one where it began anew.
    pub(super) fn frame(&self, first: &str) -> String {
        match self.beginnings.load(Ordering::Relaxed) {
            0 => first.to_owned(),
            times => format!("{first}-{times}"),
        }
    }
}

/// Keeps a message that came then; `None` where it is not of the kind.
type Keep = Box<dyn Fn(&Readings, &Value, Instant) -> Option<()> + Send + Sync>;

/// A topic that is heard.
pub(super) struct HeardTopic {
    name: String,
    /// How many messages wait at most.
    messages: usize,
    keep: Keep,
}

/// The topics of a robot that are heard.
pub(super) fn heard_topics(config: &RosBaseConfig) -> Vec<HeardTopic> {
    let topic = |name: Option<&str>, messages: usize, keep: Keep| {
        name.map(|name| HeardTopic {
            name: name.to_owned(),
            messages,
            keep,
        })
    };
    let (scan, navigate) = (config.scan.as_ref(), config.navigate.as_ref());
    let ahead = scan.map_or(0.0, |scan| scan.ahead);
    let topics = [
        topic(
            config.odometry.as_deref(),
            NEWEST,
            Box::new(|readings, message, at| {
                Odometry::read(message).map(|read| readings.put_odometry(read, at))
            }),
        ),
        topic(
            navigate.and_then(|navigate| navigate.pose.as_deref()),
            NEWEST,
            Box::new(|readings, message, at| Odometry::read(message).map(|read| readings.put_pose(read, at))),
        ),
        topic(
            config.battery.as_deref(),
            NEWEST,
            Box::new(|readings, message, at| {
                readings.battery.put(Battery::read(message), at);
                Some(())
            }),
        ),
        topic(
            scan.map(|scan| scan.topic.as_str()),
            PARTS,
            Box::new(move |readings, message, at| {
                Scan::read(message, ahead).map(|read| readings.scans.put(read, at))
            }),
        ),
        topic(
            config.joints(),
            PARTS,
            Box::new(|readings, message, at| readings.joints.put(message, at)),
        ),
    ];
    topics.into_iter().flatten().collect()
}

/// Hears a topic for as long as it is polled.
pub(super) async fn hear(graph: &dyn Graph, topic: &HeardTopic, readings: &Readings, lacks: &Lacks) {
    let name = topic.name.as_str();
    let bounds = Bounds {
        messages: topic.messages,
        ..Bounds::default()
    };
    let mut reported = None;
    loop {
        let error = match graph.subscribe(name, None, bounds, PATIENCE).await {
            Ok(mut subscription) => loop {
                match subscription.next(PATIENCE).await {
                    Ok(message) => {
                        // A machine may have been on for less than a message has waited.
                        let at = Instant::now().checked_sub(message.age);
                        let at = at.unwrap_or_else(Instant::now);
                        if (topic.keep)(readings, &message.value, at).is_none() {
                            break GraphError::OtherType {
                                name: name.to_owned(),
                                expected: "the type of its channel".to_owned(),
                                found: vec![subscription.type_name().to_string()],
                            };
                        }
                        lacks.note(name, None);
                    }
                    // A slow topic, such as that of a battery, is heard again.
                    Err(GraphError::Silent { .. }) => {}
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        lacks.note(name, Some(error.to_string()));
        if reported.as_ref() != Some(&error) {
            tracing::warn!(topic = name, %error, "nothing is heard");
            reported = Some(error);
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Odometry, Readings, SILENCE};

    fn at(x: f64) -> Odometry {
        Odometry {
            x,
            ..Odometry::default()
        }
    }

    #[test]
    fn a_pose_that_comes_before_the_odometry_is_that_of_the_first_odometry() {
        let (readings, now) = (Readings::default(), Instant::now());
        readings.put_pose(at(10.0), now);
        assert_eq!(readings.pose(&at(7.0)), None);
        readings.put_odometry(at(7.0), now);
        assert_eq!(readings.pose(&at(7.5)).map(|here| here.x), Some(10.5));
    }

    #[test]
    fn a_count_that_begins_anew_is_another_frame() {
        for (pause, x, other) in [
            (SILENCE, 0.01, true),
            // It was only away, or goes on counting.
            (SILENCE, 3.0, false),
            (SILENCE / 2, 0.01, false),
        ] {
            let (readings, now) = (Readings::default(), Instant::now());
            readings.put_odometry(at(2.0), now);
            readings.put_pose(at(10.0), now);
            let later = now + pause + Duration::from_millis(1);
            readings.put_odometry(at(x), later);
            assert_eq!(readings.frame("odom") != "odom", other, "{pause:?} {x}");
            let pose = readings.pose(&at(x)).unwrap();
            assert!(!other || (pose.x - 10.0).abs() < 1e-9, "{pose:?}");
        }
    }
}
