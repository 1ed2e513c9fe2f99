//! Latency of an emergency brake from the bus to the vehicle.
//!
//! Uses the service with its embedded bus and the drone toolbox, the real mavsdk_server and px4-sim. Two processes read
//! one clock (CLOCK_REALTIME): this one when it sends `emergency_brake` while setpoints control the vehicle, the
//! simulator when it receives the datagram with zero velocity. The simulator's own delay is measured on its control
//! channel; its median is subtracted from each figure.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::measure::{median, quantile};
use super::peers::{Question, plugins, service_command};
use super::process::{Process, Sandbox, free_port};
use super::python::mavsdk_server;
use super::table::Table;
use super::wire::Wire;

/// Greatest number of brakes and greatest duration; the 99th percentile needs at least a hundred.
const BRAKES: usize = 150;
const TIME: Duration = Duration::from_secs(240);

/// Time after which an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Latencies in milliseconds, one per brake.
pub(crate) struct Brakes {
    /// Until the simulator receives the zero velocity, including all delays.
    pub(crate) raw: Vec<f64>,
    /// The simulator's own delay, the median.
    pub(crate) simulator: f64,
}

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: emergency brakes of a drone");
    let Some(brakes) = measure()? else {
        table.heading(
            "emergency brake of a drone: SKIPPED, there is no mavsdk_server (scripts/venv.sh gets it)",
        );
        return Ok(());
    };
    table.heading(format!(
        "emergency brake of a drone in flight ({} of them), p50 / p99 / worst",
        brakes.raw.len()
    ));
    let text = |less: f64| {
        let at = |share| quantile(brakes.raw.clone(), share) - less;
        format!("{:.2} / {:.2} / {:.2} ms", at(0.5), at(0.99), at(1.0))
    };
    table.note(
        "  client sends -> zero velocity in the simulator, everything included",
        text(0.0),
    );
    table.note(
        "    of it the simulator's own time to notice something (median)",
        format!("{:.2} ms", brakes.simulator),
    );
    let p99 = quantile(brakes.raw.clone(), 0.99) - brakes.simulator;
    table.goal(
        "  the same without the simulator's own",
        text(brakes.simulator),
        "p99 < 20 ms",
        p99 < 20.0,
    );
    Ok(())
}

/// `None` without a mavsdk_server.
fn measure() -> io::Result<Option<Brakes>> {
    let Some(server) = mavsdk_server() else {
        return Ok(None);
    };
    let mut stage = Stage::set(&server)?;
    stage.fly()?;
    let (mut raw, mut simulator) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while raw.len() < BRAKES && start.elapsed() < TIME {
        raw.push(stage.brake()?);
        simulator.push(stage.simulator.notices()?);
    }
    let simulator = median(simulator);
    Ok(Some(Brakes { raw, simulator }))
}

fn unix() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// The service with only the drone toolbox, a client, and the simulator's control channel.
struct Stage {
    wire: Wire,
    simulator: Simulator,
    process: Process,
    _sandbox: Sandbox,
}

impl Stage {
    fn set(server: &Path) -> io::Result<Self> {
        let sandbox = Sandbox::new();
        let (port, control) = (free_port(), free_port());
        let built = plugins("bench-toolboxes");
        let own = sandbox.path("plugins");
        std::fs::create_dir(&own)?;
        std::fs::copy(built.join("drone.so"), own.join("drone.so"))?;
        let drone = json!({
            "mavsdk_server": server,
            "px4_sim": built.join("px4-sim"),
            "flight_limits": {"max_replans": 100_000},
            // Slow streams would delay each brake until the mode is reported; they do not affect its latency.
            "simulator": {"quirks": "all,-slow_streams", "args": ["--control", format!("127.0.0.1:{control}")]},
        });
        let conf = json!({
            "websocket": {"host": "127.0.0.1", "port": port},
            "PHAL": {"ovos-phal-plugin-tools": {"drone": drone}},
        });
        std::fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string())?;
        let mut command = service_command(&sandbox);
        command.args(["--embedded-bus", "auto", "--plugins"]).arg(own);
        let mut process = Process::start("ovos-tools", &sandbox, command);
        // The bus starts before the service listens on it.
        process.until("readiness", |process| {
            process.output().contains("ready after").then_some(())
        });
        let wire = Wire::join(port)?;
        let mut stage = Self {
            wire,
            simulator: Simulator(control),
            process,
            _sandbox: sandbox,
        };
        stage.until("a healthy vehicle", |stage| {
            let health = stage.run("vehicle_health", &json!({}))?;
            Ok(health["armable"] == true)
        })?;
        Ok(stage)
    }

    fn fly(&mut self) -> io::Result<()> {
        self.simulator.ask(&json!({"cmd": "set_drain", "pct_per_s": 0}))?;
        self.simulator.ask(&json!({"cmd": "clear_world"}))?;
        self.ok("arm", &json!({}))?;
        self.ok("takeoff", &json!({"alt_m": 5}))
    }

    /// Brakes a vehicle that follows setpoints; returns the milliseconds until the zero velocity arrives.
    fn brake(&mut self) -> io::Result<f64> {
        self.ok("replan", &json!({"reason": "bench"}))?;
        // Back and forth, so that it stays near its place.
        let moving = Question::invoke(
            "goto_local",
            &json!({"north_m": 0, "east_m": self.other_side()?, "down_m": -5}),
        );
        self.wire.send(moving.request.as_bytes())?;
        let simulator = Simulator(self.simulator.0);
        let start = Instant::now();
        let since = loop {
            let truth = simulator.ask(&json!({"cmd": "truth"}))?["truth"].clone();
            let speed = truth["velocity"][1].as_f64().unwrap_or_default().abs();
            if truth["mode"] == "offboard" && speed > 0.3 {
                break truth["next_seq"].clone();
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("it does not move: {truth}")));
            }
            std::thread::park_timeout(Duration::from_millis(5));
        };
        let stop = Question::invoke("emergency_brake", &json!({}));
        let sent = unix();
        self.wire.send(stop.request.as_bytes())?;
        let (mut moved, mut stopped) = (false, false);
        while !(moved && stopped) {
            let answer: Value = self
                .wire
                .until(&stop.answer, |text| serde_json::from_slice(text))??;
            moved |= answer["data"]["name"] == "goto_local";
            stopped |= answer["data"]["name"] == "emergency_brake";
        }
        let answer =
            simulator.ask(&json!({"cmd": "log", "since": since, "kind": "setpoint", "limit": 1000}))?;
        let entries = answer["log"].as_array().cloned().unwrap_or_default();
        let zero = entries.iter().find(|entry| entry["velocity"].is_array());
        let arrived = zero.and_then(|entry| entry["unix"].as_f64());
        let arrived = arrived.ok_or_else(|| io::Error::other("no zero velocity reached the vehicle"))?;
        self.resume()?;
        self.until("hold", |stage| {
            Ok(stage.simulator.ask(&json!({"cmd": "truth"}))?["truth"]["mode"] == "hold")
        })?;
        Ok((arrived - sent) * 1e3)
    }

    fn other_side(&self) -> io::Result<f64> {
        let truth = self.simulator.ask(&json!({"cmd": "truth"}))?;
        let east = truth["truth"]["position"][1].as_f64().unwrap_or_default();
        Ok(if east > 0.0 { east - 10.0 } else { east + 10.0 })
    }

    fn resume(&mut self) -> io::Result<()> {
        let status = self.ask(&Question::new("ovos.tools.status", &json!({})))?;
        let drone = status["data"]["toolboxes"]
            .as_array()
            .and_then(|toolboxes| toolboxes.iter().find(|toolbox| toolbox["toolbox_id"] == "drone"))
            .cloned()
            .unwrap_or_default();
        let data = json!({"toolbox_id": "drone", "stop_id": drone["stop_id"]});
        let resumed = self.ask(&Question::new("ovos.tools.resume", &data))?;
        if resumed["data"]["toolboxes"][0]["ok"] == true {
            Ok(())
        } else {
            Err(io::Error::other(format!("not resumed: {resumed}")))
        }
    }

    fn ask(&mut self, question: &Question) -> io::Result<Value> {
        self.wire.send(question.request.as_bytes())?;
        Ok(self
            .wire
            .until(&question.answer, |text| serde_json::from_slice(text))??)
    }

    /// Runs a tool and returns its result; null while the service is not ready.
    fn run(&mut self, tool: &str, args: &Value) -> io::Result<Value> {
        let mut answer = self.ask(&Question::invoke(tool, args))?;
        Ok(answer["data"]["result"].take())
    }

    fn ok(&mut self, tool: &str, args: &Value) -> io::Result<()> {
        let result = self.run(tool, args)?;
        if result["ok"] == true {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "{tool}: {result}\n{}",
                self.process.log()
            )))
        }
    }

    fn until(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> io::Result<bool>) -> io::Result<()> {
        let start = Instant::now();
        while !look(self)? {
            if start.elapsed() > PATIENCE {
                let text = format!("not within {PATIENCE:?}: {what}\n{}", self.process.log());
                return Err(io::Error::other(text));
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// A simulator, by the port of its control channel.
struct Simulator(u16);

impl Simulator {
    fn ask(&self, request: &Value) -> io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.0))?;
        self.through(&mut stream, request)
    }

    fn through(&self, stream: &mut TcpStream, request: &Value) -> io::Result<Value> {
        stream.set_nodelay(true)?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Milliseconds from a request until the simulator reads the clock for it.
    fn notices(&self) -> io::Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.0))?;
        // The first request waits until the connection is accepted.
        self.through(&mut stream, &json!({"cmd": "truth"}))?;
        let sent = unix();
        let truth = self.through(&mut stream, &json!({"cmd": "truth"}))?;
        let noticed = truth["truth"]["unix"].as_f64().unwrap_or(f64::NAN);
        Ok((noticed - sent) * 1e3)
    }
}
