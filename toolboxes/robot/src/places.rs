//! The places that a base remembers.
//!
//! Owns their names and their file. A name means the same in capitals and with spaces around it. What is in the file of a robot is
//! never guessed: a file that cannot be read is neither used nor written over. Read [`Places`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::error::nearest;
use crate::spot::Spot;
use crate::state_file;

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

/// A place by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// As it was given.
    pub name: String,
    /// Where it is.
    pub spot: Spot,
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
                true => format!("no place {name}: none is remembered; drive there and call remember_place"),
                false => {
                    let known: Vec<&str> = known().collect();
                    format!("no place {name}: known are {}{near}", known.join(", "))
                }
            }
        })
    }

    /// Remembers a place, and returns the one of the same name that it replaces. Blocks.
    ///
    /// # Errors
    /// There are too many, or the file cannot be read or written: then nothing is changed.
    pub fn remember(&mut self, name: &str, spot: Spot) -> Result<Option<Remembered>, String> {
        self.usable()?;
        let name = name.trim().to_owned();
        let mut known = self.known.clone();
        let before = known.insert(key(&name), Remembered { name, spot });
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
            "places {}: {why}; mend the file or remove it, then reload the toolbox",
            path.display()
        )
    };
    let text = state_file::read(path).map_err(|error| wrong(error.to_string()))?;
    let file: PlacesFile = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut known = BTreeMap::new();
    for place in file.places {
        let spot = &place.spot;
        if ![spot.x, spot.y, spot.heading]
            .iter()
            .all(|number| number.is_finite())
        {
            return Err(wrong(format!("{} has a number that is none", place.name)));
        }
        if let Some(before) = known.insert(key(&place.name), place) {
            return Err(wrong(format!("{} is there twice", before.name)));
        }
    }
    Ok(known)
}
