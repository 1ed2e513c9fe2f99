//! A schema for validation without coercion.

use serde_json::Value;

use super::bounds::Bounds;
use super::problem::{Problem, SchemaError};
use super::shape;
use super::shorten::shorten;
use super::tree::Tree;
use super::validate::Checker;

/// A compiled schema for validation without coercion: of a tool's output or a toolbox's configuration.
#[derive(Debug)]
pub struct OutputSchema {
    checker: Checker,
    bounds: Bounds,
}

impl OutputSchema {
    /// Compiles a JSON Schema (draft 2020-12 unless `$schema` names another; `format` is not asserted).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the value is not a schema, a reference cannot be resolved, or a pattern cannot be compiled.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotAnObject {
                found: shorten(schema),
            });
        }
        shape::check(schema)?;
        let checker = Checker::compile(schema)?;
        let bounds = Bounds::of(&Tree::compile(schema));
        Ok(Self { checker, bounds })
    }

    /// Validates an output or a configuration.
    ///
    /// # Errors
    ///
    /// At least one [`Problem`], at most [`MAX_PROBLEMS`](super::MAX_PROBLEMS).
    pub fn check(&self, output: &Value) -> Result<(), Vec<Problem>> {
        let words = self.bounds.survey(output).map_err(|problem| vec![problem])?;
        self.checker.check(output, words)
    }
}
