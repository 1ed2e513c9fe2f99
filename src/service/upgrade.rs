//! What an upgrade changed for this configuration, named in the ready line, `status` and `doctor` for a week.
//!
//! The state folder remembers how many of [`CHANGES`] the program knew that ran last. Read [`since_last`].

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use config::{Config, Origin, write_atomically};

/// How long a change is named after the first start with it.
const NAMED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The file of the state folder.
const FILE: &str = "changes.json";

/// Files by which the state folder of a version without `changes.json` is recognised.
const OLDER: [&str; 1] = ["latches.json"];

/// A change in the meaning of a key of the configuration.
struct Change {
    /// Whether it concerns a key with this value, which a file or an option has set.
    concerns: fn(&str, &Value) -> bool,
    says: &'static str,
}

/// All changes, the oldest first; CHANGELOG.md has each. New ones are appended, and none is removed.
const CHANGES: [Change; 4] = [
    Change {
        concerns: |key, value| {
            let rules = value.as_array().into_iter().flatten();
            let patterns = rules.filter_map(|rule| rule["tools"].as_array()).flatten();
            key.ends_with(".service.policy") && patterns.filter_map(Value::as_str).any(names_tools_alone)
        },
        says: "a pattern in `tools` without `__` matches names of tools only: for the tools of the toolbox `robot` write `robot__*`, \
               not `robot*`",
    },
    Change {
        concerns: |key, value| {
            let mut lists = value.as_object().into_iter().flat_map(|filter| filter.values());
            let named = |list: &Value| {
                let patterns = list.as_array().into_iter().flatten();
                patterns.filter_map(Value::as_str).any(names_tools_alone)
            };
            let written = value.as_array().is_some().then(|| named(value));
            key.contains(".service.doors.")
                && key.contains(".tools")
                && written.unwrap_or_else(|| lists.any(named))
        },
        says: "a pattern without `__` matches names of tools only: for the tools of the toolbox `robot` write `robot__*`, not `robot*`",
    },
    Change {
        concerns: |key, value| key.ends_with(".service.embedded_bus") && value != "never",
        says: "the embedded bus rejects web pages that `embedded_bus_http_origins` does not list, and when \
            `embedded_bus_clients` is reached, it disconnects the least active client",
    },
    Change {
        concerns: |key, _| key.ends_with(".service.max_calls"),
        says: "one toolbox may use at most three quarters of the call slots that the other toolboxes leave free",
    },
];

fn names_tools_alone(pattern: &str) -> bool {
    pattern.contains('*') && pattern != "*" && !pattern.contains("__")
}

/// What the state folder remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    /// How many of the changes need not be named any more: they were for a week, or concerned nothing.
    known: usize,
    /// How many of the changes the program knew that named the others first.
    named: usize,
    /// When that was, in seconds since 1970 by the wall clock.
    since: Option<u64>,
}

/// Names the changes that concern this configuration and are new to this state folder, and remembers them. Blocks on the disk.
pub(super) fn since_last(config: &Config) -> Vec<String> {
    let folder = &config.service.state_dir;
    let before = remembered(folder);
    let set = config.settings();
    let set = set.filter(|setting| setting.origin != Origin::Default);
    let set: Vec<(&str, &Value)> = set
        .map(|setting| (setting.key.as_str(), &setting.value))
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (notes, after) = named(&CHANGES, before.unwrap_or_default(), &set, now.as_secs());
    if before != Some(after)
        && let Err(error) = remember(folder, after)
    {
        let folder = folder.display();
        tracing::warn!(%folder, %error, "could not record that the notes about this upgrade were shown; the next start logs them again");
    }
    notes
}

/// What is named, and what is remembered then.
fn named(changes: &[Change], mut before: Memory, set: &[(&str, &Value)], now: u64) -> (Vec<String>, Memory) {
    let over = |since: u64| now.saturating_sub(since) >= NAMED.as_secs();
    if before.since.is_some_and(over) {
        // A later program may know changes that were never named.
        before = Memory {
            known: before.named,
            named: 0,
            since: None,
        };
    }
    let new = changes.iter().skip(before.known);
    let notes = new.flat_map(|change| {
        let keys = set.iter().filter(|(key, value)| (change.concerns)(key, value));
        keys.map(|(key, _)| {
            format!(
                "changed since the last version, `{key}`: {}; see CHANGELOG.md",
                change.says
            )
        })
    });
    let notes: Vec<String> = notes.collect();
    if notes.is_empty() {
        return (notes, Memory::of_all(changes));
    }
    // With a later change the week begins anew.
    let since = before.since.filter(|_| before.named == changes.len());
    let after = Memory {
        named: changes.len(),
        since: Some(since.unwrap_or(now)),
        ..before
    };
    (notes, after)
}

impl Memory {
    /// None of the changes need be named.
    fn of_all(changes: &[Change]) -> Self {
        Self {
            known: changes.len(),
            named: 0,
            since: None,
        }
    }
}

/// `None` where nothing is remembered and an older service ran, or the file cannot be read. A new folder knows every change.
fn remembered(folder: &Path) -> Option<Memory> {
    match fs::read(folder.join(FILE)) {
        Ok(text) => serde_json::from_slice(&text).ok(),
        Err(error) if error.kind() != io::ErrorKind::NotFound => None,
        Err(_) if OLDER.iter().any(|file| folder.join(file).exists()) => None,
        Err(_) => Some(Memory::of_all(&CHANGES)),
    }
}

fn remember(folder: &Path, memory: Memory) -> io::Result<()> {
    write_atomically(&folder.join(FILE), &serde_json::to_vec(&memory)?, None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_named_where_its_key_is_written() {
        let policy = "PHAL.\"ovos-phal-plugin-tools\".service.policy";
        let bus = "PHAL.\"ovos-phal-plugin-tools\".service.embedded_bus";
        let doors = "PHAL.\"ovos-phal-plugin-tools\".service.doors.mcp.tools";
        for (key, value, count) in [
            (policy, json!([]), 0),
            (policy, json!([{"tools": ["robot*"], "decide": "deny"}]), 1),
            (
                policy,
                json!([{"tools": ["robot__*", "wave", "*"], "decide": "deny"}]),
                0,
            ),
            (policy, json!([{"effects": ["motion"], "decide": "deny"}]), 0),
            (doors, json!({"allow": ["robot*"], "deny": []}), 1),
            (doors, json!({"allow": null, "deny": ["joint_1"]}), 0),
            (bus, json!("auto"), 1),
            (bus, json!("never"), 0),
            ("websocket.port", json!(8181), 0),
        ] {
            let (notes, _) = named(&CHANGES, Memory::default(), &[(key, &value)], 0);
            assert_eq!(notes.len(), count, "{key} {value}: {notes:?}");
            assert!(notes.iter().all(|note| note.contains(key)), "{notes:?}");
        }
    }

    #[test]
    fn it_is_named_for_a_week_and_not_again() {
        let rules = json!([{"tools": ["robot*"], "decide": "deny"}]);
        let set = [(".service.policy", &rules)];
        let named = |before, now| named(&CHANGES, before, &set, now);
        let (notes, first) = named(Memory::default(), 1000);
        assert_eq!((notes.len(), first.since, first.known), (1, Some(1000), 0));
        let week = NAMED.as_secs();
        let (notes, still) = named(first, 1000 + week - 1);
        assert_eq!((notes.len(), still), (1, first));
        let (notes, after) = named(still, 1000 + week);
        assert_eq!((notes.len(), after.known), (0, CHANGES.len()));
        assert_eq!(named(after, 1001 + week), (Vec::new(), after));
        // Nothing that concerns it: known at once.
        let (_, unconcerned) = super::named(&CHANGES, Memory::default(), &[], 5);
        assert_eq!(unconcerned.known, CHANGES.len());
    }

    #[test]
    fn a_change_of_a_later_version_has_a_week_of_its_own() {
        let value = json!(true);
        let set = [("a", &value), ("b", &value)];
        let first = Change {
            concerns: |key, _| key == "a",
            says: "first",
        };
        let second = Change {
            concerns: |key, _| key == "b",
            says: "second",
        };
        let (week, both) = (NAMED.as_secs(), [first, second]);
        let (_, before) = named(&both[..1], Memory::default(), &set, 0);
        for (start, notes) in [(week - 1, 2), (week, 1), (3 * week, 1)] {
            let (found, after) = named(&both, before, &set, start);
            assert_eq!(found.len(), notes, "after {start} s: {found:?}");
            assert!(found.iter().any(|note| note.contains("second")), "{found:?}");
            let (found, still) = named(&both, after, &set, start + week - 1);
            assert_eq!((found.len(), still), (notes, after), "after {start} s");
            let (found, over) = named(&both, after, &set, start + week);
            assert_eq!((found.len(), over.known), (0, 2), "after {start} s");
        }
    }

    #[test]
    fn a_new_folder_knows_everything_and_an_older_one_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(remembered(folder.path()).unwrap().known, CHANGES.len());
        fs::write(folder.path().join("latches.json"), "").unwrap();
        assert_eq!(remembered(folder.path()), None);
        let memory = Memory {
            known: 2,
            named: 3,
            since: Some(7),
        };
        remember(folder.path(), memory).unwrap();
        assert_eq!(remembered(folder.path()), Some(memory));
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert_eq!(remembered(folder.path()), None);
    }
}
