//! Turns written values into checked ones: [`Section`] reads one object of the stack key by key. Each read states the
//! key's default, unit and range in one place. The reader collects all errors and all settings in force with their
//! origins, and at the end reports the keys that were not read.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::error::ConfigError;
use super::layers::Stack;
use super::origin::{Origin, Setting, dotted};
use super::paths::Xdg;
use super::text::describe;

/// An enumeration written as one of a few words.
pub(super) trait Words: Copy + PartialEq + 'static {
    /// The words and their values, in the order in which messages list them.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the value of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, meaning)| *meaning)
    }

    /// Returns the word of a value.
    fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, meaning)| *meaning == self)
            .map_or("", |(name, _)| name)
    }

    /// Lists the accepted words, for error messages.
    fn accepted() -> String {
        let names: Vec<_> = Self::WORDS.iter().map(|(name, _)| format!("{name:?}")).collect();
        format!("one of {}", names.join(", "))
    }
}

/// A reader of one object of the stack.
pub(super) struct Section<'a> {
    stack: &'a Stack,
    xdg: &'a Xdg,
    path: Vec<&'a str>,
    values: Option<&'a Map<String, Value>>,
    /// The section that an absent value is inherited from, for its origin.
    inherits: Option<Vec<&'a str>>,
    known: Vec<&'static str>,
    pub(super) settings: Vec<Setting>,
    pub(super) errors: Vec<ConfigError>,
}

impl<'a> Section<'a> {
    /// Opens the section at `path`. If it is absent or null, all keys have their defaults; if it is not an object,
    /// that is one error.
    pub(super) fn new(stack: &'a Stack, xdg: &'a Xdg, path: &[&'a str]) -> Self {
        let mut section = Self {
            stack,
            xdg,
            path: path.to_vec(),
            values: None,
            inherits: None,
            known: Vec::new(),
            settings: Vec::new(),
            errors: Vec::new(),
        };
        // The error names the outermost part of the path that is not an object.
        for depth in 1..=path.len() {
            match stack.get(&path[..depth]) {
                None | Some(Value::Null) => break,
                Some(Value::Object(values)) => section.values = Some(values).filter(|_| depth == path.len()),
                Some(other) => {
                    section.errors.push(ConfigError::WrongValue {
                        origin: stack.origin(&path[..depth]),
                        key: dotted(path[..depth].iter().copied()),
                        found: describe(other),
                        accepted: "an object".to_owned(),
                    });
                    break;
                }
            }
        }
        section
    }

    /// Declares that the defaults come from another section, whose origins are then reported.
    pub(super) fn inheriting(mut self, path: &[&'a str]) -> Self {
        self.inherits = Some(path.to_vec());
        self
    }

    /// Returns the value in force for `key`: the written one if `parse` accepts it, else the default. `null` counts
    /// as absent.
    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        default: T,
        accepted: impl Display,
        parse: impl Fn(&Value) -> Option<T>,
        show: impl Fn(&T) -> Value,
    ) -> T {
        self.known.push(key);
        let path: Vec<&str> = self.path.iter().copied().chain([key]).collect();
        let written = self
            .values
            .and_then(|values| values.get(key))
            .filter(|value| !value.is_null());
        let (value, origin) = match written.map(|value| (parse(value), value)) {
            Some((Some(value), _)) => (value, self.stack.origin(&path)),
            Some((None, found)) => {
                self.errors.push(ConfigError::WrongValue {
                    origin: self.stack.origin(&path),
                    key: dotted(path.iter().copied()),
                    found: describe(found),
                    accepted: accepted.to_string(),
                });
                (default, Origin::Default)
            }
            None => {
                let inherited = self
                    .inherits
                    .iter()
                    .flatten()
                    .copied()
                    .chain([key])
                    .collect::<Vec<_>>();
                (
                    default,
                    self.inherits
                        .as_ref()
                        .map_or(Origin::Default, |_| self.stack.origin(&inherited)),
                )
            }
        };
        self.settings.push(Setting {
            key: dotted(path),
            value: show(&value),
            origin,
        });
        value
    }

    /// Records a value set by the command line; the written value is ignored.
    pub(super) fn fixed<T>(
        &mut self,
        key: &'static str,
        value: T,
        option: &'static str,
        show: impl Fn(&T) -> Value,
    ) -> T {
        self.known.push(key);
        let key = dotted(self.path.iter().copied().chain([key]));
        self.settings.push(Setting {
            key,
            value: show(&value),
            origin: Origin::Option(option),
        });
        value
    }

    /// Reads a whole number in `range`.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        unit: &str,
    ) -> u64 {
        let accepted = format!("a whole number{unit} from {} to {}", range.start(), range.end());
        self.take(
            key,
            default,
            accepted,
            |value| value.as_u64().filter(|n| range.contains(n)),
            |n| json!(n),
        )
    }

    /// Reads a count in `range`.
    pub(super) fn count(&mut self, key: &'static str, default: usize, range: RangeInclusive<u64>) -> usize {
        // Every range in use ends far below 2^32, so the conversion never saturates.
        usize::try_from(self.number(key, default as u64, range, "")).unwrap_or(usize::MAX)
    }

    /// Reads a duration written as a whole number of milliseconds.
    pub(super) fn millis(
        &mut self,
        key: &'static str,
        default: Duration,
        range: RangeInclusive<u64>,
    ) -> Duration {
        let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.number(key, default, range, " of milliseconds"))
    }

    /// Reads a boolean. YAML files may also use `yes`, `no`, `on` and `off`, because OVOS reads them as YAML 1.1.
    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        let path: Vec<&str> = self.path.iter().copied().chain([key]).collect();
        let yaml = self.stack.is_yaml(&path);
        let parse = |value: &Value| match value.as_str() {
            Some("yes" | "Yes" | "YES" | "on" | "On" | "ON") if yaml => Some(true),
            Some("no" | "No" | "NO" | "off" | "Off" | "OFF") if yaml => Some(false),
            _ => value.as_bool(),
        };
        self.take(key, default, "true or false", parse, |flag| json!(flag))
    }

    /// Reads one of the words of `T`.
    pub(super) fn word<T: Words>(&mut self, key: &'static str, default: T) -> T {
        let parse = |value: &Value| T::from_word(value.as_str()?);
        self.take(key, default, T::accepted(), parse, |choice| json!(choice.word()))
    }

    /// Reads a path, absolute or below `~/`.
    pub(super) fn path(&mut self, key: &'static str, default: PathBuf) -> PathBuf {
        let xdg = self.xdg;
        self.take(
            key,
            default,
            A_PATH,
            |value| xdg.expand(value.as_str()?),
            |path| json!(path.to_string_lossy()),
        )
    }

    /// Reads an optional path.
    pub(super) fn optional_path(&mut self, key: &'static str) -> Option<PathBuf> {
        let xdg = self.xdg;
        let show = |path: &Option<PathBuf>| json!(path.as_ref().map(|path| path.to_string_lossy()));
        self.take(
            key,
            None,
            A_PATH,
            |value| Some(Some(xdg.expand(value.as_str()?)?)),
            show,
        )
    }

    /// Reads a list of paths; a single path may be written without the brackets.
    pub(super) fn paths(&mut self, key: &'static str, default: Vec<PathBuf>) -> Vec<PathBuf> {
        let xdg = self.xdg;
        let parse = |value: &Value| match value {
            Value::Array(items) => items.iter().map(|item| xdg.expand(item.as_str()?)).collect(),
            value => Some(vec![xdg.expand(value.as_str()?)?]),
        };
        self.take(
            key,
            default,
            format!("{A_PATH}, or a list of such paths"),
            parse,
            |paths| show_paths(paths),
        )
    }

    /// Reads an optional list of texts, each accepted by `good`.
    pub(super) fn texts(
        &mut self,
        key: &'static str,
        default: Option<Vec<String>>,
        accepted: &str,
        good: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let item = |item: &Value| item.as_str().filter(|text| good(text)).map(str::to_owned);
        let parse = |value: &Value| {
            Some(Some(
                value.as_array()?.iter().map(item).collect::<Option<Vec<_>>>()?,
            ))
        };
        self.take(key, default, accepted, parse, |texts| json!(texts))
    }

    /// Whether the section is present.
    pub(super) fn is_written(&self) -> bool {
        self.values.is_some()
    }

    /// Returns the keys that were not read, with their values unchanged.
    pub(super) fn rest(&self) -> Map<String, Value> {
        let entries = self.values.into_iter().flatten();
        let unknown = entries.filter(|(key, _)| !self.known.contains(&key.as_str()));
        unknown.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Reports every key that was not read as an error.
    pub(super) fn refuse_rest(&mut self) {
        let mut accepted: Vec<String> = self.known.iter().map(|&name| name.to_owned()).collect();
        accepted.sort_unstable();
        for key in self.rest().keys() {
            let path: Vec<&str> = self.path.iter().copied().chain([key.as_str()]).collect();
            self.errors.push(ConfigError::UnknownKey {
                origin: self.stack.origin(&path),
                key: dotted(path),
                suggestion: closest(key, &self.known),
                accepted: accepted.clone(),
            });
        }
    }

    /// Reports a value that is wrong only in combination with others.
    pub(super) fn wrong(&mut self, key: &'static str, found: impl Display, accepted: impl Display) {
        let path: Vec<&str> = self.path.iter().copied().chain([key]).collect();
        self.errors.push(ConfigError::WrongValue {
            origin: self.stack.origin(&path),
            key: dotted(path),
            found: found.to_string(),
            accepted: accepted.to_string(),
        });
    }
}

const A_PATH: &str = "an absolute path or one that starts with ~/";

pub(super) fn show_paths(paths: &[PathBuf]) -> Value {
    json!(
        paths
            .iter()
            .map(|path| path.to_string_lossy())
            .collect::<Vec<_>>()
    )
}

/// Returns the known key most similar to `written`, if its similarity is at least 0.6.
fn closest(written: &str, known: &[&'static str]) -> Option<String> {
    let likeness = |name: &&&str| strsim::normalized_damerau_levenshtein(written, name);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= 0.6).then(|| (*best).to_owned())
}
