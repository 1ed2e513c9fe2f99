//! Programs of other people that move the robot for a time: LeRobot's policies.
//!
//! Owns what the owner's section says of such a program, and the command that follows. The process that runs it (`keeper`) and the
//! toolbox's hold on that process (`guest`) have files of their own. Read [`PolicyTable`].

pub(crate) mod guest;
pub(crate) mod keeper;
pub(crate) mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bus_name::BusName;
pub use keeper::{ROLE, run as keep};

/// The longest that a program may have the robot, in seconds.
const LONGEST: f64 = 3_600.0;
/// The most words of a command.
const WORDS: usize = 200;
/// The most bytes of a command and of its environment. They go to the keeper at once, through a socket that takes three times as many before
/// it makes a writer wait (`net.core.wmem_default`, 212,992 on Linux): nothing may hold up a stop.
const BYTES: usize = 64 << 10;

/// A program that may have the robot for a time, such as LeRobot's `lerobot-rollout` with a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyTable {
    /// The program and its arguments, without a shell. `{port}` becomes the serial port (with two buses `{port.left}` and
    /// `{port.right}`), `{seconds}` the time that a call asks for.
    pub command: Vec<String>,
    /// Variables that are added to its environment, such as `HF_HOME`.
    pub env: BTreeMap<String, String>,
    /// What it does, in a line that models read.
    pub about: String,
    /// The longest time that a call may ask for, in seconds.
    #[schemars(range(min = 1.0, max = 3_600.0))]
    pub max_seconds: f64,
    /// How long it may take to load before its time begins, in seconds. It may move the robot in this time, too.
    #[schemars(range(min = 0.0, max = 600.0))]
    pub startup_seconds: f64,
    /// How long it may take to end by itself when its time is over, in seconds.
    #[schemars(range(min = 0.1, max = 30.0))]
    pub grace_seconds: f64,
}

impl Default for PolicyTable {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            about: String::new(),
            max_seconds: 60.0,
            startup_seconds: 0.0,
            grace_seconds: 3.0,
        }
    }
}

impl PolicyTable {
    /// Checks it.
    ///
    /// # Errors
    /// What is wrong; it goes after the key of the policy.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.command.first() {
            None => {
                return Err(
                    ".command: missing; expected the words of a command such as [\"lerobot-rollout\", ...]"
                        .to_owned(),
                );
            }
            Some(program) if program.trim().is_empty() || self.command.len() > WORDS => {
                return Err(format!(
                    ".command: expected a program and at most {} arguments",
                    WORDS - 1
                ));
            }
            Some(_) => {}
        }
        self.fits(&self.command).map_err(|why| format!(".{why}"))?;
        for (key, value, (min, max)) in [
            ("max_seconds", self.max_seconds, (1.0, LONGEST)),
            ("startup_seconds", self.startup_seconds, (0.0, 600.0)),
            ("grace_seconds", self.grace_seconds, (0.1, 30.0)),
        ] {
            if !(min..=max).contains(&value) {
                return Err(format!(
                    ".{key}: {value} is out of range, expected {min} to {max} seconds"
                ));
            }
        }
        Ok(())
    }

    /// The longest that it has the robot when a call asks for `seconds`: until it is killed.
    #[must_use]
    pub(crate) fn longest(&self, seconds: f64) -> f64 {
        self.startup_seconds + seconds + self.grace_seconds
    }

    /// The words of its command.
    ///
    /// # Errors
    /// It names a port that the robot has not, or is too long.
    pub(crate) fn words(
        &self,
        ports: &BTreeMap<BusName, String>,
        seconds: f64,
    ) -> Result<Vec<String>, String> {
        let filled = self.command.iter().map(|word| fill(word, ports, seconds));
        let words: Vec<String> = filled.collect::<Result<_, _>>()?;
        self.fits(&words)?;
        Ok(words)
    }

    fn fits(&self, words: &[String]) -> Result<(), String> {
        let env = self.env.iter().flat_map(|(name, value)| [name, value]);
        let bytes: usize = words.iter().chain(env).map(String::len).sum();
        match bytes <= BYTES {
            true => Ok(()),
            false => Err(format!(
                "command: it and env have {bytes} bytes, expected at most {BYTES}"
            )),
        }
    }
}

/// A word of a command with its names replaced. Other braces, as LeRobot's cameras have them, stay.
fn fill(word: &str, ports: &BTreeMap<BusName, String>, seconds: f64) -> Result<String, String> {
    let mut filled = word.replace("{seconds}", &seconds.to_string());
    if filled.contains("{port}") {
        let mut all = ports.values();
        let (Some(port), None) = (all.next(), all.next()) else {
            return Err(format!(
                "command: {word:?}: the robot has {} ports; expected {{port.left}} or {{port.right}}",
                ports.len()
            ));
        };
        filled = filled.replace("{port}", port);
    }
    for bus in [BusName::Left, BusName::Right] {
        let name = format!("{{port.{}}}", bus.as_str());
        if !filled.contains(&name) {
            continue;
        }
        let port = ports
            .get(&bus)
            .ok_or_else(|| format!("command: {word:?}: the robot has no bus {}", bus.as_str()))?;
        filled = filled.replace(&name, port);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_port_and_the_time() {
        let one = BTreeMap::from([(BusName::Right, "/dev/ttyACM0".to_owned())]);
        let two = BTreeMap::from([
            (BusName::Left, "/dev/l".to_owned()),
            (BusName::Right, "/dev/r".to_owned()),
        ]);
        for (ports, word, expected) in [
            (&one, "--robot.port={port}", Ok("--robot.port=/dev/ttyACM0")),
            (&one, "--duration={seconds}", Ok("--duration=30")),
            (
                &one,
                "{ front: {type: opencv, index_or_path: 0}}",
                Ok("{ front: {type: opencv, index_or_path: 0}}"),
            ),
            (&one, "{port.left}", Err("no bus left")),
            (&two, "{port.left}:{port.right}", Ok("/dev/l:/dev/r")),
            (&two, "{port}", Err("has 2 ports")),
        ] {
            match (fill(word, ports, 30.0), expected) {
                (Ok(filled), Ok(expected)) => assert_eq!(filled, expected),
                (Err(why), Err(part)) => assert!(why.contains(part), "{word}: {why}"),
                (found, _) => panic!("{word}: {found:?}"),
            }
        }
    }
}
