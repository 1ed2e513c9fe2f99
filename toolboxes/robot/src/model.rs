//! A robot's parts, poses, places and routines.
//!
//! Every position in a model is within its limits: a position beyond them is refused when its file is read, with the
//! joint and its limit. Read [`Model`].

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod pose;
mod routine;
pub(crate) mod soundness;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub use self::error::ModelError;
use self::file::RobotFile;
pub use self::pose::{Place, Pose};
use self::routine::Sequence;
pub use self::routine::{Intensity, Kind, Rounds, travel};
use crate::action::Keyframe;
use crate::capability::{Capabilities, Own};
use crate::error::ActionError;
use crate::geometry::Geometry;
use crate::limits::check_positions;
use crate::step::Stage;
use crate::subsystem::Subsystem;

/// A kind of robot.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Its parts and limits.
    pub capabilities: Capabilities,
    geometries: BTreeMap<Subsystem, Arc<Geometry>>,
    mirror: Vec<f64>,
    poses: BTreeMap<String, Pose>,
    keyframes: BTreeMap<String, Vec<f64>>,
    places: BTreeMap<String, Place>,
    point: Option<file::Point>,
    routines: BTreeMap<(Kind, String), Sequence>,
}

/// The place for every thing whose own place was not taught.
const ANYTHING: &str = "anything";
const HOME: &str = "home";
const POINT: &str = "point";

impl Model {
    /// The parts, poses and routines of a robot's file, with the routines of all robots.
    ///
    /// # Errors
    /// A position is beyond a limit, or a routine names no keyframe.
    pub(crate) fn of(origin: &str, name: &str, mut file: RobotFile) -> Result<Self, ModelError> {
        let (parts, own): (_, Own) = (
            file.parts.take().unwrap_or_default(),
            file.own.take().unwrap_or_default(),
        );
        let mut model = Self {
            capabilities: parts.into_capabilities(name, own),
            ..Self::default()
        };
        model.capabilities.cameras = std::mem::take(&mut file.cameras);
        soundness::words("cameras", model.capabilities.cameras.keys().map(String::as_str))
            .map_err(|why| ModelError::parse(origin, why))?;
        soundness::parts(&model.capabilities).map_err(|why| ModelError::parse(origin, why))?;
        for on in [Subsystem::LeftArm, Subsystem::RightArm] {
            if let Some(arm) = model.capabilities.arm(on)
                && let Some(table) = &arm.geometry
            {
                let geometry = Geometry::new(table, &arm.joints)
                    .map_err(|why| ModelError::parse(origin, format!("parts.{on}.geometry.{why}")))?;
                model.geometries.insert(on, Arc::new(geometry));
            }
        }
        let shared = shared()?;
        model.extend(origin, file, &shared)?;
        model.share(shared);
        Ok(model)
    }

    /// Adds the routines of all robots, as far as this one has the keyframes and the reach for them.
    fn share(&mut self, shared: RobotFile) {
        for (kind, sequences) in tables(shared.waves, shared.nods, shared.gestures, shared.dances) {
            for (key, mut sequence) in sequences {
                if !sequence.arms.iter().all(|arm| self.keyframes.contains_key(arm)) {
                    sequence.arms.clear();
                }
                let reached = |head: &Vec<f64>| self.check("", &key, Subsystem::Gantry, head).is_ok();
                if !sequence.head.iter().all(reached) {
                    sequence.head.clear();
                }
                self.routines.entry((kind, key)).or_insert(sequence);
            }
        }
    }

    /// Adds the entries of a user's file; an entry replaces the one of the same name.
    ///
    /// # Errors
    /// It cannot be read or parsed, or a position is beyond a limit.
    pub fn load(&mut self, path: &Path) -> Result<(), ModelError> {
        let name = format!("poses {}", path.display());
        let text =
            std::fs::read_to_string(path).map_err(|error| ModelError::parse(&name, error.to_string()))?;
        let file = RobotFile::parse(&name, &text)?;
        if let Some(key) = file.foreign() {
            let message = format!(
                "{key}: belongs into a robot's file, not into one of poses; to narrow limits use `bounds`"
            );
            return Err(ModelError::parse(&name, message).located(&text));
        }
        self.extend(&name, file, &shared()?)
            .map_err(|error| error.located(&text))
    }

    /// Takes over narrower limits. Built-in poses beyond them are left out, and their names returned.
    pub fn narrow(&mut self, capabilities: Capabilities) -> Vec<String> {
        self.capabilities = capabilities;
        let mut dropped = Vec::new();
        let mut poses = std::mem::take(&mut self.poses);
        poses.retain(|name, pose| {
            let fits = self.check_pose("", name, pose).is_ok();
            if !fits {
                dropped.push(name.clone());
            }
            fits
        });
        self.poses = poses;
        dropped
    }

    /// The shape of an arm, where its file has one.
    #[must_use]
    pub fn geometry(&self, arm: Subsystem) -> Option<&Arc<Geometry>> {
        self.geometries.get(&arm)
    }

    /// The names of the poses, sorted.
    pub fn pose_names(&self) -> impl Iterator<Item = &str> {
        self.poses.keys().map(String::as_str)
    }

    /// A pose, without the parts that this robot lacks.
    #[must_use]
    pub fn pose(&self, name: &str) -> Option<Pose> {
        let mut pose = self.poses.get(name)?.clone();
        pose.joints.retain(|on, _| self.capabilities.has(*on));
        if self.capabilities.lift.is_none() {
            pose.lift = None;
        }
        Some(pose)
    }

    /// The joint angles of one arm or the gantry in a pose. A pose for one arm is mirrored for the other.
    #[must_use]
    pub fn pose_of(&self, name: &str, on: Subsystem) -> Option<Vec<f64>> {
        let pose = self.poses.get(name)?;
        if let Some(own) = pose.joints.get(&on) {
            return Some(own.clone());
        }
        match on {
            Subsystem::LeftArm => Some(self.mirrored(pose.joints.get(&Subsystem::RightArm)?)),
            Subsystem::RightArm => Some(self.mirrored(pose.joints.get(&Subsystem::LeftArm)?)),
            _ => None,
        }
    }

    /// Whether the robot's file says how a hand reaches a thing or a place of this name.
    #[must_use]
    pub fn teaches(&self, target: &str) -> bool {
        self.places.contains_key(&target.to_lowercase())
    }

    /// Where a hand goes for a step of picking or placing, and whether that place was taught.
    #[must_use]
    pub fn place(&self, target: &str, arm: Subsystem, stage: Stage) -> Option<(Vec<f64>, bool)> {
        let taught = self.places.get(&target.to_lowercase());
        let place = taught.or_else(|| self.places.get(ANYTHING))?;
        Some((self.for_arm(arm, place.of(stage)), taught.is_some()))
    }

    /// The keyframes of a routine for one subsystem; `None` where it has no part in it, or the robot lacks it.
    #[must_use]
    pub fn routine(&self, kind: Kind, name: &str, on: Subsystem, rounds: Rounds) -> Option<Vec<Keyframe>> {
        let sequence = self.routines.get(&(kind, name.to_string()))?;
        let joints = self.capabilities.paced_joints(on)?;
        let round: Vec<Vec<f64>> = if on == Subsystem::Gantry {
            sequence.head.clone()
        } else {
            let arm = |name: &String| Some(self.for_arm(on, self.keyframes.get(name)?));
            sequence.arms.iter().filter_map(arm).collect()
        };
        if round.is_empty() {
            return None;
        }
        let home = self.home(on)?;
        Some(rounds.frames(&joints, &home, &round, sequence))
    }

    /// Frames that point an arm at a bearing (degrees, negative to the left) for `hold` seconds, and whether it
    /// reaches that far.
    #[must_use]
    pub fn point(&self, arm: Subsystem, bearing: f64, hold: f64) -> Option<(Vec<Keyframe>, bool)> {
        let joints = self.capabilities.joints(arm)?;
        let mut positions = self.for_arm(arm, self.keyframes.get(POINT)?);
        let point = self.point.as_ref()?;
        let near = bearing.clamp(-point.reach, point.reach);
        let joint = joints.get(point.joint)?;
        *positions.get_mut(point.joint)? = (near * point.per_degree).clamp(joint.min, joint.max);
        let frame = Keyframe {
            positions,
            speed: 0.6,
            hold,
        };
        Some((vec![frame], (near - bearing).abs() < f64::EPSILON))
    }

    /// The name of a pose that is nearest to `home`, where it was probably meant.
    pub(crate) fn misspelt_home(&self) -> Option<&str> {
        error::nearest(HOME, self.pose_names())
    }

    /// Where an arm or the gantry is at home.
    #[must_use]
    pub fn home(&self, on: Subsystem) -> Option<Vec<f64>> {
        if on == Subsystem::Gantry {
            return Some(vec![0.0; self.capabilities.joints(on)?.len()]);
        }
        match self.keyframes.get(HOME) {
            Some(home) => Some(self.for_arm(on, home)),
            None => self.pose_of(HOME, on),
        }
    }

    fn for_arm(&self, arm: Subsystem, right: &[f64]) -> Vec<f64> {
        if arm == Subsystem::LeftArm {
            self.mirrored(right)
        } else {
            right.to_vec()
        }
    }

    fn mirrored(&self, angles: &[f64]) -> Vec<f64> {
        let sign = self.mirror.iter().copied().chain(std::iter::repeat(1.0));
        // Avoids -0, which JSON would show.
        angles
            .iter()
            .zip(sign)
            .map(|(angle, sign)| angle * sign + 0.0)
            .collect()
    }

    /// Checks the words of a file: each can be said, and what a tool or a routine would ask for is there under its name.
    fn check_words(file: &RobotFile, shared: &RobotFile) -> Result<(), String> {
        soundness::words("poses", file.poses.keys().map(String::as_str))?;
        soundness::words("keyframes", file.keyframes.keys().map(String::as_str))?;
        soundness::words("places", file.places.keys().map(String::as_str))?;
        for (table, own, tools) in [
            ("waves", &file.waves, &shared.waves),
            ("nods", &file.nods, &shared.nods),
            ("gestures", &file.gestures, &shared.gestures),
            ("dances", &file.dances, &shared.dances),
        ] {
            for word in own.keys() {
                soundness::known(table, word, tools.keys().map(String::as_str))?;
            }
        }
        let routines = |file: &RobotFile| -> Vec<String> {
            let tables = [&file.waves, &file.nods, &file.gestures, &file.dances];
            let sequences = tables.into_iter().flat_map(BTreeMap::values);
            sequences.flat_map(|sequence| sequence.arms.clone()).collect()
        };
        let mut used = vec![HOME.to_owned(), POINT.to_owned()];
        used.extend(routines(shared));
        used.extend(routines(file));
        used.sort();
        used.dedup();
        file.keyframes
            .keys()
            .try_for_each(|word| soundness::known("keyframes", word, used.iter().map(String::as_str)))
    }

    /// Checks how an arm points.
    fn check_point(&self) -> Result<(), String> {
        let Some(point) = &self.point else { return Ok(()) };
        for on in [Subsystem::LeftArm, Subsystem::RightArm] {
            if let Some(joints) = self.capabilities.joints(on)
                && point.joint >= joints.len()
            {
                return Err(format!(
                    "point.joint: {} is no joint of {on}; joints are counted from 0, expected 0 to {}",
                    point.joint,
                    joints.len().saturating_sub(1)
                ));
            }
        }
        soundness::number(
            "point.per_degree",
            point.per_degree.abs(),
            0.01,
            100.0,
            "or -0.01 to -100",
        )?;
        soundness::number("point.reach", point.reach, 1.0, 180.0, "degrees")?;
        match self.keyframes.contains_key(POINT) {
            true => Ok(()),
            false => Err(
                "point: the keyframe `point` is missing; expected `point = [...]` in [keyframes]".to_owned(),
            ),
        }
    }

    fn extend(&mut self, name: &str, file: RobotFile, shared: &RobotFile) -> Result<(), ModelError> {
        let wrong = |why: String| ModelError::parse(name, why);
        Self::check_words(&file, shared).map_err(wrong)?;
        if let Some(mirror) = file.mirror {
            soundness::mirror(&mirror, &self.capabilities).map_err(wrong)?;
            self.mirror = mirror;
        }
        self.point = file.point.or(self.point.take());
        for (key, pose) in file.poses {
            let pose = pose.into_pose();
            self.check_pose(name, &key, &pose)?;
            self.poses.insert(key, pose);
        }
        for (key, angles) in file.keyframes {
            self.check_both(name, &key, &angles)?;
            self.keyframes.insert(key, angles);
        }
        self.check_point().map_err(wrong)?;
        for (key, place) in file.places {
            let place = place.into_place();
            for angles in [&place.above, &place.at, &place.lifted, &place.retracted] {
                self.check_both(name, &key, angles)?;
            }
            self.places.insert(key.to_lowercase(), place);
        }
        for (kind, sequences) in tables(file.waves, file.nods, file.gestures, file.dances) {
            for (key, sequence) in sequences {
                self.check_sequence(name, &key, &sequence)?;
                self.routines.insert((kind, key), sequence);
            }
        }
        Ok(())
    }

    fn check_pose(&self, file: &str, name: &str, pose: &Pose) -> Result<(), ModelError> {
        if pose.joints.is_empty() && pose.lift.is_none() {
            let why = format!(
                "{name}: the pose moves nothing; expected {name} = {{ right_arm = [...] }} or another part"
            );
            return Err(ModelError::parse(file, why));
        }
        for (on, angles) in &pose.joints {
            self.check(file, name, *on, angles)?;
        }
        let Some((lift, to)) = self.capabilities.lift.as_ref().zip(pose.lift) else {
            return Ok(());
        };
        if (lift.min..=lift.max).contains(&to) {
            return Ok(());
        }
        Err(ModelError::Position {
            name: file.to_string(),
            what: name.to_string(),
            source: ActionError::OutOfRange {
                what: "lift".to_string(),
                value: to,
                min: lift.min,
                max: lift.max,
                unit: "mm",
            },
            mirrored: false,
        })
    }

    /// Right-arm angles are also used mirrored.
    fn check_both(&self, file: &str, name: &str, right: &[f64]) -> Result<(), ModelError> {
        self.check(file, name, Subsystem::RightArm, right)?;
        let left = self.mirrored(right);
        self.check(file, name, Subsystem::LeftArm, &left)
            .map_err(ModelError::mirrored)
    }

    fn check(&self, file: &str, name: &str, on: Subsystem, angles: &[f64]) -> Result<(), ModelError> {
        // Several robots share a pose, and some lack the part.
        if !self.capabilities.has(on) {
            return Ok(());
        }
        check_positions(&self.capabilities.model, &self.capabilities, on, angles).map_err(|source| {
            ModelError::Position {
                name: file.to_string(),
                what: name.to_string(),
                source,
                mirrored: false,
            }
        })
    }

    fn check_sequence(&self, file: &str, name: &str, sequence: &Sequence) -> Result<(), ModelError> {
        let parse = |message: String| ModelError::Parse {
            name: file.to_string(),
            message: format!("{name}: {message}"),
        };
        if !(0.1..=1.0).contains(&sequence.speed) || !(0.0..=10.0).contains(&sequence.hold) {
            return Err(parse(
                "expected a speed of 0.1 to 1.0 and a hold of 0 to 10 s".to_string(),
            ));
        }
        if sequence.arms.is_empty() && sequence.head.is_empty() {
            return Err(parse("it moves nothing; expected `arms` or `head`".to_string()));
        }
        for arm in &sequence.arms {
            if !self.keyframes.contains_key(arm) {
                let known: Vec<&str> = self.keyframes.keys().map(String::as_str).collect();
                return Err(parse(format!(
                    "no keyframe {arm}: known are {}",
                    known.join(", ")
                )));
            }
        }
        for head in &sequence.head {
            self.check(file, name, Subsystem::Gantry, head)?;
        }
        Ok(())
    }
}

/// The routines of all robots.
fn shared() -> Result<RobotFile, ModelError> {
    RobotFile::parse("routines.toml", include_str!("../data/routines.toml"))
}

/// The tables of routines of a file, by kind.
fn tables<T>(waves: T, nods: T, gestures: T, dances: T) -> [(Kind, T); 4] {
    [
        (Kind::Wave, waves),
        (Kind::Nod, nods),
        (Kind::Gesture, gestures),
        (Kind::Dance, dances),
    ]
}
