//! The record of a run: lines of JSON, one for its start, one for each step, one for its end. With a record a run can be replayed
//! without a model.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use client::payload::AgentEndCall;
use config::AgentBudgets;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::end::End;

/// The version of the format of records.
pub(crate) const VERSION: u32 = 1;

/// The longest line that is read, in bytes. An answer and its state are far smaller. The limit keeps a file that is not a record
/// from filling the memory.
const LONGEST: u64 = 64 << 20;

/// A line of a record, as it is written.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first line.
    Start(Box<Start>),
    /// A step: one answer of the model and the outcome of its calls.
    Step(Box<Step>),
    /// The last line.
    End(Box<RunEnd>),
}

/// The settings at the start of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) version: u32,
    pub(crate) run_id: String,
    /// The time of the start, in seconds since 1970, UTC.
    pub(crate) began: f64,
    pub(crate) goal: String,
    pub(crate) model: String,
    pub(crate) dry_run: bool,
    /// The switches of the run: what the model does not have.
    pub(crate) ablations: Value,
    pub(crate) budgets: AgentBudgets,
    /// SHA-256 of the first message.
    pub(crate) prompt_sha256: String,
    /// SHA-256 of the list of tools as it is sent to the model.
    pub(crate) tools_sha256: String,
    pub(crate) tools: Vec<String>,
}

/// A step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) step: u32,
    /// The messages that were added to the conversation since the last step.
    pub(crate) sent: Vec<Value>,
    pub(crate) state: Value,
    /// SHA-256 of the whole request.
    pub(crate) request_sha256: String,
    /// The answer of the endpoint, unchanged.
    pub(crate) answer: Value,
    pub(crate) answer_ms: u64,
    pub(crate) thought: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) used: Value,
    pub(crate) left: Value,
}

/// A call of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments; missing if they are malformed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// What the call would hold and do, if it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Value>,
    /// The id of the call in the service; missing if the call was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call_id: Option<String>,
    pub(crate) status: Status,
    /// The text that the model reads about the call.
    pub(crate) observation: Value,
    pub(crate) ms: u64,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The call was not made.
    #[default]
    NotMade,
    /// The agent refused the call before it was made: it is malformed, unknown, or over a budget.
    Refused,
    /// The service refused the call, or it failed.
    Failed,
    /// The call waits for a person to confirm it.
    WaitsForConfirmation,
    /// The call was only planned.
    Planned,
    /// The call was done.
    Completed,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunEnd {
    pub(crate) end: End,
    pub(crate) text: String,
    pub(crate) exit_code: u8,
    pub(crate) used: Value,
    pub(crate) elapsed_ms: u64,
    /// What was done to halt what the run moved.
    pub(crate) halted: Option<Value>,
    /// The calls that toolboxes want at the end of a run that moved them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) agent_end: Vec<AgentEndCall>,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("the record {path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("line {line} of the record {path} cannot be read: {cause}")]
    Line {
        path: PathBuf,
        line: usize,
        cause: serde_json::Error,
    },
    #[error("line {line} of the record {path} is longer than {LONGEST} bytes")]
    Long { path: PathBuf, line: usize },
    #[error("the record {0} does not begin with a line of kind `start`: it is not the record of a run")]
    NoStart(PathBuf),
    #[error("the record {path} has version {found}; this program reads {VERSION}")]
    Version { path: PathBuf, found: u32 },
}

/// Writes a record. If the disk is full, the record is incomplete, but the run continues.
pub(crate) struct Recorder {
    file: Option<File>,
    path: PathBuf,
}

impl Recorder {
    /// Creates a new file that only its owner can read, because conversations and pictures may be private. `None`: nothing is
    /// recorded.
    ///
    /// # Errors
    /// The file cannot be created, or already exists.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self, RecordError> {
        let Some(path) = path else {
            return Ok(Self {
                file: None,
                path: PathBuf::new(),
            });
        };
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = file.map_err(|cause| RecordError::File {
            path: path.to_owned(),
            cause,
        })?;
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
        })
    }

    pub(crate) fn write(&mut self, line: &Line) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_string(line)
            .map_err(io::Error::from)
            .and_then(|text| file.write_all(format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            tracing::error!(%error, path = %self.path.display(), "the record ends here: it cannot be written");
            self.file = None;
        }
    }
}

/// A record that was read from a file.
pub(crate) struct Record {
    pub(crate) start: Start,
    pub(crate) steps: Vec<Step>,
}

impl Record {
    /// Reads a record. A last line that was cut off, for example by a kill, is left out.
    ///
    /// # Errors
    /// [`RecordError`].
    pub(crate) fn read(path: &Path) -> Result<Self, RecordError> {
        let failed = |cause| RecordError::File {
            path: path.to_owned(),
            cause,
        };
        let file = File::open(path).map_err(failed)?;
        let mut reader = BufReader::new(file);
        let (mut start, mut steps) = (None, Vec::new());
        let mut number = 0;
        loop {
            let mut text = String::new();
            let mut line = io::Read::take(&mut reader, LONGEST);
            if line.read_line(&mut text).map_err(failed)? == 0 {
                break;
            }
            number += 1;
            if line.limit() == 0 && !text.ends_with('\n') {
                return Err(RecordError::Long {
                    path: path.to_owned(),
                    line: number,
                });
            }
            if text.trim().is_empty() {
                continue;
            }
            let unreadable = |cause| RecordError::Line {
                path: path.to_owned(),
                line: number,
                cause,
            };
            // The line is not read as an enum with a tag, because serde would then turn the numbers of this build of serde_json
            // into maps.
            let line: Value = match serde_json::from_str(&text) {
                Ok(line) => line,
                Err(_) if !text.ends_with('\n') => break,
                Err(cause) => return Err(unreadable(cause)),
            };
            let kind = line.get("kind").and_then(Value::as_str).map(str::to_owned);
            match (kind.as_deref(), &start) {
                (Some("start"), None) => {
                    let found = line.get("version").and_then(Value::as_u64);
                    let found = found.and_then(|found| u32::try_from(found).ok()).unwrap_or(0);
                    if found != VERSION {
                        return Err(RecordError::Version {
                            path: path.to_owned(),
                            found,
                        });
                    }
                    start = Some(serde_json::from_value(line).map_err(unreadable)?);
                }
                (Some("step"), Some(_)) => steps.push(serde_json::from_value(line).map_err(unreadable)?),
                (Some("end"), Some(_)) => break,
                _ => return Err(RecordError::NoStart(path.to_owned())),
            }
        }
        let start = start.ok_or_else(|| RecordError::NoStart(path.to_owned()))?;
        Ok(Self { start, steps })
    }
}

/// Returns the SHA-256 of JSON, in hexadecimal.
pub(crate) fn sha256(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the first step whose calls differ from those of a record, as `(step, now, then)`. A difference is another tool, other
/// arguments, another outcome, or whether the call was made.
pub(crate) fn differs(then: &[Step], now: &[Step]) -> Option<(u32, String, String)> {
    let calls = |step: Option<&Step>| {
        let calls = step.map_or(&[][..], |step| &step.calls);
        let calls = calls.iter().map(|call| {
            let arguments = call.arguments.as_ref().map_or_else(String::new, Value::to_string);
            let made = if call.call_id.is_some() { "" } else { ", not sent" };
            format!("{}({arguments}): {:?}{made}", call.name, call.status)
        });
        calls.collect::<Vec<_>>().join(", ")
    };
    (0..then.len().max(now.len())).find_map(|at| {
        let (then, now) = (calls(then.get(at)), calls(now.get(at)));
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        (then != now).then_some((number, now, then))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &str, status: Status, call_id: Option<&str>) -> Step {
        let call = Call {
            name: name.to_owned(),
            arguments: Some(json!({})),
            status,
            call_id: call_id.map(str::to_owned),
            ..Call::default()
        };
        Step {
            step: 1,
            sent: Vec::new(),
            state: Value::Null,
            request_sha256: String::new(),
            answer: Value::Null,
            answer_ms: 0,
            thought: String::new(),
            calls: vec![call],
            used: Value::Null,
            left: Value::Null,
        }
    }

    #[test]
    fn a_replay_differs_where_another_thing_was_asked_for_or_came_of_it() {
        let then = || [step("move", Status::Completed, Some("a"))];
        for (now, differ) in [
            (vec![step("move", Status::Completed, Some("another id"))], false),
            (vec![step("turn", Status::Completed, Some("b"))], true),
            (vec![step("move", Status::Failed, Some("b"))], true),
            (vec![step("move", Status::Completed, None)], true),
            (vec![], true),
        ] {
            assert_eq!(differs(&then(), &now).is_some(), differ, "{now:?}");
        }
    }

    #[test]
    fn a_record_is_read_whole_however_long_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.jsonl");
        let mut file = File::create(&path).expect("a file");
        let start = json!({"kind": "start", "version": VERSION, "run_id": "r", "began": 0.0, "goal": "g", "model": "m", "dry_run": false,
            "ablations": {}, "budgets": AgentBudgets::default(), "prompt_sha256": "", "tools_sha256": "", "tools": []});
        writeln!(file, "{start}").expect("room");
        let mut long = step("move", Status::Completed, None);
        long.thought = "x".repeat(24 << 20);
        for _ in 0..3 {
            let line = serde_json::to_string(&Line::Step(Box::new(long.clone()))).expect("JSON");
            writeln!(file, "{line}").expect("room");
        }
        let read = Record::read(&path).expect("a record");
        assert_eq!(read.steps.len(), 3);
    }
}
