//! A Python interpreter and the OPM toolboxes that are installed for it, from the metadata of packages.
//!
//! The interpreter is asked, because only it knows where it finds packages; no toolbox is imported. Its file is checked as that
//! of a program before it is asked. Read [`look`].

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::artifact::check;
use crate::artifact::probe::last_lines;
use crate::process::spawner::allowed_environment;
use section::{ProgramConfig, PythonConfig};

/// How long an interpreter has to list its toolboxes. Reading the metadata of 300 packages takes 1 s on a small board.
const LISTING: Duration = Duration::from_secs(10);
/// Far larger than any list.
const MAX_LIST: u64 = 4 << 20;
const MAX_STDERR: u64 = 64 << 10;

/// An interpreter that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Its file.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
    /// What is installed for it, by entry point.
    pub toolboxes: Vec<Installed>,
}

/// An entry point of the group `opm.agents.toolbox`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Installed {
    /// Its name, which is the id of the toolbox.
    pub entry_point: String,
    /// The package that it is of.
    pub distribution: String,
    /// The version of that package.
    pub version: String,
    /// Another one needs another process.
    pub revision: String,
    /// Why it cannot be offered.
    pub problem: Option<String>,
}

/// What `--list` prints.
#[derive(Deserialize)]
struct Listing {
    python: Python,
    toolboxes: Vec<Installed>,
}

#[derive(Deserialize)]
struct Python {
    executable: PathBuf,
    version: String,
}

/// What an entry of the configuration finds on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The interpreter that is used, if one is.
    pub interpreter: Option<Interpreter>,
    /// Those that are not, each with the reason.
    pub passed_over: Vec<String>,
    /// Whether one of them did not say what it has.
    pub unanswered: bool,
}

/// An entry, and what was found for it.
#[derive(Clone, Debug)]
pub struct LookedAt {
    /// The entry.
    pub entry: Arc<PythonConfig>,
    /// What was found.
    pub found: Found,
}

impl Interpreter {
    /// Those of its toolboxes that an entry may offer.
    pub(crate) fn offered(&self, entry: &PythonConfig) -> impl Iterator<Item = &Installed> {
        let good = self.toolboxes.iter().filter(|one| one.problem.is_none());
        good.filter(|one| entry.may_offer(&one.entry_point))
    }

    /// The programs that host them.
    pub(crate) fn programs(&self, entry: &PythonConfig, script: &Path) -> Vec<Arc<ProgramConfig>> {
        let program = |name: String, toolboxes: &[&Installed], arguments: &[&str]| {
            let words = [&self.path, script as &Path].map(|path| path.to_string_lossy().into_owned());
            let arguments = arguments.iter().map(|word| (*word).to_owned());
            Arc::new(ProgramConfig {
                command: words.into_iter().chain(arguments).collect(),
                env: entry.env.clone(),
                toolboxes: toolboxes.iter().map(|one| one.entry_point.clone()).collect(),
                confine: entry.confine.clone(),
                revisions: Some(toolboxes.iter().map(|one| one.revision.clone()).collect()),
                ..ProgramConfig::new(&name)
            })
        };
        let offered: Vec<&Installed> = self.offered(entry).collect();
        if !entry.alone {
            return vec![program(entry.name.clone(), &offered, &[])];
        }
        let alone = offered.iter().map(|one| {
            let id = one.entry_point.as_str();
            // A name that no entry of the configuration can have.
            program(format!("{}:{id}", entry.name), &[one], &["--alone", id])
        });
        alone.collect()
    }
}

/// Why an interpreter does not say what it has.
#[derive(Debug, thiserror::Error)]
enum Silent {
    /// It cannot: the next one may be the one that is meant.
    #[error("{0}")]
    Cannot(String),
    /// It was too slow, or was killed: it may be able to another time.
    #[error("{0}; it is asked again at the next reload")]
    ThisTime(String),
}

/// Finds the interpreter of an entry, and what is installed for it.
///
/// # Cancel safety
/// The interpreter that is being asked is killed.
pub async fn look(entry: &PythonConfig, script: &Path) -> Found {
    look_at(candidates(entry), entry, script, LISTING).await
}

/// The first of these that has something to offer. None if one before it did not answer this time: that one may have the same
/// toolboxes, with other packages.
async fn look_at(candidates: Vec<PathBuf>, entry: &PythonConfig, script: &Path, limit: Duration) -> Found {
    let mut found = Found::default();
    for candidate in candidates {
        match ask(entry, &candidate, script, limit).await {
            Ok(interpreter) if interpreter.offered(entry).next().is_some() => {
                found.interpreter = Some(interpreter);
                return found;
            }
            Ok(interpreter) => {
                let problems = interpreter
                    .toolboxes
                    .iter()
                    .filter_map(|one| one.problem.as_deref());
                let problems: Vec<&str> = problems.collect();
                let none = "has no OPM toolbox that can be offered";
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
                if matches!(reason, Silent::ThisTime(_)) {
                    return found;
                }
            }
        }
    }
    found
}

/// Where the program is that hosts them: in the source tree of this program, or where it is installed.
///
/// # Errors
/// Where it was looked for.
pub fn script() -> Result<PathBuf, String> {
    const SCRIPT: &str = "ovos_tools_python/__main__.py";
    let program = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    let installed = program
        .ancestors()
        .nth(2)
        .map(|prefix| prefix.join("lib/ovos-tools/python"));
    let tree = program
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("programs/python"));
    let mut folders = installed.iter().cloned().chain(tree);
    let found = folders.find(|folder| folder.join(SCRIPT).is_file());
    found.map(|folder| folder.join(SCRIPT)).ok_or_else(|| {
        let installed = installed.unwrap_or_default();
        format!(
            "there is no {SCRIPT} in {} and in programs/python above {}; `make install` puts it there",
            installed.display(),
            program.display()
        )
    })
}

/// The interpreters that an entry means, the best first.
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
    // A virtual environment is another interpreter than the one that its link leads to.
    files
        .filter(|path| {
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let new = !seen.contains(&folder);
            seen.push(folder);
            new
        })
        .collect()
}

/// Has an interpreter list its toolboxes.
async fn ask(
    entry: &PythonConfig,
    interpreter: &Path,
    script: &Path,
    limit: Duration,
) -> Result<Interpreter, Silent> {
    let checked = [interpreter.to_owned(), script.to_owned()];
    let check = tokio::task::spawn_blocking(move || {
        let mut files = checked.iter();
        files.try_for_each(|path| check::file(path).map(drop).map_err(|error| error.to_string()))
    });
    check
        .await
        .map_err(|error| Silent::ThisTime(format!("bug in the service: {error}")))?
        .map_err(Silent::Cannot)?;
    let mut child = Command::new(interpreter)
        .arg(script)
        .arg("--list")
        .env_clear()
        .envs(allowed_environment())
        .envs(&entry.env)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Silent::Cannot(format!("cannot be started: {error}")))?;
    let (mut list, mut complaints) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let heard = async {
        let list = async {
            if let Some(pipe) = stdout {
                _ = pipe.take(MAX_LIST).read_to_end(&mut list).await;
            }
        };
        let complaints = async {
            if let Some(pipe) = stderr {
                _ = pipe.take(MAX_STDERR).read_to_end(&mut complaints).await;
            }
        };
        tokio::join!(list, complaints);
        child.wait().await
    };
    let status = timeout(limit, heard).await;
    let slow = || format!("did not list its packages within {} s", limit.as_secs());
    let status = status.map_err(|_| Silent::ThisTime(slow()))?;
    let status = status.map_err(|error| Silent::ThisTime(error.to_string()))?;
    let listing = serde_json::from_slice::<Listing>(&list)
        .ok()
        .filter(|_| status.success());
    let listing = listing.ok_or_else(|| {
        let lines = last_lines(&String::from_utf8_lossy(&complaints));
        let reason = format!("does not list its packages ({status}): {lines}");
        match status.signal() {
            Some(_) => Silent::ThisTime(reason),
            None => Silent::Cannot(reason),
        }
    })?;
    Ok(Interpreter {
        // What a wrapper found, such as those of pyenv, depends on where it is started.
        path: listing.python.executable,
        version: listing.python.version,
        toolboxes: listing.toolboxes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(entry_point: &str, problem: Option<&str>) -> Installed {
        Installed {
            entry_point: entry_point.to_owned(),
            distribution: "tools".to_owned(),
            version: "1".to_owned(),
            revision: "r".to_owned(),
            problem: problem.map(str::to_owned),
        }
    }

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
            [{"entry_point": "a", "distribution": "a", "version": "1", "revision": "r", "problem": null}]}'"#;
        let next = program("next", list);
        let entry = PythonConfig::new("python");
        for (first, limit, why, next_is_used) in [
            ("exec sleep 60", 1, "within 1 s", false),
            ("kill -KILL $$", 60, "signal: 9", false),
            ("echo no such version >&2; exit 127", 60, "no such version", true),
            (
                r#"echo '{"python": {"executable": "/first", "version": "3"}, "toolboxes": []}'"#,
                60,
                "has no OPM toolbox",
                true,
            ),
        ] {
            let candidates = vec![program("first", first), next.clone()];
            let found = look_at(candidates, &entry, &next, Duration::from_secs(limit)).await;
            assert_eq!(found.interpreter.is_some(), next_is_used, "{first}: {found:?}");
            assert!(found.passed_over[0].contains(why), "{first}: {found:?}");
        }
    }

    #[test]
    fn what_may_be_offered_is_hosted_with_its_revisions() {
        let interpreter = Interpreter {
            path: "/v/bin/python3".into(),
            version: "3.11".to_owned(),
            toolboxes: vec![
                installed("a", None),
                installed("b", Some("no id")),
                installed("c", None),
            ],
        };
        let entry = |alone: bool, toolboxes: &[&str]| PythonConfig {
            alone,
            toolboxes: toolboxes.iter().map(|id| (*id).to_owned()).collect(),
            ..PythonConfig::new("python")
        };
        let command = "/v/bin/python3 /s";
        for (entry, expected) in [
            (entry(false, &["*"]), vec![format!("python {command}: a c")]),
            (
                entry(true, &["*"]),
                vec![
                    format!("python:a {command} --alone a: a"),
                    format!("python:c {command} --alone c: c"),
                ],
            ),
            (
                entry(true, &["c"]),
                vec![format!("python:c {command} --alone c: c")],
            ),
            (entry(true, &["b"]), vec![]),
        ] {
            let programs = interpreter.programs(&entry, Path::new("/s"));
            let shown: Vec<String> = programs
                .iter()
                .map(|program| {
                    let (command, ids) = (program.command.join(" "), program.toolboxes.join(" "));
                    format!("{} {command}: {ids}", program.name)
                })
                .collect();
            assert_eq!(shown, expected);
            for program in &programs {
                let revisions = program.toolboxes.iter().map(|_| "r".to_owned());
                assert_eq!(program.revisions, Some(revisions.collect()));
            }
        }
    }
}
