//! A kind of robot: what its file says, checked as a whole.
//!
//! Owns which drivers there are, and that a file is complete. A file is read strictly: an unknown key is an error that names
//! the accepted ones and the nearest. Read [`RobotKind`].

use ovos_toolbox_sdk::wire::Object;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::adapter::booster_k1::BoosterK1Config;
use crate::adapter::feetech::FeetechConfig;
use crate::adapter::ros_base::RosBaseConfig;
use crate::adapter::unitree_g1::UnitreeG1Config;
use crate::adapter::unitree_go2::UnitreeGo2Config;
use crate::conduct::Stop;
use crate::driver::Driver;
use crate::model::error::{nearest, taught};
use crate::model::file::RobotFile;
use crate::model::{Model, ModelError};
use crate::servo::Family;
use crate::subsystem::Subsystem;

/// Reads the table `channels`.
type Read = fn(toml::Table) -> Result<Box<dyn Driver>, toml::de::Error>;

/// The drivers, by their word in a file.
const DRIVERS: [(&str, Read); 5] = [
    ("booster", read::<BoosterK1Config>),
    ("dynamixel", dynamixel),
    ("feetech", read::<FeetechConfig>),
    ("ros", read::<RosBaseConfig>),
    ("unitree", unitree),
];

fn read<T: Driver + DeserializeOwned + 'static>(
    table: toml::Table,
) -> Result<Box<dyn Driver>, toml::de::Error> {
    Ok(Box::new(table.try_into::<T>()?))
}

/// The channels are those of the driver `feetech`; the servos at their ends are Dynamixel's.
fn dynamixel(table: toml::Table) -> Result<Box<dyn Driver>, toml::de::Error> {
    let family = Family::Xl;
    Ok(Box::new(FeetechConfig {
        family,
        ..table.try_into()?
    }))
}

/// The channels of Unitree's robots differ: `machine` says which one it is, a G1 where it is left out.
fn unitree(mut table: toml::Table) -> Result<Box<dyn Driver>, toml::de::Error> {
    let machine = table.remove("machine");
    match machine
        .as_ref()
        .map(|machine| machine.as_str().unwrap_or_default())
    {
        None | Some("g1") => read::<UnitreeG1Config>(table),
        Some("go2") => read::<UnitreeGo2Config>(table),
        Some(other) => Err(serde::de::Error::custom(format!(
            "machine: {other:?}, expected g1 or go2"
        ))),
    }
}

/// A kind of robot.
#[derive(Clone)]
pub struct RobotKind {
    /// Its name, with `_` for `-`.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// How it is stopped.
    pub stop: Stop,
    /// Its file, for errors.
    origin: String,
    read: Read,
    channels: toml::Table,
    model: Model,
}

impl RobotKind {
    /// The kind that a text describes. `origin` names its file in errors; `stem` is the name of the file without its ending.
    ///
    /// # Errors
    /// A key is unknown or missing, a position is beyond a limit, or the channels do not fit: with file, line and key.
    pub fn parse(origin: &str, stem: &str, text: &str) -> Result<Self, ModelError> {
        let file = RobotFile::parse(origin, text)?;
        Self::of(origin, stem, file).map_err(|error| error.located(text))
    }

    fn of(origin: &str, stem: &str, mut file: RobotFile) -> Result<Self, ModelError> {
        let wrong = |message: String| ModelError::parse(origin, message);
        let missing = |key: &str, example: &str| wrong(format!("{key}: missing; expected {example}"));
        let written = file
            .name
            .take()
            .ok_or_else(|| missing("name", &format!("name = {stem:?}")))?;
        let name = plain(&written);
        if name != plain(stem) {
            return Err(wrong(format!(
                "name: the file is called {stem} and the robot {written}: give both the same name"
            )));
        }
        let known = || DRIVERS.iter().map(|(name, _)| *name);
        let words = known().collect::<Vec<_>>().join(", ");
        let driver = file
            .driver
            .take()
            .ok_or_else(|| missing("driver", &format!("one of {words}")))?;
        let found = DRIVERS.iter().find(|(word, _)| *word == driver);
        let Some((_, read)) = found else {
            let near = nearest(&driver, known())
                .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            return Err(wrong(format!(
                "driver: no driver {driver:?}, expected one of {words}{near}"
            )));
        };
        if file.parts.is_none() {
            return Err(missing(
                "parts",
                "a table of what the robot has, such as [parts.right_arm] or [parts] base = {...}",
            ));
        }
        let stop = file.stop.take().unwrap_or_default();
        let (channels, description) = (
            file.channels.take().unwrap_or_default(),
            file.description.take().unwrap_or_default(),
        );
        let kind = Self {
            stop,
            channels,
            description,
            read: *read,
            origin: origin.to_owned(),
            model: Model::of(origin, &name, file)?,
            name,
        };
        kind.stop.check(&kind.model.capabilities).map_err(wrong)?;
        let homeless = [Subsystem::LeftArm, Subsystem::RightArm]
            .into_iter()
            .find(|arm| kind.model.capabilities.has(*arm) && kind.model.pose_of("home", *arm).is_none());
        if let Some(arm) = homeless {
            let near = kind.model.misspelt_home();
            let near = near.map_or_else(String::new, |near| format!("; is {near:?} meant to be it?"));
            return Err(wrong(format!(
                "poses: {arm} has no home; expected `home = {{ {arm} = [...] }}` with an angle for each joint{near}"
            )));
        }
        let driver = kind.driver(&Object::new(), "channels")?;
        let stops = driver.stops(&kind.name, &kind.stop);
        stops.map_err(|error| wrong(format!("stop.emergency: {error}")))?;
        for (name, camera) in &kind.model.capabilities.cameras {
            let checked = camera.check(driver.in_graph());
            checked.map_err(|why| wrong(format!("cameras.{name}{why}")))?;
        }
        // Its errors name the key; which file it is, is known here.
        let fits = driver.fit(kind.model(driver.as_ref()));
        fits.map_err(|error| error.of(origin))?;
        Ok(kind)
    }

    /// The robot's channels, with the changes of a configuration; `label` names the changes in errors.
    ///
    /// # Errors
    /// A key is unknown, or a value has the wrong type.
    pub fn driver(&self, changes: &Object, label: &str) -> Result<Box<dyn Driver>, ModelError> {
        let wrong = |message: &str| ModelError::parse(&self.origin, format!("{label}: {}", taught(message)));
        let changes =
            table(changes).map_err(|key| wrong(&format!("{key}: null is not allowed; leave the key out")))?;
        let mut channels = self.channels.clone();
        overlay(&mut channels, changes);
        (self.read)(channels).map_err(|error| {
            let text = error.to_string();
            // The parser names the keys in a line of its own.
            match text.trim().rsplit_once("\nin `") {
                Some((message, keys)) => {
                    let entry = format!("{label}.{}", keys.trim_end_matches('`'));
                    ModelError::parse(&self.origin, format!("{entry}: {}", taught(message)))
                }
                None => wrong(error.message()),
            }
        })
    }

    /// The robot's parts, poses and routines, before the driver fits them to what its channels reach.
    #[must_use]
    pub fn model(&self, driver: &dyn Driver) -> Model {
        let mut model = self.model.clone();
        driver.equip(&mut model.capabilities);
        model
    }
}

/// A name in which `-` and `_` are the same.
pub(crate) fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

/// The changes of a configuration as a file would have them. Not through serde: how it passes a number on depends on features of
/// other crates.
///
/// # Errors
/// The key of a value that no file can have.
fn table(changes: &Object) -> Result<toml::Table, String> {
    let mut table = toml::Table::new();
    for (key, value) in changes {
        table.insert(key.clone(), value_of(key, value)?);
    }
    Ok(table)
}

fn value_of(key: &str, value: &Value) -> Result<toml::Value, String> {
    Ok(match value {
        Value::Null => return Err(key.to_owned()),
        Value::Bool(yes) => toml::Value::Boolean(*yes),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => toml::Value::Integer(whole),
            None => toml::Value::Float(number.as_f64().ok_or_else(|| key.to_owned())?),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(items) => {
            let items: Result<Vec<_>, String> = items.iter().map(|item| value_of(key, item)).collect();
            toml::Value::Array(items?)
        }
        Value::Object(map) => toml::Value::Table(table(map)?),
    })
}

/// Takes over changes: tables are merged, everything else is replaced.
fn overlay(table: &mut toml::Table, changes: toml::Table) {
    for (key, change) in changes {
        match (table.get_mut(&key), change) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => overlay(old, new),
            (_, new) => {
                table.insert(key, new);
            }
        }
    }
}
