//! Child processes of a test: each has a sandbox of its own and its output in a file, and ends when its value is
//! dropped.
//!
//! Nothing here knows a bus or a service. Start with [`Sandbox`].

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The longest wait of a test; generous, because it matters only if something is broken.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A home directory that starts empty, so that no configuration of this machine reaches a test.
pub(crate) struct Sandbox {
    dir: TempDir,
    state: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = |parent: &Path| {
            tempfile::Builder::new()
                .prefix("test-ovos-tools-")
                .tempdir_in(parent)
        };
        let dir = folder(&std::env::temp_dir()).unwrap();
        // In memory where that can be had: a busy disk answers later than the 200 ms a stop waits for it, and then the
        // stop is answered with an error. Tests of a slow disk make one.
        let state = folder(Path::new("/dev/shm"))
            .or_else(|_| folder(dir.path()))
            .unwrap();
        std::os::unix::fs::symlink(state.path(), dir.path().join("state")).unwrap();
        let sandbox = Self { dir, state };
        for sub in ["config/mycroft", "data", "cache", "run", "etc/mycroft"] {
            fs::create_dir_all(sandbox.path(sub)).unwrap();
        }
        // Nor any Python toolbox that is installed here; a test's own configuration overrides it.
        let without_python = serde_json::json!({
            "PHAL": { "ovos-phal-plugin-tools": { "service": { "programs": { "python": { "enabled": false } } } } },
        });
        fs::write(
            sandbox.path("etc/mycroft/mycroft.conf"),
            without_python.to_string(),
        )
        .unwrap();
        sandbox
    }

    /// A sandbox whose `mycroft.conf` names the bus at `port`.
    pub(crate) fn with_bus(port: u16) -> Self {
        let sandbox = Self::new();
        let conf = serde_json::json!({ "websocket": { "host": "127.0.0.1", "port": port } });
        fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
        sandbox
    }

    pub(crate) fn path(&self, sub: &str) -> PathBuf {
        self.dir.path().join(sub)
    }

    /// A command whose home is this sandbox, and whose environment has only `PATH` of the test's own.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .stdin(Stdio::null())
            .current_dir(self.dir.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("LANG", "C.UTF-8")
            .env("RUST_BACKTRACE", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.dir.path());
        for (name, sub) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "run"),
            ("XDG_CONFIG_DIRS", "etc"),
            ("XDG_DATA_DIRS", "etc"),
        ] {
            command.env(name, self.path(sub));
        }
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }
}

/// A running child: killed and reaped when dropped.
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with stdout and stderr in a file of `sandbox`.
    pub(crate) fn start(name: &str, sandbox: &Sandbox, mut command: Command) -> Self {
        let log = sandbox.path(&format!("{name}.log"));
        let file = File::create(&log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn();
        let child = child.unwrap_or_else(|e| panic!("start {name}: {e}: {command:?}"));
        Self {
            name: name.into(),
            child,
            log,
        }
    }

    /// The end of its output, for a failure message.
    pub(crate) fn log(&self) -> String {
        let text = read(&self.log);
        let lines: Vec<_> = text.lines().collect();
        format!(
            "--- log of {}\n{}",
            self.name,
            lines[lines.len().saturating_sub(60)..].join("\n")
        )
    }

    /// All its output so far.
    pub(crate) fn output(&self) -> String {
        read(&self.log)
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for `found`, and fails with the log when the process ends first or the deadline passes.
    pub(crate) fn until<T>(&mut self, what: &str, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(value) = found(self) {
                return value;
            }
            let ended = self.ended();
            assert!(
                ended.is_none(),
                "{} ended ({ended:?}) before {what}\n{}",
                self.name,
                self.log()
            );
            assert!(
                Instant::now() < end,
                "{}: no {what} within {DEADLINE:?}\n{}",
                self.name,
                self.log()
            );
            // No portable way waits for a port that opens or a file that grows, so they are polled.
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Waits for its end and returns its output; any status except success fails the test.
    pub(crate) fn finish(mut self) -> String {
        let end = Instant::now() + 3 * DEADLINE;
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            assert!(Instant::now() < end, "{} did not end\n{}", self.name, self.log());
            std::thread::park_timeout(Duration::from_millis(10));
        };
        assert!(
            status.success(),
            "{} ended with {status}\n{}",
            self.name,
            self.log()
        );
        self.output()
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, however it ends.
    pub(crate) fn end_within(&mut self, limit: Duration) -> ExitStatus {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < end,
                "{} did not end within {limit:?}\n{}",
                self.name,
                self.log()
            );
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Kills it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        // Both fail only when it has ended and was reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that is free right now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
