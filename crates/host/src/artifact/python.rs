//! A Python interpreter and the OPM toolboxes that are installed for it, from the metadata of packages.
//!
//! The interpreter itself lists them, because only it knows where it finds packages; no toolbox is imported. Packages
//! may have code that runs at every start of Python. So the interpreter runs with the confinement of its programs, and
//! only after its file and the folders from which it imports were checked. Read [`look`].

mod interpreter;
mod question;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::artifact::greeter::Greeter;
use crate::artifact::stage::Stage;
pub use interpreter::{InstalledToolbox, Interpreter, script};
use question::{Asker, ListingError};
use section::PythonConfig;

/// How long an interpreter has to list its toolboxes. Reading the metadata of 300 packages takes 1 s on a small board.
const LISTING: Duration = Duration::from_secs(10);

/// The interpreters that were found for an entry of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterpreterSearch {
    /// The interpreter that is used, if there is one.
    pub interpreter: Option<Interpreter>,
    /// The interpreters that are not used, each with the reason.
    pub passed_over: Vec<String>,
    /// Whether an interpreter did not list its toolboxes.
    pub unanswered: bool,
}

/// An entry of the configuration, and the interpreters that were found for it.
#[derive(Clone, Debug)]
pub struct LookedAt {
    /// The entry.
    pub entry: Arc<PythonConfig>,
    /// The interpreters.
    pub found: InterpreterSearch,
}

/// Finds the interpreter of an entry and the toolboxes that are installed for it. `greeter` has the path of this program,
/// which is run as `program-host`.
///
/// # Errors
/// The program that hosts toolboxes, or a folder for its processes, is missing.
///
/// # Cancel safety
/// The interpreter that is being asked is killed.
pub async fn look(entry: &PythonConfig, greeter: &Greeter) -> Result<InterpreterSearch, String> {
    let script = script()?;
    let stage = Stage::new(&[]).map_err(|error| error.to_string())?;
    Ok(look_in(entry, &script, greeter, stage.folder()).await)
}

/// As [`look`], with a private folder of the caller for the interpreter's processes.
pub(crate) async fn look_in(
    entry: &PythonConfig,
    script: &Path,
    greeter: &Greeter,
    private: &Path,
) -> InterpreterSearch {
    let asker = Asker {
        entry,
        script,
        program: &greeter.program,
        private,
        limit: LISTING,
    };
    look_at(candidates(entry), &asker).await
}

/// The first candidate that has a toolbox to offer. No interpreter is used if a candidate before it did not answer this
/// time, because that candidate may have the same toolboxes, with other packages.
async fn look_at(candidates: Vec<PathBuf>, asker: &Asker<'_>) -> InterpreterSearch {
    let mut found = InterpreterSearch::default();
    for candidate in candidates {
        match asker.ask(&candidate).await {
            Ok(interpreter) if interpreter.offered(asker.entry).next().is_some() => {
                found.interpreter = Some(interpreter);
                return found;
            }
            Ok(interpreter) => {
                let problems = interpreter
                    .toolboxes
                    .iter()
                    .filter_map(|one| one.problem.as_deref());
                let problems: Vec<&str> = problems.collect();
                let none = match &asker.entry.confine {
                    None => "has no OPM toolbox that can be offered",
                    Some(_) => {
                        "has no OPM toolbox that can be offered and that its `confine` lets it see; does `paths_ro` name the \
                         folders of its packages and of its virtual environment?"
                    }
                };
                let text = std::iter::once(none)
                    .chain(problems)
                    .collect::<Vec<_>>()
                    .join("; ");
                found.passed_over.push(format!("{}: {text}", candidate.display()));
            }
            Err(reason) => {
                found.unanswered = true;
                found
                    .passed_over
                    .push(format!("{}: {reason}", candidate.display()));
                if matches!(reason, ListingError::ThisTime(_)) {
                    return found;
                }
            }
        }
    }
    found
}

/// The interpreters to which an entry may refer, the best first.
fn candidates(entry: &PythonConfig) -> Vec<PathBuf> {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&searched);
    let (name, folders): (&str, Vec<PathBuf>) = match entry.interpreter.as_deref() {
        Some(path) if path.starts_with('/') => return vec![path.into()],
        Some(name) => (name, folders.collect()),
        None => {
            let venv = std::env::var_os("VIRTUAL_ENV").map(|venv| PathBuf::from(venv).join("bin"));
            ("python3", venv.into_iter().chain(folders).collect())
        }
    };
    let mut seen = Vec::new();
    let files = folders.iter().filter(|folder| folder.is_absolute());
    let files = files
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file());
    // The interpreter of a virtual environment differs from the one to which its link leads.
    files
        .filter(|path| {
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let new = !seen.contains(&folder);
            seen.push(folder);
            new
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces the program that prepares a process, and prepares nothing.
    const BECOMES: &str = r#"while [ "$1" != -- ]; do shift; done; shift; exec "$@""#;

    #[tokio::test]
    async fn an_interpreter_that_does_not_answer_this_time_is_not_replaced_by_the_next() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let list = r#"echo '{"python": {"executable": "/next", "version": "3"}, "toolboxes":
            [{"entry_point": "a", "distribution": "a", "version": "1", "revision": "r", "problem": null}], "imports": []}'"#;
        let list = format!("case \"$*\" in *--folders) exit;; esac; {list}");
        let (next, becomes) = (program("next", &list), program("becomes", BECOMES));
        let entry = PythonConfig::new("python");
        for (first, limit, why, next_is_used) in [
            ("exec sleep 60", 1, "within 1 s", false),
            ("kill -KILL $$", 60, "signal: 9", false),
            ("echo no such version >&2; exit 127", 60, "no such version", true),
            (
                r#"echo '{"python": {"executable": "/first", "version": "3"}, "toolboxes": [], "imports": []}'"#,
                60,
                "has no OPM toolbox",
                true,
            ),
        ] {
            let candidates = vec![program("first", first), next.clone()];
            let asker = Asker {
                entry: &entry,
                script: &next,
                program: &becomes,
                private: folder.path(),
                limit: Duration::from_secs(limit),
            };
            let found = look_at(candidates, &asker).await;
            assert_eq!(found.interpreter.is_some(), next_is_used, "{first}: {found:?}");
            assert!(found.passed_over[0].contains(why), "{first}: {found:?}");
        }
    }
}
