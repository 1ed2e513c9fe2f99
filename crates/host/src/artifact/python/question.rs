//! Runs an interpreter to list its toolboxes: in a process of its own that is checked, confined, bounded, and ends with
//! the service. Read [`Asker::ask`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::interpreter::{InstalledToolbox, Interpreter, confine};
use crate::artifact::file::Launch;
use crate::artifact::greeter::last_lines;
use crate::artifact::program::Executable;
use crate::process::spawner::Program;
use crate::process::started_process::StartedProcess;
use executable::check;
use section::{ProgramConfig, PythonConfig};

/// The largest answer, far larger than any list.
const MAX_LIST: u64 = 4 << 20;
const MAX_STDERR: u64 = 64 << 10;
/// How long an interpreter that has closed its output has to end.
const END: Duration = Duration::from_secs(1);

/// Runs interpreters for one entry of the configuration.
pub(super) struct Asker<'a> {
    pub(super) entry: &'a PythonConfig,
    /// The program that hosts toolboxes.
    pub(super) script: &'a Path,
    /// The path of this program.
    pub(super) program: &'a Path,
    /// The folder for the working directories.
    pub(super) private: &'a Path,
    /// How long an answer may take.
    pub(super) limit: Duration,
}

/// Why an interpreter did not list its toolboxes.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListingError {
    /// The interpreter cannot list them, or must not be run: the entry may refer to the next interpreter.
    #[error("{0}")]
    Cannot(String),
    /// The interpreter was too slow, or was killed: it may answer another time.
    #[error("{0}; it is asked again at the next reload")]
    ThisTime(String),
}

/// The output of `--list`.
#[derive(Deserialize)]
struct Listing {
    python: Python,
    toolboxes: Vec<InstalledToolbox>,
    imports: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Python {
    executable: PathBuf,
    version: String,
}

impl Asker<'_> {
    /// Lets an interpreter list its toolboxes. Before that, the interpreter names the folders from which it imports,
    /// without running the code of any package, and these folders are checked.
    pub(super) async fn ask(&self, interpreter: &Path) -> Result<Interpreter, ListingError> {
        let named = self.entry.env.get("PYTHONPATH");
        let named = named.iter().flat_map(std::env::split_paths);
        let named = named.filter(|folder| folder.is_absolute()).collect();
        // An interpreter may import from these folders before it imports the first of its own modules.
        let folders = self.run(interpreter, &["-S"], "--folders", named).await?;
        let folders = folders.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let folders = folders
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect();
        let list = self.run(interpreter, &[], "--list", folders).await?;
        let listing: Listing = serde_json::from_slice(&list)
            .map_err(|error| ListingError::Cannot(format!("does not list its packages: {error}")))?;
        let imports = listing.imports.clone();
        let checked =
            tokio::task::spawn_blocking(move || imports.iter().try_for_each(|path| check::imported(path)));
        let checked = checked.await.map_err(|error| bug(&error))?;
        checked.map_err(|error| ListingError::Cannot(error.to_string()))?;
        Ok(Interpreter {
            // The real path: the interpreter that a wrapper (such as those of pyenv) chooses depends on the working
            // directory.
            path: listing.python.executable,
            version: listing.python.version,
            toolboxes: listing.toolboxes,
            imports: listing.imports,
        })
    }

    /// The output of an interpreter. `imports` is checked before the interpreter is started.
    async fn run(
        &self,
        interpreter: &Path,
        options: &[&str],
        question: &str,
        imports: Vec<PathBuf>,
    ) -> Result<Vec<u8>, ListingError> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let words = std::iter::once(text(interpreter))
            .chain(options.iter().map(|option| (*option).to_owned()))
            .chain([text(self.script), question.to_owned()]);
        let entry = Arc::new(ProgramConfig {
            command: words.collect(),
            imports,
            ..ProgramConfig::new(&self.entry.name)
        });
        let found = tokio::task::spawn_blocking(move || Executable::find(&entry));
        let executable = found
            .await
            .map_err(|error| bug(&error))?
            .map_err(ListingError::Cannot)?;
        let host = Program {
            path: self.program.into(),
            env: self.entry.env.clone(),
            confine: confine(self.entry, self.script),
        };
        let Launch {
            mut command,
            folder: _folder,
        } = Launch::of_question(&executable, self.private, &host);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let cannot = |error: std::io::Error| ListingError::Cannot(format!("cannot be started: {error}"));
        let mut started = StartedProcess::start(command).await.map_err(cannot)?;
        let (stdout, stderr) = (started.child.stdout.take(), started.child.stderr.take());
        let output = async {
            let output = tokio::join!(all_of(stdout), last_of(stderr));
            (output, started.end(END).await)
        };
        let slow = || format!("did not list its packages within {} s", self.limit.as_secs());
        let output = timeout(self.limit, output).await;
        let ((list, complaints), status) = output.map_err(|_| ListingError::ThisTime(slow()))?;
        let Some(status) = status else {
            return Err(ListingError::ThisTime(
                "did not end after it listed its packages".to_owned(),
            ));
        };
        if status.success() {
            return Ok(list);
        }
        let lines = last_lines(&String::from_utf8_lossy(&complaints));
        Err(failed(status, &lines))
    }
}

fn failed(status: ExitStatus, lines: &str) -> ListingError {
    let reason = format!("does not list its packages ({status}): {lines}");
    match status.signal() {
        Some(_) => ListingError::ThisTime(reason),
        None => ListingError::Cannot(reason),
    }
}

fn bug(error: &dyn std::fmt::Display) -> ListingError {
    ListingError::ThisTime(format!("bug in the service: {error}"))
}

async fn all_of(pipe: Option<ChildStdout>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(Ok(pipe)) = pipe.map(tokio::process::ChildStdout::from_std) {
        _ = pipe.take(MAX_LIST).read_to_end(&mut bytes).await;
    }
    bytes
}

async fn last_of(pipe: Option<ChildStderr>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(Ok(pipe)) = pipe.map(tokio::process::ChildStderr::from_std) {
        _ = pipe.take(MAX_STDERR).read_to_end(&mut bytes).await;
    }
    bytes
}
