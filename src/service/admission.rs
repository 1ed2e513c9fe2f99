//! Which toolboxes of plugin files are loaded: those that drive no simulator, and those that the owner asked for.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use ovos_toolbox_wire::Manifest;

use client::payload::OffToolbox;
use config::{Activation, Config};
use host::{NotAdmitted, Off};

/// Decides whether the toolbox with this manifest, in this file, is loaded.
pub(super) fn admit(config: &Config, manifest: &Manifest, path: &Path) -> Result<(), NotAdmitted> {
    let unknown = config.closed().is_some_and(|closed| closed.backends_unknown());
    if unknown && (manifest.simulated_by_default || manifest.exclusive) {
        // A simulator would answer in the place of the machine that the section names, and an exclusive toolbox holds one.
        return Err(NotAdmitted::BackendUnknown);
    }
    if manifest.needs_section && config.named(&manifest.id, path) == Activation::No {
        return Err(NotAdmitted::NoSection);
    }
    if !manifest.simulated_by_default
        || config.activation(&manifest.id, path) != Activation::No
        || was_used(&config.service.state_dir, &manifest.id)
    {
        return Ok(());
    }
    Err(NotAdmitted::NotAskedFor)
}

/// Returns what to tell about a toolbox that is on only because an earlier version, which loaded it unasked, has used it.
pub(super) fn kept_on(config: &Config, manifest: &Manifest, path: &Path) -> Option<String> {
    let id = &manifest.id;
    (manifest.simulated_by_default && config.activation(id, path) == Activation::No).then(|| {
        format!(
            "toolbox `{id}` drives a simulator and stays on because it was used before: `ovos-tools enable {id}` keeps it on, \
             `ovos-tools disable {id}` turns it off"
        )
    })
}

/// Whether the state folder has traces of calls of a toolbox: files of its own, content, a stop, or calls that an earlier version logged.
fn was_used(state_dir: &Path, id: &str) -> bool {
    let has_files = |folder| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    let named = format!("\"{id}\"");
    let names_it = |file| {
        let lines = File::open(file)
            .into_iter()
            .flat_map(|file| BufReader::new(file).lines());
        lines.map_while(Result::ok).any(|line| line.contains(&named))
    };
    has_files(state_dir.join(id))
        || has_files(state_dir.join("content").join(id))
        || ["latches.json", "calls.jsonl"]
            .map(|name| state_dir.join(name))
            .into_iter()
            .any(names_it)
}

/// A toolbox that is off, as the API reports it.
pub(super) fn off(off: &Off, config: &Config) -> OffToolbox {
    let id = &off.toolbox_id;
    let (reason, enable) = match off.why {
        NotAdmitted::NotAskedFor => (
            format!(
                "toolbox `{id}` is installed but off, because it would drive a simulator; `ovos-tools enable {id}` turns it on"
            ),
            Some(format!("ovos-tools enable {id}")),
        ),
        NotAdmitted::NoSection => (
            format!(
                "toolbox `{id}` is installed but off, because it has no section that names what it reaches; `ovos-tools enable {id}` \
                 turns it on"
            ),
            Some(format!("ovos-tools enable {id}")),
        ),
        NotAdmitted::BackendUnknown => {
            let why = config.closed().map(|closed| closed.text()).unwrap_or_default();
            (format!("backend unknown: {why}"), None)
        }
    };
    OffToolbox {
        toolbox_id: id.clone(),
        path: off.path.display().to_string(),
        reason,
        enable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolbox_was_used_if_its_state_has_a_trace_of_it() {
        let traces: [(&str, &str, bool); 7] = [
            ("robot/poses.json", "{}", true),
            ("content/robot/1.jpg", "x", true),
            (
                "latches.json",
                r#"{"robot": {"stop_id": "stop-1", "reason": "x"}}"#,
                true,
            ),
            ("calls.jsonl", "{\"toolbox_id\":\"robot\"}\n", true),
            ("drone/x", "", false),
            ("latches.json", "{}", false),
            ("calls.jsonl", "{\"toolbox_id\":\"robot2\"}\n", false),
        ];
        for (file, text, used) in traces {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("content/robot")).unwrap();
            assert!(!was_used(dir.path(), "robot"), "an empty folder is no trace");
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            assert_eq!(was_used(dir.path(), "robot"), used, "{file} {text}");
        }
    }
}
