//! The schema of a tool's arguments, and what it makes of those of a call. Read [`ArgumentSchema::read`].

use serde_json::{Map, Value};

use super::bounds::Bounds;
use super::coerce::{CoercedArguments, Coercion};
use super::defaults;
use super::problem::{Problem, SchemaError};
use super::reading::{Reading, Unknown};
use super::shape::{self, allows_objects};
use super::shorten::shorten;
use super::tree::Tree;
use super::validate::Checker;

/// The compiled argument schema of one tool.
#[derive(Debug)]
pub struct ArgumentSchema {
    tree: Tree,
    checker: Checker,
    bounds: Bounds,
}

impl ArgumentSchema {
    /// Compiles a JSON Schema (draft 2020-12 unless `$schema` names another; `format` is not asserted).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the value is not a schema or does not describe named arguments, when a reference cannot be
    /// resolved inside the document, when a pattern needs look-around or back references, and when a `default` does not
    /// fit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let Value::Object(root) = schema else {
            return Err(SchemaError::NotAnObject {
                found: shorten(schema),
            });
        };
        if let Some(kind) = root.get("type").filter(|_| !allows_objects(schema)) {
            return Err(SchemaError::NotForArguments { found: shorten(kind) });
        }
        shape::check(schema)?;
        let checker = Checker::compile(schema)?;
        let tree = Tree::compile(schema);
        let bounds = Bounds::of(&tree);
        defaults::check(schema, &bounds)?;
        Ok(Self {
            tree,
            checker,
            bounds,
        })
    }

    /// Makes the toolbox's arguments from those of a call: coerced, with defaults, without undeclared arguments,
    /// validated.
    ///
    /// Undeclared arguments are kept when `additionalProperties` is `true` or a schema; otherwise `reading` decides. The
    /// same holds for objects inside the arguments, except that one whose schema has no `properties` at all is free-form
    /// and keeps everything.
    ///
    /// # Errors
    ///
    /// At least one [`Problem`], at most [`MAX_PROBLEMS`](super::MAX_PROBLEMS) and one more.
    pub fn read(&self, args: &Map<String, Value>, reading: Reading) -> Result<ToolArguments, Vec<Problem>> {
        let mut words = self.bounds.survey_map(args).map_err(|problem| vec![problem])?;
        let CoercedArguments {
            value,
            ignored,
            read_text,
        } = Coercion::new(&self.tree, reading).arguments(args)?;
        if read_text {
            words = self.bounds.survey(&value).map_err(|problem| vec![problem])?;
        }
        self.checker.check(&value, words)?;
        match value {
            Value::Object(arguments) => Ok(ToolArguments { arguments, ignored }),
            // The root node of an argument schema gives an object. If that ever breaks, the call fails and the service
            // goes on.
            other => Err(vec![Problem {
                path: String::new(),
                message: format!("expected an object of arguments, got {}", shorten(&other)),
            }]),
        }
    }

    /// Reads arguments to the letter, like [`ArgumentSchema::read`] with [`Reading::Letter`].
    ///
    /// # Errors
    ///
    /// As [`ArgumentSchema::read`].
    pub fn prepare(
        &self,
        args: &Map<String, Value>,
        unknown: Unknown,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        self.read(args, Reading::Letter(unknown))
            .map(|prepared| prepared.arguments)
    }
}

/// The arguments of a call that can run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolArguments {
    /// The arguments for the toolbox.
    pub arguments: Map<String, Value>,
    /// The given arguments that the toolbox does not get, as paths; at most 64 are named.
    pub ignored: Vec<String>,
}
