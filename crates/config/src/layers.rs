//! The mycroft.conf stack: reads every layer, applies the administrator's protections and merges. [`Stack`] holds the
//! written values; it checks only the syntax and records which file set each value.
//!
//! A broken file in a default location is reported and skipped; it is never an error.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::{ConfigError, Notice};
use super::merge::{lookup, merge, remove};
use super::origin::Origin;
use super::paths::{Environment, LayerKind, Xdg, locations};
use super::text;

/// One file of the stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Its kind, which decides the protections that apply.
    pub kind: LayerKind,
    /// The file.
    pub path: PathBuf,
    /// Whether it was merged.
    pub state: LayerState,
    /// The content of the file, protected keys included.
    written: Map<String, Value>,
    /// The content that is merged: `written` without the keys this layer may not set.
    effective: Map<String, Value>,
}

/// Whether a layer was merged, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerState {
    /// There is no such file.
    Absent,
    /// Read and merged.
    Read,
    /// It could not be read or parsed; see the notices.
    Broken,
    /// Read, but excluded by `system.disable_user_config`.
    Disabled,
}

/// All layers, lowest precedence first, and their merge.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    layers: Vec<Layer>,
    merged: Map<String, Value>,
    protected_user: Vec<String>,
    user_disabled: bool,
}

impl Stack {
    /// Reads the files. The last good content of a layer that has become unreadable is taken from `previous`, as OVOS
    /// does when it re-reads.
    ///
    /// # Errors
    /// The file given by `--config` cannot be used. (For a re-read, only if it is absent.)
    pub(super) fn read(
        env: &dyn Environment,
        xdg: &Xdg,
        given: Option<&Path>,
        previous: Option<&Self>,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Vec::new();
        for (kind, path) in locations(env, xdg, given) {
            let (state, written) = match text::read(&path) {
                Ok(Some(values)) => (LayerState::Read, values),
                Ok(None) if kind == LayerKind::Given => {
                    return Err(ConfigError::Unusable {
                        path,
                        reason: "there is no such file".to_owned(),
                    });
                }
                Ok(None) => (LayerState::Absent, Map::new()),
                Err(reason) if kind == LayerKind::Given && previous.is_none() => {
                    return Err(ConfigError::Unusable { path, reason });
                }
                Err(reason) => {
                    let known =
                        previous.and_then(|stack| stack.layers.iter().find(|layer| layer.path == path));
                    let written = known.map(|layer| layer.written.clone()).unwrap_or_default();
                    notices.push(Notice::BrokenLayer {
                        path: path.clone(),
                        reason,
                        kept: !written.is_empty(),
                    });
                    (LayerState::Broken, written)
                }
            };
            layers.push(Layer {
                kind,
                path,
                state,
                written,
                effective: Map::new(),
            });
        }
        let mut stack = Self {
            layers,
            ..Self::default()
        };
        stack.protect();
        Ok(stack)
    }

    /// Applies `system.disable_user_config` and `system.protected_keys`, then merges.
    fn protect(&mut self) {
        let constraints = self.constraints();
        let keys = |of: &str| -> Vec<String> {
            let listed = lookup(&constraints, &["protected_keys", of]).and_then(Value::as_array);
            listed
                .into_iter()
                .flatten()
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect()
        };
        let (user, assistant) = (keys("user"), keys("assistant"));
        let disabled = constraints.get("disable_user_config").is_some_and(text::truthy);
        // The protections do not apply to a trusted file, even if it is also listed as a user file.
        let trusted: Vec<PathBuf> = self
            .layers
            .iter()
            .filter(|layer| {
                matches!(
                    layer.kind,
                    LayerKind::Default | LayerKind::System | LayerKind::Given
                )
            })
            .map(|layer| layer.path.clone())
            .collect();

        self.merged = Map::new();
        for layer in &mut self.layers {
            layer.effective = layer.written.clone();
            let trusted = trusted.contains(&layer.path);
            if layer.kind == LayerKind::Assistant {
                assistant.iter().for_each(|key| remove(&mut layer.effective, key));
            } else if disabled && (layer.kind == LayerKind::User || !trusted) {
                layer.effective.clear();
                if layer.state == LayerState::Read {
                    layer.state = LayerState::Disabled;
                }
            } else if !trusted {
                // Both rules treat the distribution as a user: OVOS reads its own protections this way.
                user.iter().for_each(|key| remove(&mut layer.effective, key));
            }
            merge(&mut self.merged, &layer.effective);
        }
        self.protected_user = user;
        self.user_disabled = disabled;
    }

    /// Returns the `system` section that constrains the others: the first non-empty one of distribution, system and
    /// default, as a whole.
    fn constraints(&self) -> Map<String, Value> {
        [LayerKind::Distribution, LayerKind::System, LayerKind::Default]
            .into_iter()
            .filter_map(|kind| self.layers.iter().find(|layer| layer.kind == kind))
            .filter_map(|layer| layer.written.get("system").and_then(Value::as_object))
            .find(|section| !section.is_empty())
            .cloned()
            .unwrap_or_default()
    }

    /// The layers, lowest precedence first.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The merge of all layers.
    #[must_use]
    pub fn merged(&self) -> &Map<String, Value> {
        &self.merged
    }

    /// Returns the merged value at a path of keys.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        lookup(&self.merged, path)
    }

    /// Returns the origin of the value at a path: the highest layer that has it. For an object with parts from
    /// several files, the highest of them.
    #[must_use]
    pub fn origin(&self, path: &[&str]) -> Origin {
        self.speaker(path)
            .map_or(Origin::Default, |layer| Origin::File(layer.path.clone()))
    }

    /// Whether the value at a path was written in a YAML file.
    pub(super) fn is_yaml(&self, path: &[&str]) -> bool {
        self.speaker(path).is_some_and(|layer| text::is_yaml(&layer.path))
    }

    fn speaker(&self, path: &[&str]) -> Option<&Layer> {
        self.layers
            .iter()
            .rev()
            .find(|layer| lookup(&layer.effective, path).is_some())
    }

    /// Returns the merge with a patch from the bus on top, under the same protections as the user's file.
    pub(super) fn patched(&self, patch: &Map<String, Value>) -> Map<String, Value> {
        let mut merged = self.merged.clone();
        if !self.user_disabled {
            let mut patch = patch.clone();
            self.protected_user.iter().for_each(|key| remove(&mut patch, key));
            merge(&mut merged, &patch);
        }
        merged
    }
}
