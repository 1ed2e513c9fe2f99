//! The vendors' Python clients, in a venv of their own.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The Python interpreter with the vendors' packages, or `None` where this machine was told to do without.
pub(crate) fn python() -> Option<PathBuf> {
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        skip::skip(
            "python",
            "OVOS_TOOLS_SKIP_PYTHON is set, so nothing is compared with the vendors' packages",
        );
        return None;
    }
    static FILLED: OnceLock<PathBuf> = OnceLock::new();
    let python = FILLED.get_or_init(|| {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .find(|dir| dir.join("scripts/venv.sh").exists());
        let checkout = checkout.expect("the tests run in a checkout");
        // Also where the venv is there: the packages may have changed since.
        let out = Command::new(checkout.join("scripts/venv.sh")).output().unwrap();
        let python = checkout.join(".venv-robots/bin/python");
        assert!(
            out.status.success() && python.exists(),
            "scripts/venv.sh: {}\nset OVOS_TOOLS_SKIP_PYTHON=1 to do without",
            String::from_utf8_lossy(&out.stderr)
        );
        python
    });
    Some(python.clone())
}

/// How often what is waited for is looked at when the script says nothing.
const LOOK: Duration = Duration::from_millis(10);

/// A running script and every line it has printed.
pub(crate) struct Peer {
    child: Child,
    stdin: Mutex<Option<ChildStdin>>,
    printed: Arc<(Mutex<Vec<String>>, Condvar)>,
    name: String,
}

impl Peer {
    /// Starts a script of `toolboxes/robot/tests/python`.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Option<Self> {
        let python = python()?;
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .find(|dir| dir.join("scripts/venv.sh").exists());
        let script = checkout.unwrap().join("toolboxes/robot/tests/python").join(name);
        let mut command = Command::new(python);
        command
            .arg("-u")
            .arg(script)
            .args(arguments)
            .env("CYCLONEDDS_URI", LOOPBACK);
        Some(Self::run(name, command))
    }

    /// Runs a command that says what happens line by line.
    pub(crate) fn run(name: &str, mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let pipes: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for pipe in pipes {
            let printed = Arc::clone(&printed);
            // Ends with the pipe, which ends with the child.
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    printed.0.lock().unwrap().push(line);
                    printed.1.notify_all();
                }
            });
        }
        Self {
            stdin: Mutex::new(child.stdin.take()),
            child,
            printed,
            name: name.to_owned(),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.printed.0.lock().unwrap().clone()
    }

    /// Waits until the lines so far satisfy `seen`, a minute at most.
    pub(crate) fn wait<R>(&self, what: &str, mut seen: impl FnMut(&[String]) -> Option<R>) -> R {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            // A copy: what `seen` asks may be this very script.
            let lines = self.lines();
            if let Some(found) = seen(&lines) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{}: no {what}:\n{}", self.name, lines.join("\n"));
            let printed = self.printed.0.lock().unwrap();
            if printed.len() == lines.len() {
                // What `seen` asks may also be another party, which does not wake us.
                drop(self.printed.1.wait_timeout(printed, left.min(LOOK)).unwrap());
            }
        }
    }

    /// Waits for a line that contains `text`.
    pub(crate) fn until(&self, text: &str) -> String {
        self.wait(text, |lines| {
            lines.iter().find(|line| line.contains(text)).cloned()
        })
    }

    /// Says a line to the script.
    pub(crate) fn say(&self, line: &str) {
        writeln!(self.stdin.lock().unwrap().as_mut().unwrap(), "{line}").unwrap();
    }

    /// Freezes it, or lets it go on.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end, which must be a good one, and returns what it printed.
    pub(crate) fn finish(mut self) -> String {
        drop(self.stdin.lock().unwrap().take());
        let status = self.child.wait().unwrap();
        // Its last words may still be in the pipe.
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end && !status.success() {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        let output = self.lines().join("\n");
        assert!(status.success(), "{}: {status}\n{output}", self.name);
        output
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cyclone DDS on the loopback interface, without multicast.
pub(crate) const LOOPBACK: &str = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\" multicast=\"false\"/>\
    </Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
    <MaxAutoParticipantIndex>20</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>\
    </Domain></CycloneDDS>";

/// A domain that no other test is in, of this program or of another one at the same time: each is taken with a
/// port that is held until the program ends.
pub(crate) fn domain() -> u16 {
    static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let first = fastrand::u16(0..220);
    (0..220)
        .map(|next| 10 + (first + next) % 220)
        .find(|domain| {
            let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 10_000 + domain));
            port.map(|port| TAKEN.lock().unwrap().push(port)).is_ok()
        })
        .expect("a domain that is free")
}
