//! The machine that a call is for, where one toolbox has several.
//!
//! Owns the argument that names it, such as `vehicle`: its place in the schemas of tools, the choice it makes, and the
//! errors of a wrong one. Read [`Units`].

use std::ops::Deref;

use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};

use crate::schema::title;

/// The machines behind one set of tools; one argument of each tool names the machine of a call. The only machine needs
/// no name.
///
/// ```
/// # use ovos_toolbox_sdk::prelude::*;
/// struct Rover { name: String }
///
/// let rovers = ["one", "two"].map(|name| Rover { name: name.to_owned() });
/// let rovers = Units::new("rover", rovers.into(), |rover| &rover.name);
/// assert_eq!(rovers.of(&json!({"rover": "two", "speed": 3})).unwrap().name, "two");
/// let error = rovers.of(&json!({"speed": 3})).err().unwrap();
/// assert_eq!(error.to_string(), "rover: required, expected one of one, two");
/// ```
pub struct Units<T> {
    argument: &'static str,
    units: Vec<T>,
    name: fn(&T) -> &str,
}

/// A call names no machine although there are several, or an unknown machine. `?` turns this error into a `ValueError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// There are several machines, and the argument is missing.
    #[error("{argument}: required, expected one of {known}")]
    Missing {
        /// The argument.
        argument: &'static str,
        /// The names, separated by commas.
        known: String,
    },
    /// No machine has this name.
    #[error("{argument}: unknown {argument} {:?}, expected one of {known}", .given.chars().take(40).collect::<String>())]
    Unknown {
        /// The argument.
        argument: &'static str,
        /// The value of the argument.
        given: String,
        /// The names, separated by commas.
        known: String,
    },
    /// The argument is no text.
    #[error("{argument}: expected a name")]
    NotAName {
        /// The argument.
        argument: &'static str,
    },
}

impl<T> Units<T> {
    /// `argument` is the name of the argument, `name` returns the name of a machine.
    #[must_use]
    pub fn new(argument: &'static str, units: Vec<T>, name: fn(&T) -> &str) -> Self {
        Self {
            argument,
            units,
            name,
        }
    }

    /// The machine that a call's arguments name.
    ///
    /// # Errors
    /// The arguments name an unknown machine, or none although there are several.
    pub fn of(&self, args: &Value) -> Result<&T, UnitError> {
        self.named(args.get(self.argument))
    }

    /// Like [`Units::of`], for a call of a tool of this effect: what brings the only machine to safety, or stops it, is not
    /// refused for a name that is wrong.
    ///
    /// # Errors
    /// As [`Units::of`].
    pub fn of_call(&self, effect: Effect, args: &Value) -> Result<&T, UnitError> {
        match (effect, self.units.as_slice()) {
            (Effect::Safe | Effect::Stop, [only]) => Ok(only),
            _ => self.of(args),
        }
    }

    /// Like [`Units::of`], and removes the argument, which the type of a tool's other arguments does not know.
    ///
    /// # Errors
    /// As [`Units::of`].
    pub fn take(&self, args: &mut Object) -> Result<&T, UnitError> {
        self.named(args.shift_remove(self.argument).as_ref())
    }

    /// The machine with this name; without a name, the only machine.
    ///
    /// # Errors
    /// No machine has the name, or there are several machines and no name is given.
    pub fn find(&self, name: Option<&str>) -> Result<&T, UnitError> {
        let argument = self.argument;
        match (name, self.units.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(UnitError::Missing {
                argument,
                known: self.names().join(", "),
            }),
            (Some(name), units) => {
                let unit = units.iter().find(|unit| (self.name)(unit) == name);
                // In another case, where that can be one machine only.
                let in_case = || {
                    let is_same = |unit: &&T| (self.name)(unit).to_lowercase() == name.to_lowercase();
                    let mut same = units.iter().filter(is_same);
                    same.next().filter(|_| same.next().is_none())
                };
                unit.or_else(in_case).ok_or_else(|| UnitError::Unknown {
                    argument,
                    given: name.to_owned(),
                    known: self.names().join(", "),
                })
            }
        }
    }

    /// Adds the argument to a tool's argument schema: a required choice among several machines; adds nothing if there
    /// is only one.
    #[must_use]
    pub fn choice(&self, mut schema: Value) -> Value {
        if self.units.len() < 2 {
            return schema;
        }
        let argument = self.argument;
        schema["properties"][argument] = json!({
            "title": title(argument),
            "type": "string",
            "enum": self.names(),
            "description": format!("Which {argument}."),
        });
        match schema["required"].as_array_mut() {
            Some(required) => required.push(json!(argument)),
            None => schema["required"] = json!([argument]),
        }
        schema
    }

    fn named(&self, value: Option<&Value>) -> Result<&T, UnitError> {
        match value {
            None | Some(Value::Null) => self.find(None),
            Some(Value::String(name)) => self.find(Some(name)),
            Some(_) => Err(UnitError::NotAName {
                argument: self.argument,
            }),
        }
    }

    fn names(&self) -> Vec<&str> {
        self.units.iter().map(self.name).collect()
    }
}

impl<T> Deref for Units<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.units
    }
}

/// Adds the argument of [`Units`] to a tool's argument schema as an optional text, for tools whose schemas are the same
/// whichever machines there are.
#[must_use]
pub fn optional_unit(argument: &str, mut schema: Value) -> Value {
    schema["properties"][argument] = json!({
        "description": format!("Which {argument}; needed only when there are several."),
        "default": null,
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "title": title(argument),
    });
    // The title stands last, as in the schema of a type that has the argument as a field.
    if let Some(schema) = schema.as_object_mut()
        && let Some(title) = schema.shift_remove("title")
    {
        schema.insert("title".to_owned(), title);
    }
    schema
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::{ToolError, argument_schema};

    fn rovers(names: &[&str]) -> Units<String> {
        let names = names.iter().map(ToString::to_string).collect();
        Units::new("rover", names, |name| name)
    }

    #[test]
    fn a_call_names_its_machine() {
        let (one, two) = (&["one"][..], &["one", "two"][..]);
        let long = "x".repeat(100);
        let cut = format!(
            "ValueError: rover: unknown rover {:?}, expected one of one",
            "x".repeat(40)
        );
        for (names, args, expected) in [
            (one, json!({}), Ok("one")),
            (one, json!({"rover": null}), Ok("one")),
            (one, json!({"rover": "one"}), Ok("one")),
            (
                one,
                json!({"rover": "six"}),
                Err("ValueError: rover: unknown rover \"six\", expected one of one"),
            ),
            (one, json!({"rover": long}), Err(cut.as_str())),
            (
                one,
                json!({"rover": 1}),
                Err("ValueError: rover: expected a name"),
            ),
            (two, json!({"rover": "two"}), Ok("two")),
            (two, json!({"rover": "Two"}), Ok("two")),
            (&["a", "A"], json!({"rover": "A"}), Ok("A")),
            (
                two,
                json!({}),
                Err("ValueError: rover: required, expected one of one, two"),
            ),
            (
                &[],
                json!({}),
                Err("ValueError: rover: required, expected one of "),
            ),
        ] {
            let rovers = rovers(names);
            let found = rovers.of(&args).cloned();
            let found = found.map_err(|error| ToolError::from(error).to_string());
            assert_eq!(
                found.as_deref().map_err(String::as_str),
                expected,
                "{names:?} {args}"
            );
            let mut rest = args.as_object().unwrap().clone();
            assert_eq!(rovers.take(&mut rest), rovers.of(&args));
            assert!(rest.is_empty(), "{rest:?}");
        }
    }

    #[test]
    fn what_brings_the_only_machine_to_safety_needs_no_right_name() {
        let wrong = json!({"rover": "six"});
        for effect in Effect::ALL {
            let forgives = matches!(effect, Effect::Safe | Effect::Stop);
            assert_eq!(
                rovers(&["one"]).of_call(effect, &wrong).is_ok(),
                forgives,
                "{effect}"
            );
            assert!(
                rovers(&["one", "two"]).of_call(effect, &wrong).is_err(),
                "{effect}"
            );
        }
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[schemars(title = "Drive")]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Written {
        /// Which rover; needed only when there are several.
        #[serde(default)]
        rover: Option<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[schemars(title = "Drive")]
    struct Added {}

    #[test]
    fn the_argument_is_in_the_schema() {
        let added = optional_unit("rover", argument_schema::<Added>());
        assert_eq!(added.to_string(), argument_schema::<Written>().to_string());

        let bare = argument_schema::<Added>();
        assert_eq!(rovers(&["one"]).choice(bare.clone()), bare);
        let several = rovers(&["one", "two"]).choice(bare);
        assert_eq!(several["properties"]["rover"]["enum"], json!(["one", "two"]));
        assert_eq!(several["required"], json!(["rover"]));
    }
}
