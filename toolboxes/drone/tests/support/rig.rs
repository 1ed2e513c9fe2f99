//! The toolbox with the real mavsdk_server and px4-sim, and the simulator's control channel.

#![allow(
    dead_code,
    clippy::print_stderr,
    reason = "each test uses a part; a failure prints"
)]

use std::hash::{Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use drone::Drone;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

/// Simulated seconds per real second.
pub(crate) const SPEED: f64 = 4.0;

/// A toolbox connected to a simulator.
pub(crate) struct Rig {
    pub(crate) harness: Harness,
    pub(crate) control: SocketAddr,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The server of the published package, as `scripts/venv.sh` installs it; without it the test is skipped.
pub(crate) fn mavsdk_server() -> Option<PathBuf> {
    let pythons = std::fs::read_dir(root().join(".venv-mavsdk/lib"));
    let server = pythons.into_iter().flatten().find_map(|python| {
        let path = python
            .ok()?
            .path()
            .join("site-packages/mavsdk_grpc/bin/mavsdk_server");
        path.exists().then_some(path)
    });
    if server.is_none() {
        skip::skip("mavsdk", "no mavsdk_server (scripts/venv.sh gets it)");
    }
    server
}

/// The simulator; builds it if necessary.
pub(crate) fn px4_sim() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let test = std::env::current_exe().expect("a path");
            let target = test
                .ancestors()
                .nth(2)
                .expect("target/debug/deps/test")
                .to_path_buf();
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.current_dir(root());
            // A bench runs with optimisation. A test's program is a part of what `cargo test` builds anyway.
            if target.ends_with("release") {
                build.args([
                    "build",
                    "--quiet",
                    "--locked",
                    "--release",
                    "--package",
                    "px4-sim",
                ]);
            } else {
                build.args(["test", "--quiet", "--locked", "--no-run", "--test", "vehicle"]);
            }
            let built = build.status();
            assert!(built.expect("cargo runs").success(), "px4-sim does not build");
            target.join("px4-sim")
        })
        .clone()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port()
}

/// Merges `more` into `base`, key by key.
pub(crate) fn over(mut base: Value, more: Value) -> Value {
    match (base.as_object_mut(), more) {
        (Some(object), Value::Object(more)) => {
            for (key, value) in more {
                let below = object.remove(&key).unwrap_or(Value::Null);
                object.insert(key, over(below, value));
            }
            base
        }
        (_, more) => more,
    }
}

/// The simulator's random seed: `DRONE_SEED`, or else constant per test. A failure prints it.
fn seed() -> u64 {
    let given = std::env::var("DRONE_SEED")
        .ok()
        .map(|text| text.parse().expect("DRONE_SEED is a number"));
    let seed = given.unwrap_or_else(|| {
        let mut hasher = std::hash::DefaultHasher::new();
        std::thread::current().name().hash(&mut hasher);
        hasher.finish() % 1_000_000
    });
    eprintln!("DRONE_SEED={seed} wanders the same way");
    seed
}

impl Rig {
    /// The configuration of a simulated vehicle, and its control channel.
    pub(crate) fn config(more: Value) -> Option<(Value, SocketAddr)> {
        let server = mavsdk_server()?;
        let control = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let config = json!({
            "mavsdk_server": server,
            "px4_sim": px4_sim(),
            "simulator": {"speed": SPEED, "args": ["--control", control.to_string(), "--seed", seed().to_string()]},
        });
        Some((over(config, more), control))
    }

    /// Opens the toolbox and waits for telemetry; `None` without a mavsdk_server.
    pub(crate) fn open(more: Value) -> Option<Self> {
        let (config, control) = Self::config(more)?;
        let harness = Harness::open::<Drone>(config)
            .expect("opens")
            .with_deadline(Duration::from_secs(120))
            .as_operator();
        let rig = Self { harness, control };
        rig.until("a healthy vehicle", |rig| {
            rig.call("vehicle_health", json!({}))["armable"] == true
        });
        Some(rig)
    }

    /// Like `open`, and takes off.
    pub(crate) fn airborne(alt_m: f64, more: Value) -> Option<Self> {
        let rig = Self::open(more)?;
        rig.take_off(alt_m);
        Some(rig)
    }

    pub(crate) fn take_off(&self, alt_m: f64) {
        self.ok("arm", json!({}));
        self.ok("takeoff", json!({"alt_m": alt_m}));
    }

    pub(crate) fn call(&self, tool: &str, args: Value) -> Value {
        self.harness
            .call(tool, args)
            .unwrap_or_else(|failure| panic!("{tool}: {failure}"))
    }

    pub(crate) fn ok(&self, tool: &str, args: Value) -> Value {
        let answer = self.call(tool, args.clone());
        assert_eq!(answer["ok"], true, "{tool} {args}: {answer}\n{}", self.story());
        assert_eq!(answer["simulated"], true, "{tool}");
        answer
    }

    /// Calls a tool that has to refuse with this code.
    pub(crate) fn refused(&self, tool: &str, args: Value, code: &str) -> Value {
        let answer = self.call(tool, args.clone());
        assert_eq!(
            (&answer["ok"], &answer["code"]),
            (&json!(false), &json!(code)),
            "{tool} {args}: {answer}"
        );
        answer
    }

    /// Waits until `look` returns true, at most 30 s.
    pub(crate) fn until(&self, what: &str, mut look: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !look(self) {
            assert!(
                Instant::now() < end,
                "not within 30 s: {what}\n{:#}",
                self.story()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a request to the simulator's control channel.
    pub(crate) fn sim(&self, request: Value) -> Value {
        ask(self.control, request)
    }

    /// The vehicle's true position: north, east, down.
    pub(crate) fn place(&self) -> [f64; 3] {
        serde_json::from_value(self.truth()["position"].clone()).expect("a position")
    }

    /// The simulator's true state.
    pub(crate) fn truth(&self) -> Value {
        self.sim(json!({"cmd": "truth"}))["truth"].clone()
    }

    /// For failure messages: the simulator's events without setpoints, and the toolbox's last log lines.
    pub(crate) fn story(&self) -> String {
        let log = self.sim(json!({"cmd": "log", "since": 0, "limit": 5000}));
        let entries = log["log"].as_array().cloned().unwrap_or_default();
        let entries = entries
            .iter()
            .filter(|entry| !["setpoint", "param"].contains(&entry["kind"].as_str().unwrap_or_default()));
        let lines: Vec<String> = entries.map(ToString::to_string).collect();
        let story = lines[lines.len().saturating_sub(40)..].join("\n");
        let logs = self.harness.logs();
        format!("{story}\n{:#?}", &logs[logs.len().saturating_sub(12)..])
    }

    /// The port on which the mavsdk_server of this rig listens.
    pub(crate) fn server_port(&self) -> String {
        let url = format!("udpin://127.0.0.1:{}", self.udp_port());
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let args: Vec<String> = line
                .split(|byte| *byte == 0)
                .map(|arg| String::from_utf8_lossy(arg).into_owned())
                .collect();
            let ours = args
                .first()
                .is_some_and(|program| program.ends_with("mavsdk_server"));
            if ours && args.contains(&url) {
                let port = args.iter().position(|arg| arg == "-p").expect("-p");
                return args[port + 1].clone();
            }
        }
        panic!("no mavsdk_server at {url}");
    }

    /// The UDP port between the simulator and its mavsdk_server.
    pub(crate) fn udp_port(&self) -> String {
        let control = self.control.to_string();
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let args: Vec<String> = line
                .split(|byte| *byte == 0)
                .map(|arg| String::from_utf8_lossy(arg).into_owned())
                .collect();
            // The shell that watches the simulator has the same arguments after its own.
            if args.first().is_some_and(|program| program.ends_with("px4-sim")) && args.contains(&control) {
                let udp = args.iter().position(|arg| arg == "--udp").expect("--udp");
                return args[udp + 1].rsplit(':').next().expect("a port").to_string();
            }
        }
        panic!("no px4-sim with the control channel {control}");
    }
}

pub(crate) fn ask(control: SocketAddr, request: Value) -> Value {
    let mut stream = TcpStream::connect(control).expect("the control channel");
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a timeout");
    writeln!(stream, "{request}").expect("the control channel listens");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{request}: {line:?}: {error}"))
}
