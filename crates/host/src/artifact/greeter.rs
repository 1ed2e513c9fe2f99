//! How files and programs are asked who they are: which program hosts them, and how long they have. Read [`Greeter`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovos_toolbox_wire::{Object, is_toolbox_id};

use crate::artifact::file::PluginFile;
use crate::process::spawner::Program;
use section::Confine;

const LAST_LINES: usize = 5;

/// The time limit for a plugin file.
pub const FILE_LIMIT: Duration = Duration::from_secs(5);

/// The time limit for a program: an interpreter starts, and imports from the disk of a small board.
pub const HELLO_LIMIT: Duration = Duration::from_secs(30);

/// How files and programs are asked who they are.
#[derive(Clone, Debug)]
pub struct Greeter {
    pub(crate) program: PathBuf,
    /// How long a plugin file has until its hello. Default [`FILE_LIMIT`].
    pub limit: Duration,
    /// How long a program has until its hello. Default [`HELLO_LIMIT`].
    pub hello: Duration,
    /// Variables added to those that the process gets from the service.
    pub env: BTreeMap<String, String>,
    /// The section with which a toolbox is opened to be inspected. Default: an empty one.
    pub section: Object,
    /// How long an opened toolbox is listened to while it is inspected. Default: not longer than its tools take.
    pub listens: Duration,
}

/// The section whose `env` the greeting uses while the toolbox's id is unknown: the one with the file's name.
#[must_use]
pub fn section_of(file: &Path) -> Option<&str> {
    file.file_stem()
        .and_then(OsStr::to_str)
        .filter(|id| is_toolbox_id(id))
}

impl Greeter {
    /// Hosts with this program. Works also after an upgrade has replaced the program's file.
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

    /// Hosts with `program`.
    #[must_use]
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            limit: FILE_LIMIT,
            hello: HELLO_LIMIT,
            env: BTreeMap::new(),
            section: Object::new(),
            listens: Duration::ZERO,
        }
    }

    /// What hosts a file or a program, with these variables and this confinement. The linker may need a variable to
    /// find the libraries of a file.
    pub(crate) fn host(&self, env: BTreeMap<String, String>, confine: Option<Confine>) -> Program {
        Program {
            path: self.program.clone().into(),
            env,
            confine,
        }
    }

    /// How long this has until its hello.
    pub(crate) fn limit_of(&self, file: &PluginFile) -> Duration {
        match file.executable() {
            Some(_) => self.hello,
            None => self.limit,
        }
    }
}

/// The last lines of what a process wrote.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].join(" | ")
}
