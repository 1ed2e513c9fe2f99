//! The last good content of the files: what stands in for a file that cannot be read when the service starts.
//!
//! [`Config::last_good`](super::Config::last_good) makes the text, the service writes it, and [`LastGood::read`] reads it
//! back. It is always in the XDG state folder, because a file that cannot be read cannot name another one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::merge::lookup;
use super::names::OURS;
use super::paths::Xdg;
use super::text;

/// The sections beside ours that decide where the service is found, who may configure it, and what it logs.
const KEPT: [&str; 4] = ["system", "websocket", "logging", "log_level"];

/// What is kept of each file, by its path.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LastGood {
    files: BTreeMap<PathBuf, Map<String, Value>>,
}

/// A file, and its content if it is there.
pub(super) type Found<'a> = (&'a Path, Option<&'a Map<String, Value>>);

/// The file of the copy.
pub(super) fn path(xdg: &Xdg) -> PathBuf {
    xdg.state_home.join("ovos-tools/last-good.json")
}

impl LastGood {
    /// Reads the copy. One that cannot be read is no copy.
    pub(super) fn read(xdg: &Xdg) -> Self {
        let read = text::read(&path(xdg)).ok().flatten();
        read.and_then(|values| serde_json::from_value(Value::Object(values)).ok())
            .unwrap_or_default()
    }

    /// The content of a file when it was last good.
    pub(super) fn of(&self, path: &Path) -> Option<&Map<String, Value>> {
        self.files.get(path)
    }

    /// Takes over the present content of files that are good; `None`: there is no such file. Files of other services stay.
    pub(super) fn update<'a>(&mut self, files: impl Iterator<Item = Found<'a>>) {
        for (path, content) in files {
            match content {
                None => self.files.remove(path),
                Some(content) => self.files.insert(path.to_owned(), our_part(content)),
            };
        }
    }

    /// The files that were there, and are not there now, although our section was written in them.
    pub(super) fn missing<'a>(
        &self,
        files: impl Iterator<Item = Found<'a>>,
    ) -> impl Iterator<Item = &'a Path> {
        let absent = files.filter(|(_, content)| content.is_none());
        let had_ours = |path: &&Path| {
            let kept = self.of(path);
            let ours = kept.and_then(|kept| lookup(kept, &["PHAL", OURS])?.as_object());
            // `enabled` is the switch of the Python plugin.
            ours.is_some_and(|ours| ours.keys().any(|key| key != "enabled"))
        };
        absent.map(|(path, _)| path).filter(had_ours)
    }
}

/// The part of a file that is kept.
fn our_part(written: &Map<String, Value>) -> Map<String, Value> {
    let beside = KEPT.into_iter().filter_map(|key| Some((key, written.get(key)?)));
    let mut kept: Map<String, Value> = beside
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    if let Some(ours) = written.get("PHAL").and_then(|phal| phal.get(OURS)) {
        kept.insert("PHAL".to_owned(), serde_json::json!({ OURS: ours }));
    }
    kept
}
