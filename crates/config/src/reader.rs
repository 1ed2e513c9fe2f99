//! Reads one section of the stack: applies the written values to the defaults, and records the origin of each value.
//!
//! A section is a struct. Its fields are the keys; their types and serde attributes say what is accepted (`section::fields`);
//! a value of the struct holds the defaults. [`Reader`] applies each key to the defaults by itself, so that all errors are
//! reported at once and each names its key.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::error::ConfigError;
use super::layers::Stack;
use super::origin::{Origin, Setting, dotted};
use super::paths::Xdg;
use super::text::{describe, kind};

/// Reads sections, and collects the values in force with their origins and all errors.
pub(super) struct Reader<'a> {
    pub(super) stack: &'a Stack,
    pub(super) xdg: &'a Xdg,
    /// The section that absent values are inherited from, for their origins.
    inherits: Option<&'a [&'a str]>,
    /// The options of the command line, by the dotted keys that they set.
    options: BTreeMap<String, &'static str>,
    /// The keys whose values may be secret. An error about one of them names only the type of the value.
    pub(super) secret: &'static [&'static str],
    pub(super) settings: Vec<Setting>,
    pub(super) errors: Vec<ConfigError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stack: &'a Stack, xdg: &'a Xdg, inherits: Option<&'a [&'a str]>) -> Self {
        Self {
            stack,
            xdg,
            inherits,
            options: BTreeMap::new(),
            secret: &[],
            settings: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Returns the object at `path`. If there is no object, the error names the outermost part of the path that is not an object.
    pub(super) fn written(&mut self, path: &[&str]) -> Map<String, Value> {
        let stack = self.stack;
        for depth in 1..=path.len() {
            match stack.get(&path[..depth]) {
                None | Some(Value::Null) => break,
                Some(Value::Object(values)) if depth == path.len() => return values.clone(),
                Some(Value::Object(_)) => {}
                Some(other) => {
                    // The value that was written instead of a section with secrets may itself be a secret.
                    let found = match self.secret {
                        [] => describe(other),
                        _ => kind(other).to_owned(),
                    };
                    self.wrong(&path[..depth], found, "an object");
                    break;
                }
            }
        }
        Map::new()
    }

    /// Reads a section that has no keys but the fields of `T`.
    pub(super) fn closed<T: Serialize + DeserializeOwned>(&mut self, path: &[&str], defaults: T) -> T {
        let written = self.written(path);
        let (section, rest) = self.open(path, written, defaults);
        self.refuse(path, &section, rest, &[]);
        section
    }

    /// Applies the written keys to the defaults; `null` counts as absent. Also returns the keys that are not fields of
    /// `T`, with their values unchanged.
    pub(super) fn open<T: Serialize + DeserializeOwned>(
        &mut self,
        path: &[&str],
        mut written: Map<String, Value>,
        defaults: T,
    ) -> (T, Map<String, Value>) {
        let mut section = defaults;
        let mut origins = Vec::new();
        for key in fields(&section).keys() {
            let at = [path, &[key.as_str()]].concat();
            let inherited = |from: &[&str]| self.stack.origin(&[from, &[key.as_str()]].concat());
            let mut origin = self.inherits.map_or(Origin::Default, inherited);
            if let Some(found) = written.shift_remove(key).filter(|found| !found.is_null()) {
                match replaced(&section, key, &found, &self.readings(&at, &found)) {
                    Ok(with_it) => (section, origin) = (with_it, self.origin(&at)),
                    // The refused value may be a secret, and the text of the error goes to logs.
                    Err(accepted)
                        if self.secret.contains(&key.as_str()) || SECRETS.contains(&key.as_str()) =>
                    {
                        self.wrong(&at, kind(&found), accepted);
                    }
                    Err(accepted) => self.wrong(&at, describe(&found), accepted),
                }
            }
            origins.push((dotted(at), origin));
        }
        for ((key, origin), (_, value)) in origins.into_iter().zip(fields(&section)) {
            self.settings.push(Setting { key, value, origin });
        }
        (section, written)
    }

    /// Reports every key in `rest` as unknown, except those that other code reads.
    pub(super) fn refuse<T: Serialize>(
        &mut self,
        path: &[&str],
        section: &T,
        mut rest: Map<String, Value>,
        elsewhere: &[&str],
    ) {
        rest.retain(|key, _| !elsewhere.contains(&key.as_str()));
        let keys = fields(section).keys().cloned().collect::<Vec<_>>();
        let keys = [keys, elsewhere.iter().map(ToString::to_string).collect()].concat();
        let mut accepted = keys.clone();
        accepted.sort_unstable();
        for key in rest.keys() {
            let at = [path, &[key.as_str()]].concat();
            self.errors.push(ConfigError::UnknownKey {
                origin: self.origin(&at),
                key: dotted(at),
                suggestion: nearest(key, keys.iter().cloned()),
                accepted: accepted.clone(),
            });
        }
    }

    /// Records that an option of the command line sets the value at a path.
    pub(super) fn set_by_option(&mut self, path: &[&str], option: &'static str) {
        self.options.insert(dotted(path.iter().copied()), option);
    }

    /// Returns the origin of what is written at a path.
    pub(super) fn origin(&self, path: &[&str]) -> Origin {
        match self.options.get(&dotted(path.iter().copied())) {
            Some(option) => Origin::Option(option),
            None => self.stack.origin(path),
        }
    }

    /// Reports a wrong value, once.
    pub(super) fn wrong(&mut self, path: &[&str], found: impl Display, accepted: impl Display) {
        let error = ConfigError::WrongValue {
            origin: self.origin(path),
            key: dotted(path.iter().copied()),
            found: found.to_string(),
            accepted: accepted.to_string(),
        };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Other readings of a value, for a field that does not accept it as it is written: paths below the home
    /// directory, and the switches of YAML 1.1, as which OVOS reads YAML files.
    fn readings(&self, at: &[&str], found: &Value) -> Vec<Value> {
        let switch = match found.as_str() {
            Some("yes" | "Yes" | "YES" | "on" | "On" | "ON") => Some(json!(true)),
            Some("no" | "No" | "NO" | "off" | "Off" | "OFF") => Some(json!(false)),
            _ => None,
        };
        let switch = switch.filter(|_| self.stack.is_yaml(at));
        switch.into_iter().chain([self.below_home(found)]).collect()
    }

    /// A value in which texts that begin with `~/` are paths below the home directory. The one place where that is so.
    pub(super) fn below_home(&self, found: &Value) -> Value {
        match found {
            Value::String(text) => match text.strip_prefix('~') {
                Some("") => json!(self.xdg.home.to_string_lossy()),
                Some(rest) if rest.starts_with('/') => {
                    json!(self.xdg.home.join(rest.trim_start_matches('/')).to_string_lossy())
                }
                _ => found.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.below_home(item)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                members
                    .map(|(key, value)| (key.clone(), self.below_home(value)))
                    .collect()
            }
            other => other.clone(),
        }
    }
}

/// Fields into which a secret may be written by mistake.
const SECRETS: &[&str] = &["key_env"];

/// Returns the fields of a section as they are written in a file.
fn fields<T: Serialize>(section: &T) -> Map<String, Value> {
    match serde_json::to_value(section) {
        Ok(Value::Object(fields)) => fields,
        // `Config::load` refuses the only value that serde cannot write: a path that is not Unicode.
        _ => Map::new(),
    }
}

/// Replaces one field by the written value, or by the first other reading of it that the field accepts. The error says what the
/// field accepts.
fn replaced<T: Serialize + DeserializeOwned>(
    section: &T,
    key: &str,
    found: &Value,
    readings: &[Value],
) -> Result<T, String> {
    let mut fields = fields(section);
    let mut with = |value: &Value| {
        fields.insert(key.to_owned(), value.clone());
        T::deserialize(&fields)
    };
    with(found).or_else(|refused| {
        let other = readings.iter().find_map(|value| with(value).ok());
        other.ok_or_else(|| match found {
            // A flattened field does not receive a number of more than 64 bits. It does receive -1, which no field accepts, so the
            // error for -1 says what is accepted.
            Value::Number(_) => accepted(&with(&json!(-1)).err().unwrap_or(refused)),
            _ => accepted(&refused),
        })
    })
}

/// Turns the message of serde into words for an operator: what is accepted.
fn accepted(refused: &serde_json::Error) -> String {
    let message = refused.to_string();
    let accepted = message
        .rsplit_once("expected ")
        .map_or(message.as_str(), |(_, end)| end);
    match accepted {
        "a boolean" => "true or false".to_owned(),
        other => other.replace('`', "\""),
    }
}

/// Returns the name most similar to `written` without regard to case, if its similarity is at least 0.6. Of equals, it is the
/// last one.
///
/// ```
/// use ovos_tools_config::nearest;
///
/// let names = || ["port", "Host"].map(str::to_owned);
/// assert_eq!(nearest("HOTS", names()).as_deref(), Some("Host"));
/// assert_eq!(nearest("colour", names()), None);
/// ```
#[must_use]
pub fn nearest(written: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let written = written.to_lowercase();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&written, &name.to_lowercase());
    let rated = names.into_iter().map(|name| (likeness(&name), name));
    let (likeness, name) = rated.reduce(|best, next| if next.0 >= best.0 { next } else { best })?;
    (likeness >= 0.6).then_some(name)
}
