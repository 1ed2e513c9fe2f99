//! The mycroft.conf stack: reads every layer, applies the administrator's protections and merges. [`Stack`] holds the
//! written values; it checks only the syntax and records which file set each value.
//!
//! A file in a default location that cannot be read is never an error: what was last known of it stands in, and the
//! stack is [closed](Lockdown) unless that was known since the start of the service.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::{ConfigError, Notice, StandsIn};
use super::last_good::{Found, LastGood};
use super::lockdown::{BrokenFile, Lockdown};
use super::merge::{lookup, merge, remove};
use super::names::OURS;
use super::origin::{Origin, dotted};
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
    /// Why the stack is closed, if this file could not be read since the start.
    closed: Option<BrokenFile>,
    /// The content of the file, protected keys included.
    written: Map<String, Value>,
    /// The content that is merged: `written` without the keys this layer may not set.
    effective: Map<String, Value>,
}

impl Layer {
    fn absent(kind: LayerKind, path: PathBuf) -> Self {
        Self {
            kind,
            path,
            state: LayerState::Absent,
            closed: None,
            written: Map::new(),
            effective: Map::new(),
        }
    }

    /// The file, and its content if it is there.
    pub(super) fn found(&self) -> Found<'_> {
        let content = (self.state != LayerState::Absent).then_some(&self.written);
        (&self.path, content)
    }
}

/// Refuses a file in which something else stands in the place of our section: rules may be hidden in it.
fn shaped(values: Map<String, Value>) -> Result<Map<String, Value>, String> {
    for path in [&["PHAL"][..], &["PHAL", OURS]] {
        if let Some(found) = lookup(&values, path)
            && !(found.is_object() || found.is_null())
        {
            let key = dotted(path.iter().copied());
            return Err(format!(
                "{key}: found {}, expected an object",
                text::describe(found)
            ));
        }
    }
    Ok(values)
}

/// Whether a file that cannot be parsed may have a rule that forbids reading.
fn may_forbid_reading(path: &Path) -> bool {
    let words = ["policy", "deny", "allow"];
    text::words(path).is_none_or(|text| words.iter().any(|word| text.contains(word)))
}

/// Whether a layer was merged, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerState {
    /// There is no such file.
    Absent,
    /// Read and merged.
    Read,
    /// It could not be read or parsed; what was last known of it is merged. See the notices.
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
    /// Reads the files. For one that cannot be read, its content in `previous` stands in, as OVOS does when it re-reads;
    /// without `previous`, the copy of its last good content.
    ///
    /// # Errors
    /// The file given by `--config` is absent, or cannot be read and nothing stands in. Its copy counts only with
    /// `given_may_be_copy`.
    pub(super) fn read(
        env: &dyn Environment,
        xdg: &Xdg,
        (given, given_may_be_copy): (Option<&Path>, bool),
        previous: Option<&Self>,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Vec::new();
        let mut copies: Option<LastGood> = None;
        for (kind, path) in locations(env, xdg, given) {
            let mut layer = Layer::absent(kind, path);
            let is_given = kind == LayerKind::Given;
            let unusable = |path: &Path, reason: &str| ConfigError::Unusable {
                path: path.to_owned(),
                reason: reason.to_owned(),
            };
            match text::read(&layer.path).and_then(|read| read.map(shaped).transpose()) {
                Ok(Some(values)) => (layer.state, layer.written) = (LayerState::Read, values),
                Ok(None) if is_given => {
                    let reason = match layer.path.exists() {
                        true => "it is not a regular file",
                        false => "there is no such file",
                    };
                    return Err(unusable(&layer.path, reason));
                }
                Ok(None) => {}
                Err(reason) => {
                    layer.state = LayerState::Broken;
                    let before = previous.and_then(|stack| stack.layer(&layer.path));
                    let copies = copies.get_or_insert_with(|| LastGood::read(xdg));
                    let copy = copies.of(&layer.path).filter(|_| !is_given || given_may_be_copy);
                    let stands_in = match before {
                        Some(before) => {
                            layer.written.clone_from(&before.written);
                            layer.closed.clone_from(&before.closed);
                            StandsIn::InForce
                        }
                        None if is_given && copy.is_none() => return Err(unusable(&layer.path, &reason)),
                        None => {
                            layer.written = copy.cloned().unwrap_or_default();
                            layer.closed = Some(BrokenFile {
                                path: layer.path.clone(),
                                reason: reason.clone(),
                                copy: copy.is_some(),
                                may_forbid_reading: may_forbid_reading(&layer.path),
                            });
                            if copy.is_some() {
                                StandsIn::Copy
                            } else {
                                StandsIn::Nothing
                            }
                        }
                    };
                    // The file may have been edited since the start, and still be broken.
                    if let Some(closed) = &mut layer.closed {
                        closed.reason.clone_from(&reason);
                    }
                    notices.push(Notice::BrokenLayer {
                        path: layer.path.clone(),
                        reason,
                        stands_in,
                    });
                }
            }
            layers.push(layer);
        }
        if previous.is_none() {
            let copies = copies.unwrap_or_else(|| LastGood::read(xdg));
            let gone = copies.missing(layers.iter().map(Layer::found));
            notices.extend(gone.map(|path| Notice::Gone(path.to_owned())));
        }
        let mut stack = Self {
            layers,
            ..Self::default()
        };
        stack.protect();
        Ok(stack)
    }

    fn layer(&self, path: &Path) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.path == path)
    }

    /// Why tools are refused, if files could not be read since the start.
    pub(super) fn closed(&self) -> Option<Lockdown> {
        let files: Vec<BrokenFile> = self
            .layers
            .iter()
            .filter_map(|layer| layer.closed.clone())
            .collect();
        (!files.is_empty()).then_some(Lockdown { files })
    }

    /// Applies `system.disable_user_config` and `system.protected_keys`, then merges.
    fn protect(&mut self) {
        let constraints = self.constraints();
        let keys = |of: &str| -> Vec<String> {
            let keys = lookup(&constraints, &["protected_keys", of]).and_then(Value::as_array);
            keys.into_iter()
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
                // What the file says does not matter.
                layer.closed = None;
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
