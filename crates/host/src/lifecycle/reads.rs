//! The files that a toolbox reads when it is opened, beside its own: those of robots, for example.
//!
//! The schema of its configuration names the keys that say which files these are (`x-reads`), and how a changed file is tried before the
//! working copy is closed for it (`x-trial`). Read [`compared`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_toolbox_wire::{Manifest, Object};
use serde_json::Value;

use crate::artifact::fingerprint::{Fingerprint, sha256_of};
use crate::lifecycle::code::Code;
use crate::lifecycle::examine::{Broken, Candidate, Finding};
use crate::lifecycle::inspect::try_section;
use crate::lifecycle::opening::process_of;
use crate::lifecycle::shared::Shared;
use crate::process::spawner::allowed_environment;
use section::ToolboxConfig;

/// The largest file whose content is compared, in bytes. Of a larger one, size and times are.
const LARGEST: u64 = 16 << 20;
/// How many files of one folder are compared, by name.
const MOST: usize = 1_000;

/// The files that a toolbox reads, each with what tells two states of its content apart.
pub(crate) type Files = BTreeMap<PathBuf, String>;

/// The finding, now that the files which the toolbox reads were compared with those of the live copy. A live copy is only replaced for
/// changed files with which the toolbox opens.
///
/// # Errors
/// The toolbox does not open with the changed files.
pub(crate) async fn compared(manager: &Arc<Shared>, finding: Finding) -> Result<Finding, Broken> {
    let (is_same, mut candidate) = match finding {
        Finding::Same(candidate) => (true, candidate),
        Finding::New(candidate) => (false, candidate),
        other => return Ok(other),
    };
    let id = candidate.source.id().to_owned();
    let named = named(candidate.source.code.manifest(), &candidate.config.toolbox);
    if !named.is_empty() {
        let files = manager.blocking(move || Ok(read(&named))).await;
        candidate.config.files = files.map_err(|reason| (Some(id.clone()), reason))?;
    }
    let before = {
        let copies = manager.copies();
        let live = copies.slots.get(&id).filter(|slot| slot.serves());
        live.map(|slot| slot.config.files.clone())
    };
    let changed = before.map(|before| difference(&before, &candidate.config.files));
    let changed = changed.unwrap_or_default();
    if changed.is_empty() {
        return Ok(if is_same {
            Finding::Same(candidate)
        } else {
            Finding::New(candidate)
        });
    }
    tried(manager, &candidate).await.map_err(|reason| {
        let changed: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
        let changed = changed.join(", ");
        let reason = format!(
            "toolbox `{id}` goes on as it is, because it does not open with what changed in {changed}: {reason}"
        );
        (Some(id), reason)
    })?;
    Ok(Finding::New(candidate))
}

/// Opens the toolbox in a process of its own with each section of `x-trial`, and closes it.
async fn tried(manager: &Arc<Shared>, candidate: &Candidate) -> Result<(), String> {
    let Code::Staged(file, manifest) = &candidate.source.code else {
        return Ok(());
    };
    for section in trials(manifest, &candidate.config.toolbox.own) {
        let process = process_of(manager, file, &candidate.config, None);
        let errors = try_section(process, manifest, &section).await;
        if !errors.is_empty() {
            return Err(errors.join("; "));
        }
    }
    Ok(())
}

/// The sections with which a toolbox is tried: for each entry of the key in `x-trial`, the section with that entry alone, changed as
/// the pattern `*` says. Without an entry, the section as it is.
fn trials(manifest: &Manifest, own: &Object) -> Vec<Object> {
    let trial = manifest
        .config_schema
        .as_ref()
        .and_then(|schema| schema["x-trial"].as_object());
    let Some((key, patterns)) = trial.and_then(|trial| trial.iter().next()) else {
        return Vec::new();
    };
    let entries = own
        .get(key)
        .and_then(Value::as_object)
        .filter(|entries| !entries.is_empty());
    let Some(entries) = entries else {
        return vec![own.clone()];
    };
    let alone = |(name, entry): (&String, &Value)| {
        let mut entry = entry.as_object().cloned().unwrap_or_default();
        entry.extend(patterns["*"].as_object().cloned().unwrap_or_default());
        let mut section = own.clone();
        let entry = Object::from_iter([(name.clone(), Value::Object(entry))]);
        section.insert(key.clone(), Value::Object(entry));
        section
    };
    entries.iter().map(alone).collect()
}

/// The paths that a section names under the keys of `x-reads`. A key that is not set stands for its folder in the user's configuration.
fn named(manifest: &Manifest, toolbox: &ToolboxConfig) -> Vec<PathBuf> {
    let keys = manifest
        .config_schema
        .as_ref()
        .and_then(|schema| schema["x-reads"].as_object());
    let mut paths = Vec::new();
    for (key, default) in keys.into_iter().flatten() {
        let mut values = Vec::new();
        let mut keys = key.split('.');
        let first = keys.next().and_then(|first| toolbox.own.get(first));
        first
            .into_iter()
            .for_each(|value| collect(value, keys.clone(), &mut values));
        if values.is_empty() {
            let default = default.as_str().zip(user_config(&toolbox.env));
            paths.extend(default.map(|(default, config)| config.join(default)));
        }
        paths.extend(values.into_iter().map(PathBuf::from));
    }
    paths
}

/// Adds the texts that stand under a path of keys, in which `*` is each key.
fn collect<'v>(value: &'v Value, mut keys: std::str::Split<'_, char>, found: &mut Vec<&'v str>) {
    match keys.next() {
        None => found.extend(value.as_str()),
        Some("*") => {
            let entries = value.as_object().into_iter().flat_map(|map| map.values());
            entries.for_each(|entry| collect(entry, keys.clone(), found));
        }
        Some(key) => value
            .get(key)
            .into_iter()
            .for_each(|value| collect(value, keys.clone(), found)),
    }
}

/// The user's configuration folder, as the toolbox's process sees it.
fn user_config(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let variable = |name: &str| -> Option<OsString> {
        let own = env.get(name).map(OsString::from);
        own.or_else(|| {
            allowed_environment()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value)
        })
    };
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.filter(|path| path.is_absolute());
    config.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))
}

/// Reads the files among these paths, and those directly in the folders among them. What is neither counts for nothing.
fn read(paths: &[PathBuf]) -> Files {
    let mut files = Files::new();
    for path in paths {
        if !path.is_dir() {
            files.extend(state(path));
            continue;
        }
        match path.read_dir() {
            Ok(entries) => {
                let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                inside.sort();
                files.extend(inside.iter().take(MOST).filter_map(|path| state(path)));
            }
            Err(error) => {
                files.insert(path.clone(), error.to_string());
            }
        }
    }
    files
}

fn state(path: &Path) -> Option<(PathBuf, String)> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let state = if found.len() > LARGEST {
        format!("{:?}", Fingerprint::of(&found))
    } else {
        sha256_of(path).unwrap_or_else(|error| error.to_string())
    };
    Some((path.to_owned(), state))
}

/// The files that are not the same in both.
fn difference(before: &Files, now: &Files) -> Vec<PathBuf> {
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    let changed = now
        .iter()
        .filter(|(path, state)| before.get(*path) != Some(state));
    gone.chain(changed.map(|(path, _)| path)).cloned().collect()
}
