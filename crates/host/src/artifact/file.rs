//! The plugin file or program that the processes of a toolbox run, and its removal after the last use.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::runtime::Handle;

use crate::artifact::program::Executable;
use crate::process::spawner::Program;
use crate::process::work_folder::WorkFolder;

/// A plugin file that this process or the processes of a toolbox load, including the process that brings the hardware
/// to rest when the others have ended; or a program that is the toolbox.
#[derive(Debug)]
pub struct PluginFile(Kind);

#[derive(Debug)]
enum Kind {
    Library {
        path: PathBuf,
        /// The runtime on which the file is removed; `None` if the file belongs to the caller.
        removed_on: Option<Handle>,
    },
    Program {
        executable: Executable,
        /// The folder for the working directories of the program's processes.
        private: PathBuf,
    },
}

/// The task of a toolbox's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Serves the toolbox, with the data socket as stdin and the control socket as stdout.
    Serve,
    /// As `Serve`, only until its hello.
    Greet,
    /// Brings the hardware to rest, with the configuration as stdin.
    SafeStop,
}

/// A process that is about to be started.
pub(crate) struct Launch {
    pub(crate) command: Command,
    /// The working directory, which has to be kept until the process has ended.
    pub(crate) folder: Option<WorkFolder>,
}

impl PluginFile {
    /// A file of the caller, who must not change it while it is used.
    #[must_use]
    pub fn lent(path: PathBuf) -> Self {
        Self(Kind::Library {
            path,
            removed_on: None,
        })
    }

    /// A private copy that is removed after its last use. The runtime removes it, because the last use may end on a
    /// thread that must not wait for a disk. Without a runtime, the copy is removed with the stage.
    pub(crate) fn staged(path: PathBuf) -> Self {
        Self(Kind::Library {
            path,
            removed_on: Handle::try_current().ok(),
        })
    }

    /// A program whose processes get working directories in `private`, a private folder of the service.
    pub(crate) fn program(executable: Executable, private: &Path) -> Self {
        Self(Kind::Program {
            executable,
            private: private.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        match &self.0 {
            Kind::Library { path, .. } => path,
            Kind::Program { executable, .. } => executable.shown(),
        }
    }

    /// The program; `None` for a plugin file.
    pub(crate) fn executable(&self) -> Option<&Executable> {
        match &self.0 {
            Kind::Library { .. } => None,
            Kind::Program { executable, .. } => Some(executable),
        }
    }

    /// Checks a program again before another of its processes is started. A private copy of a plugin cannot change and
    /// is not checked. Blocks.
    ///
    /// # Errors
    /// The problem, and what to do about it.
    pub(crate) fn check_again(&self, allow_sha256: &[String]) -> Result<(), String> {
        let executable = self.executable();
        executable.map_or(Ok(()), |executable| executable.check_again(allow_sha256))
    }

    /// The process that does a task with this file, started by `host`.
    pub(crate) fn launch(&self, host: &Program, task: Task) -> Launch {
        match &self.0 {
            Kind::Library { path, .. } => {
                let task = match task {
                    Task::Serve => "--serve",
                    Task::Greet => "--greet",
                    Task::SafeStop => "--safe-stop",
                };
                Launch {
                    command: host.command("toolbox-host", [OsStr::new(task), path.as_os_str()]),
                    folder: None,
                }
            }
            Kind::Program { executable, private } => {
                let how = match task {
                    Task::Serve | Task::Greet => None,
                    Task::SafeStop => Some("--safe-stop"),
                };
                Launch::of(executable, private, host, how)
            }
        }
    }
}

impl Launch {
    /// The process of a program that answers on its standard output and ends.
    pub(crate) fn of_question(executable: &Executable, private: &Path, host: &Program) -> Self {
        Self::of(executable, private, host, Some("--answers"))
    }

    fn of(executable: &Executable, private: &Path, host: &Program, how: Option<&str>) -> Self {
        let folder = WorkFolder::below(private);
        let mut host = host.clone();
        // The service knows what a plugin needs that comes with it. A program of the same id is another one, such as the mount of
        // that plugin's machine.
        host.confine = host.confine.filter(|confine| confine.default.is_none());
        if let Some(confine) = &mut host.confine {
            confine.paths_rw.push(folder.path().to_owned());
            confine.paths_ro.extend(executable.paths().map(Path::to_owned));
        }
        let mut words: Vec<OsString> = vec!["--folder".into(), folder.path().into(), "--".into()];
        words.extend(executable.words());
        if let Some(how) = how {
            words.insert(0, how.into());
        }
        Self {
            command: host.command("program-host", words),
            folder: Some(folder),
        }
    }
}

impl Drop for PluginFile {
    fn drop(&mut self) {
        if let Kind::Library {
            path,
            removed_on: Some(runtime),
        } = &mut self.0
        {
            let copy = std::mem::take(path);
            runtime.spawn_blocking(move || fs::remove_file(copy));
        }
    }
}
