//! Loads a file in a child process before any other use.
//!
//! Has the code of both processes. A file that crashes or hangs in the dynamic linker or in its own constructors
//! affects only the child. The child prints the manifest; its other output is ignored. Read [`Probe`] first.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use program::json;

use crate::contract::manifest;
use crate::process::descriptors;
use crate::process::spawner::{allowed_environment, signal_name};
use ovos_toolbox_wire::{Manifest, is_toolbox_id};

/// The start of the child's answer. Constructors of a plugin may print to the same pipe.
const MARK: &str = "@ovos-tools-answer ";
/// The largest answer, far larger than any manifest or list of findings.
const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
const MAX_STDERR_BYTES: u64 = 64 * 1024;
const LAST_LINES: usize = 5;

/// The time limit for a plugin file.
pub const FILE_LIMIT: Duration = Duration::from_secs(5);

/// The time limit until the hello of a program: an interpreter starts, and imports from the disk of a small board.
pub const HELLO_LIMIT: Duration = Duration::from_secs(30);

/// Why a file did not pass.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The child could not be started.
    #[error("start {} to probe {}: {source}", program.display(), path.display())]
    Spawn {
        /// The program to run.
        program: PathBuf,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The child did not answer in time.
    #[error("{} does not load within {limit_ms} ms (service.probe_ms){}", path.display(), said(stderr))]
    Timeout {
        /// The file.
        path: PathBuf,
        /// The limit, in milliseconds.
        limit_ms: u128,
        /// The last lines it wrote.
        stderr: String,
    },
    /// The child died.
    #[error("{} kills the process that loads it: {how}{}", path.display(), said(stderr))]
    Died {
        /// The file.
        path: PathBuf,
        /// The signal or exit code.
        how: String,
        /// The last lines it wrote.
        stderr: String,
    },
    /// The child answered that the file is no toolbox.
    #[error("{0}")]
    Refused(String),
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!("; it wrote: {stderr}")
    }
}

/// The settings of a probe.
#[derive(Clone, Debug)]
pub struct Probe {
    pub(crate) program: PathBuf,
    /// The time limit of the child. Default [`FILE_LIMIT`].
    pub limit: Duration,
    /// The time limit of a program until its hello. Default [`HELLO_LIMIT`].
    pub hello: Duration,
    /// Variables added to those that the child gets from the service.
    pub env: BTreeMap<String, String>,
}

/// The section whose `env` the probe uses while the toolbox's id is unknown: the one with the file's name.
#[must_use]
pub fn section_of(file: &Path) -> Option<&str> {
    file.file_stem()
        .and_then(OsStr::to_str)
        .filter(|id| is_toolbox_id(id))
}

impl Probe {
    /// Probes with this program: `toolbox-host --probe FILE`. Works also after an upgrade has replaced the program's
    /// file.
    ///
    /// # Errors
    /// The path of the program is unknown.
    pub fn current_exe() -> std::io::Result<Self> {
        // In the child, this link refers to this program until the child executes the new program.
        let running = Path::new("/proc/self/exe");
        let program = if running.exists() {
            running.to_owned()
        } else {
            std::env::current_exe()?
        };
        Ok(Self::with_program(program))
    }

    /// Probes with `program toolbox-host --probe FILE`.
    #[must_use]
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            limit: FILE_LIMIT,
            hello: HELLO_LIMIT,
            env: BTreeMap::new(),
        }
    }

    /// This probe with other variables for the child's environment: the linker may need one to find the libraries of a
    /// file.
    #[must_use]
    pub fn with_env(&self, env: BTreeMap<String, String>) -> Self {
        Self { env, ..self.clone() }
    }

    /// Loads `file` in a child and reads its manifest. `shown` is the path for error messages.
    ///
    /// # Errors
    /// See [`ProbeError`].
    ///
    /// # Cancel safety
    /// The child is killed.
    pub async fn run(&self, file: &Path, shown: &Path) -> Result<Manifest, ProbeError> {
        let answer: Answer<String> = self.ask("--probe", file, self.limit, shown).await?;
        let refused = |text: String| {
            ProbeError::Refused(text.replace(&file.display().to_string(), &shown.display().to_string()))
        };
        match answer {
            Answer::Ok(json) => manifest::read(&json)
                .map_err(|wrong| refused(format!("{}: manifest: {}", shown.display(), wrong.join("; ")))),
            Answer::Err(text) => Err(refused(text)),
        }
    }

    /// Runs a child that answers with one line. The child has ended when this returns.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        task: &str,
        file: &Path,
        limit: Duration,
        shown: &Path,
    ) -> Result<T, ProbeError> {
        let mut child = Command::new(&self.program)
            .args(["toolbox-host".as_ref(), task.as_ref(), file.as_os_str()])
            .env_clear()
            .envs(allowed_environment())
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| ProbeError::Spawn {
                program: self.program.clone(),
                path: shown.to_owned(),
                source,
            })?;
        child.id().into_iter().for_each(descriptors::give_back);
        let mut errors = Vec::new();
        let ended = tokio::time::timeout(limit, listen(&mut child, &mut errors)).await;
        let path = shown.to_owned();
        let stderr = last_lines(&String::from_utf8_lossy(&errors));
        let Ok(heard) = ended else {
            let _ = child.kill().await;
            return Err(ProbeError::Timeout {
                path,
                limit_ms: limit.as_millis(),
                stderr,
            });
        };
        match heard {
            // The probe does not wait until a child that has answered ends by itself (destructors, threads).
            ProbeEnd::Answer(line) => {
                let _ = child.kill().await;
                json::read(&line).map_err(|e| ProbeError::Died {
                    path,
                    how: format!("it answered nonsense: {e}"),
                    stderr,
                })
            }
            ProbeEnd::End(status) => Err(ProbeError::Died {
                path,
                how: describe(status),
                stderr,
            }),
        }
    }
}

/// The answer of a child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer<T> {
    Ok(T),
    Err(String),
}

enum ProbeEnd {
    Answer(String),
    End(Option<ExitStatus>),
}

/// Reads both pipes until the answer or the end.
async fn listen(child: &mut Child, errors: &mut Vec<u8>) -> ProbeEnd {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return ProbeEnd::End(None);
    };
    let answer = async {
        let mut lines = BufReader::new(stdout.take(MAX_ANSWER_BYTES)).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            // A constructor may have printed an incomplete line before the mark.
            let line = String::from_utf8_lossy(&line);
            if let Some((_, answer)) = line.split_once(MARK) {
                return Some(answer.to_owned());
            }
        }
        None
    };
    let mut stderr = stderr.take(MAX_STDERR_BYTES);
    // Read into the caller's buffer, which keeps the last lines of a child that is given up.
    let complaints = stderr.read_to_end(errors);
    tokio::pin!(answer);
    let heard = {
        tokio::pin!(complaints);
        tokio::select! {
            heard = &mut answer => {
                if heard.is_none() {
                    // The child died: its last lines are in the pipe.
                    let _ = complaints.await;
                }
                heard
            }
            _ = &mut complaints => answer.await,
        }
    };
    match heard {
        Some(answer) => ProbeEnd::Answer(answer),
        None => ProbeEnd::End(child.wait().await.ok()),
    }
}

fn describe(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "its end is unknown".to_owned();
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}{}", signal_name(signal)),
        (None, Some(code)) => format!("exit code {code} before it answered"),
        (None, None) => "its end is unknown".to_owned(),
    }
}

/// The last lines of what a child wrote.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].join(" | ")
}

/// The child's side of [`Probe::run`]: prints what was found in the file, its manifest or the reason why it cannot be loaded.
#[must_use]
pub fn answer(found: Result<String, String>) -> ExitCode {
    let answer = match found {
        Ok(manifest) => Answer::Ok(manifest),
        Err(reason) => Answer::Err(reason),
    };
    reply(&answer)
}

/// Prints a child's answer.
pub(crate) fn reply<T: Serialize>(answer: &Answer<T>) -> ExitCode {
    use std::io::Write;
    let Ok(json) = serde_json::to_string(answer) else {
        return ExitCode::FAILURE;
    };
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "\n{MARK}{json}").and_then(|()| stdout.flush());
    if written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
