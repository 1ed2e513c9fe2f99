//! The places that a robot remembers: where its base stood, and where its hands were.
//!
//! Owns their names and their file. A name means the same in capitals and with spaces around it. What is in the file of a robot is
//! never guessed: a file that cannot be read is neither used nor written over. Read [`Places`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::error::nearest;
use crate::spot::{Spot, metres};
use crate::state_file;
use crate::subsystem::Subsystem;

/// How many places a robot remembers.
const MOST: usize = 200;

/// The places of one robot.
#[derive(Debug, Default)]
pub struct Places {
    /// Where they are kept; `None` where neither the configuration nor the environment says where.
    path: Option<PathBuf>,
    known: BTreeMap<String, Remembered>,
    /// Why the file cannot be used.
    broken: Option<String>,
}

/// A place by its name: one of the base or one of a hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// As it was given.
    pub name: String,
    /// Where the base stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Spot>,
    /// Where a hand was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand: Option<HandPoint>,
}

/// A point of a hand, in metres in the frame of the arm's base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandPoint {
    /// Whose frame it is.
    pub arm: Subsystem,
    /// Ahead.
    pub x: f64,
    /// To the left.
    pub y: f64,
    /// Upwards.
    pub z: f64,
    /// Whose arm it was. Files from before this was kept do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Body>,
}

/// The body whose arm a point is of: a point of a simulator or of another arm is no place of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The kind of the robot.
    pub kind: String,
    /// It moved only in a simulator.
    pub simulated: bool,
    /// The digest of the shape of its arm.
    pub shape: String,
}

impl HandPoint {
    /// A point in the frame of an arm of a body.
    #[must_use]
    pub fn new(arm: Subsystem, [x, y, z]: [f64; 3], of: Option<Body>) -> Self {
        Self { arm, x, y, z, of }
    }

    /// Checks that it is a point of this body's arm.
    ///
    /// # Errors
    /// It is another's, or does not say whose, with what to do.
    pub fn check(&self, now: Option<&Body>) -> Result<(), String> {
        let arm = self.arm;
        let why = match (&self.of, now) {
            (Some(of), Some(now)) if of == now => return Ok(()),
            (_, None) => return Err(format!("{arm} cannot be sent to points now")),
            (None, _) => "by a version that did not keep whose arm it was".to_owned(),
            (Some(of), Some(now)) if of.simulated != now.simulated => {
                let called = |simulated| if simulated { "a simulator" } else { "the machine" };
                format!(
                    "on {}, and this is {}",
                    called(of.simulated),
                    called(now.simulated)
                )
            }
            (Some(of), Some(now)) if of.kind != now.kind => {
                format!("on a robot of the kind {}, and this is {}", of.kind, now.kind)
            }
            _ => format!("with another shape of {arm} in the robot's file"),
        };
        Err(format!(
            "it was remembered {why}: bring the hand there and call remember_place again"
        ))
    }
}

impl Remembered {
    /// The place of a base.
    #[must_use]
    pub fn of_base(name: &str, spot: Spot) -> Self {
        Self {
            name: name.trim().to_owned(),
            spot: Some(spot),
            hand: None,
        }
    }

    /// The place of a hand.
    #[must_use]
    pub fn of_hand(name: &str, hand: HandPoint) -> Self {
        Self {
            name: name.trim().to_owned(),
            spot: None,
            hand: Some(hand),
        }
    }

    /// Where the base stood.
    ///
    /// # Errors
    /// It is the place of a hand.
    pub fn spot(&self) -> Result<&Spot, String> {
        self.spot.as_ref().ok_or_else(|| {
            format!(
                "{} is a place of a hand, to which no base goes; move_arm goes there with it as position",
                self.name
            )
        })
    }

    /// As results show it.
    #[must_use]
    pub fn shown(&self) -> Value {
        match (&self.spot, &self.hand) {
            (Some(spot), _) => spot.shown(),
            (None, Some(HandPoint { arm, x, y, z, .. })) => {
                let mut shown = metres([*x, *y, *z]);
                shown["arm"] = json!(arm);
                shown
            }
            (None, None) => Value::Null,
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlacesFile {
    places: Vec<Remembered>,
}

/// The name under which a place is found.
fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

impl Places {
    /// The places in the folder of a robot. Blocks.
    #[must_use]
    pub fn open(folder: Option<&Path>) -> Self {
        let path = folder.map(|folder| folder.join("places.json"));
        let read = match &path {
            Some(path) if path.exists() => read(path),
            _ => Ok(BTreeMap::new()),
        };
        let (known, broken) = match read {
            Ok(known) => (known, None),
            Err(why) => (BTreeMap::new(), Some(why)),
        };
        Self { path, known, broken }
    }

    /// The places, by name.
    ///
    /// # Errors
    /// Their file cannot be read.
    pub fn all(&self) -> Result<impl Iterator<Item = &Remembered>, String> {
        self.usable()?;
        Ok(self.known.values())
    }

    /// The place of a name.
    ///
    /// # Errors
    /// No place has it, with the known ones and the nearest; or their file cannot be read.
    pub fn find(&self, name: &str) -> Result<&Remembered, String> {
        self.usable()?;
        let wanted = key(name);
        self.known.get(&wanted).ok_or_else(|| {
            let known = || self.known.keys().map(String::as_str);
            let near =
                nearest(&wanted, known()).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            match self.known.is_empty() {
                true => format!("no place {name}: none is remembered; go there and call remember_place"),
                false => {
                    let known: Vec<&str> = known().collect();
                    format!("no place {name}: known are {}{near}", known.join(", "))
                }
            }
        })
    }

    /// Where the hand of an arm was when a place of this name was remembered; `None` where no place of that hand has the name.
    ///
    /// # Errors
    /// It is a place of another body than this one, see [`HandPoint::check`].
    pub fn hand(
        &self,
        name: &str,
        (arm, now): (Subsystem, Option<&Body>),
    ) -> Result<Option<[f64; 3]>, String> {
        let found = self.find(name).ok();
        let Some(hand) = found
            .and_then(|place| place.hand.as_ref())
            .filter(|hand| hand.arm == arm)
        else {
            return Ok(None);
        };
        hand.check(now)
            .map_err(|why| format!("{arm} does not go to {}: {why}", name.trim()))?;
        Ok(Some([hand.x, hand.y, hand.z]))
    }

    /// Remembers a place, and returns the one of the same name that it replaces. Blocks.
    ///
    /// # Errors
    /// There are too many, or the file cannot be read or written: then nothing is changed.
    pub fn remember(&mut self, place: Remembered) -> Result<Option<Remembered>, String> {
        self.usable()?;
        let mut known = self.known.clone();
        let before = known.insert(key(&place.name), place);
        if known.len() > MOST {
            return Err(format!(
                "{MOST} places are remembered, and no more fit; forget one with forget_place"
            ));
        }
        self.keep(known)?;
        Ok(before)
    }

    /// Forgets a place, and returns it. Blocks.
    ///
    /// # Errors
    /// As [`Places::find`], or the file cannot be written: then nothing is changed.
    pub fn forget(&mut self, name: &str) -> Result<Remembered, String> {
        let gone = self.find(name)?.clone();
        let mut known = self.known.clone();
        known.remove(&key(name));
        self.keep(known)?;
        Ok(gone)
    }

    fn usable(&self) -> Result<(), String> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    fn keep(&mut self, known: BTreeMap<String, Remembered>) -> Result<(), String> {
        let Some(path) = &self.path else {
            return Err("no folder for places: set `data_dir` in the section robot".to_owned());
        };
        let file = PlacesFile {
            places: known.values().cloned().collect(),
        };
        let text = serde_json::to_string_pretty(&file).map_err(|error| error.to_string())?;
        state_file::write(path, &text).map_err(|error| format!("write {}: {error}", path.display()))?;
        self.known = known;
        Ok(())
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Remembered>, String> {
    let wrong = |why: String| {
        format!(
            "places {}: {why}; fix the file or remove it, then reload the toolbox",
            path.display()
        )
    };
    let text = state_file::read(path).map_err(|error| wrong(error.to_string()))?;
    let file: PlacesFile = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut known = BTreeMap::new();
    for place in file.places {
        let numbers = match (&place.spot, &place.hand) {
            (Some(spot), None) => [spot.x, spot.y, spot.heading],
            (None, Some(hand)) => [hand.x, hand.y, hand.z],
            _ => {
                return Err(wrong(format!("{}: expected either spot or hand", place.name)));
            }
        };
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(wrong(format!("{}: a number is not finite", place.name)));
        }
        if let Some(before) = known.insert(key(&place.name), place) {
            return Err(wrong(format!("{} occurs twice", before.name)));
        }
    }
    Ok(known)
}
