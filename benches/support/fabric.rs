//! Toolboxes on other machines, one folder each: a call against the same toolbox here, a stop of two machines, and the tools of six.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::measure::{MANY, Rounds, TURN, latency, micros, one_by_one, per_second, quantile, throughput};
use super::memory::{processor_s, tree};
use super::peers::{Bus, BusKind, Peer, Question, built, plugins, service_command};
use super::process::{Sandbox, free_port};
use super::stop::monotonic_ns;
use super::table::Table;
use super::wire::Wire;

/// Machines with a toolbox, and the tools of all of them.
const HOSTS: usize = 6;
const TOOLS: usize = 1000;

/// The most stops of two machines; the 99th percentile needs at least a hundred. The longest time that they may take.
const STOPS: usize = 120;
const TIME: Duration = Duration::from_secs(45);

/// How long the resume of all machines may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// For how long processor time is counted, in which its ticks of 10 ms are nothing.
const COUNTED: Duration = Duration::from_secs(4);

/// How long something moves before it is stopped.
const MOVES: Duration = Duration::from_millis(50);

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    let Some(program) = built("ovos-tools-fabric") else {
        table.heading(
            "toolboxes of other machines: SKIPPED, the program is not built (cargo build --release --package ovos-tools-fabric)",
        );
        return Ok(());
    };
    eprintln!("bench: toolboxes of other machines");
    let fabric = Fabric::new(program)?;
    let here = Bus::start(BusKind::Embedded);
    let sandbox = Sandbox::new();
    let motors = sandbox.path("motors");
    let own = json!({ "motor_log": motors });
    let _own = here.service_with(&json!({ "service": {"operator_tools": true}, "testbed": own }));
    let local_motion = Moving {
        logs: vec![motors],
        toolboxes: vec!["testbed".to_owned()],
    };
    let there = Bus::start(BusKind::Embedded);
    let service = fabric.serve(&there)?;

    table.heading(
        "call `add` of a toolbox of another machine (same computer, TLS over loopback), against the same toolbox here",
    );
    let local = Question::invoke("add", &json!({"a": 20, "b": 22}));
    let remote = json!({"name": "add", "args": {"a": 20, "b": 22}, "toolbox_id": "robot1"});
    let remote = Question::new("ovos.tools.invoke", &remote);
    let one = Rounds::play(&mut [&mut || latency(&mut there.join(), &remote), &mut || {
        latency(&mut here.join(), &local)
    }])?;
    table.note("  time of one at a time (p50)", micros(&one, 0, 1));
    let extra = one.difference(0, 1);
    table.goal(
        "  its extra cost (p50)",
        format!("{extra:.0} µs"),
        "< 500 µs",
        extra < 500.0,
    );
    let many = Rounds::play(&mut [
        &mut || throughput(&mut there.join(), &remote, MANY, TURN),
        &mut || throughput(&mut here.join(), &local, MANY, TURN),
    ])?;
    let calls = many.figure(0);
    let figure = per_second(&many, 0, 1);
    table.goal(
        format!("  throughput, {MANY} under way"),
        figure,
        "> 10,000 /s",
        calls > 10_000.0,
    );

    // Both machines are one computer here, so what each would need of its own processors is counted.
    let (near, far) = (
        processes(&[&there.peer, &service]),
        processes(&[&fabric.hosts[0].0]),
    );
    let used = || (processor_s(&near), processor_s(&far));
    let before = used();
    let begun = Instant::now();
    let calls = throughput(&mut there.join(), &remote, MANY, COUNTED)? * begun.elapsed().as_secs_f64();
    let after = used();
    let of_a_call = |from: f64, to: f64| (to - from) * 1e6 / calls;
    table.note(
        "  processor time of a call then: bus, service and mount / host and its toolbox",
        format!(
            "{:.0} / {:.0} µs",
            of_a_call(before.0, after.0),
            of_a_call(before.1, after.1)
        ),
    );

    let wire = RefCell::new(there.join());
    let mut listed = 0;
    let lists = one_by_one(|| {
        listed = list(&mut wire.borrow_mut())?;
        Ok(())
    })?;
    let figure = format!("{:.1} ms", lists / 1e3);
    table.goal(
        format!("list {listed} tools of {HOSTS} machines (p50)"),
        figure,
        "< 20 ms",
        lists < 20_000.0,
    );

    let (mut halted, mut answered, mut here_halted) = (Vec::new(), Vec::new(), Vec::new());
    let away = Moving::of_machines(&fabric);
    let mut here_wire = here.join();
    let begun = Instant::now();
    while halted.len() < STOPS && begun.elapsed() < TIME {
        let (halt, answer) = stop(&mut wire.borrow_mut(), &away)?;
        halted.push(halt);
        answered.push(answer);
        here_halted.push(stop(&mut here_wire, &local_motion)?.0);
    }
    let figure = |times: &Vec<f64>| {
        let at = |share| quantile(times.clone(), share);
        (
            at(0.99),
            format!("{:.1} / {:.1} / {:.1} ms", at(0.5), at(0.99), at(1.0)),
        )
    };
    table.heading(format!(
        "emergency stop of two machines in motion ({} of them), p50 / p99 / worst",
        halted.len()
    ));
    let (p99, text) = figure(&halted);
    table.goal(
        "  client sends -> halt entered on both",
        text,
        "p99 < 10 ms",
        p99 < 10.0,
    );
    table.note("  client sends -> its answer", figure(&answered).1);
    // What processors that others use do to a stop without any network: the same service, toolbox and moments.
    table.note(
        "  one of a toolbox here, in turns: client sends -> halt entered",
        figure(&here_halted).1,
    );
    Ok(())
}

/// The machines with a toolbox.
struct Fabric {
    program: PathBuf,
    hosts: Vec<(Peer, u16)>,
}

impl Fabric {
    fn new(program: PathBuf) -> io::Result<Self> {
        let mut fabric = Self {
            program,
            hosts: Vec::new(),
        };
        for number in 1..=HOSTS {
            let sandbox = Sandbox::new();
            let name = format!("robot{number}");
            match fabric.hosts.first() {
                None => {
                    fabric.run(&sandbox, &["init", &name])?;
                    fabric.run(&sandbox, &["invite", "laptop", "--role", "operator"])?;
                }
                Some((first, _)) => {
                    fabric.run(&first.sandbox, &["invite", &name, "--role", "viewer"])?;
                    let file = first.sandbox.path(&format!("{name}.fabric"));
                    fabric.run(&sandbox, &["join", &file.to_string_lossy()])?;
                    fabric.run(&sandbox, &["allow", "laptop", "--role", "operator"])?;
                }
            }
            // Testbed has some twenty tools without.
            let testbed = json!({ "motor_log": sandbox.path("motors"), "grown": TOOLS / HOSTS - 20 });
            let conf = json!({ "PHAL": {"ovos-phal-plugin-tools": {"testbed": testbed}} });
            std::fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string())?;
            let port = free_port();
            let mut command = sandbox.command(&fabric.program);
            command.args(["host", "--listen", &format!("127.0.0.1:{port}"), "--plugins"]);
            command.arg(plugins("bench-plugins"));
            let mut host = Peer::start(&name, sandbox, command);
            host.process.until("a host that is ready", |host| {
                host.output().contains("is ready on").then_some(())
            });
            fabric.hosts.push((host, port));
        }
        Ok(fabric)
    }

    fn run(&self, sandbox: &Sandbox, arguments: &[&str]) -> io::Result<()> {
        let run = sandbox.command(&self.program).args(arguments).output()?;
        if run.status.success() {
            return Ok(());
        }
        Err(io::Error::other(
            String::from_utf8_lossy(&run.stderr).into_owned(),
        ))
    }

    /// Starts a service that mounts the toolbox of each machine.
    fn serve(&self, bus: &Bus) -> io::Result<Peer> {
        let program = |(number, (_, port)): (usize, &(Peer, u16))| {
            let (host, at) = (format!("robot{}", number + 1), format!("127.0.0.1:{port}"));
            let args = json!(["mount", host, "testbed", "--at", at, "--id", host]);
            (host, json!({ "command": self.program, "args": args }))
        };
        let programs: serde_json::Map<String, Value> = self.hosts.iter().enumerate().map(program).collect();
        let sandbox = bus.configured(&json!({ "service": {"programs": programs, "operator_tools": true} }));
        let invitation = self.hosts[0].0.sandbox.path("laptop.fabric");
        self.run(&sandbox, &["join", &invitation.to_string_lossy()])?;
        let none = sandbox.path("plugins");
        std::fs::create_dir(&none)?;
        let mut command = service_command(&sandbox);
        command.arg("--plugins").arg(none);
        let service = Peer::start("ovos-tools", sandbox, command);
        Ok(bus.answers(service, "ovos.tools.status", |status| {
            let toolboxes = status["toolboxes"].as_array().into_iter().flatten();
            let reached = toolboxes.filter(|one| one["state"] == "ready" && one["tools"] != 0);
            reached.count() == HOSTS
        }))
    }
}

/// These programs and all below them.
fn processes(programs: &[&Peer]) -> Vec<u32> {
    let own = programs.iter().map(|program| program.process.pid());
    own.flat_map(|pid| [vec![pid], tree(pid)].concat()).collect()
}

/// What moves until it is stopped.
struct Moving {
    toolboxes: Vec<String>,
    /// Their motor logs.
    logs: Vec<PathBuf>,
}

impl Moving {
    /// Two machines.
    fn of_machines(fabric: &Fabric) -> Self {
        let two = fabric.hosts.iter().take(2);
        Self {
            toolboxes: vec!["robot1".to_owned(), "robot2".to_owned()],
            logs: two.map(|(host, _)| host.sandbox.path("motors")).collect(),
        }
    }

    /// When the last of them halted first after this moment.
    fn halted(&self, since: u64) -> Option<u64> {
        let each: Option<Vec<u64>> = self.logs.iter().map(|log| halted(log, since)).collect();
        each?.into_iter().max()
    }
}

fn halted(log: &Path, since: u64) -> Option<u64> {
    let motors = std::fs::read_to_string(log).ok()?;
    let halts = motors.lines().rev().map_while(|line| {
        let (at, rest) = line.split_once(' ')?;
        let at: u64 = at.parse().ok()?;
        (at >= since).then(|| (at, rest.starts_with("emergency ")))
    });
    halts.filter(|(_, is_halt)| *is_halt).map(|(at, _)| at).min()
}

/// Lists all tools, page by page; returns how many.
fn list(wire: &mut Wire) -> io::Result<usize> {
    let (mut cursor, mut listed) = (Value::Null, 0);
    loop {
        let page = ask(
            wire,
            &Question::new("ovos.tools.list", &json!({ "cursor": cursor })),
        )?;
        listed += page["tools"].as_array().map_or(0, Vec::len);
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            return Ok(listed);
        }
    }
}

/// Moves machines and stops everything. Returns after how many milliseconds all had halted, and the answer was there.
fn stop(wire: &mut Wire, moving: &Moving) -> io::Result<(f64, f64)> {
    for host in &moving.toolboxes {
        let args = json!({"subsystems": ["left_arm"], "steps": 1000, "step_ms": 10});
        let call = json!({"name": "assemble", "args": args, "toolbox_id": host});
        wire.send(Question::new("ovos.tools.invoke", &call).request.as_bytes())?;
    }
    let begun = Instant::now();
    while begun.elapsed() < MOVES {
        while wire.take()?.is_some() {}
        thread::sleep(Duration::from_millis(5));
    }
    let (at, sent) = (monotonic_ns(), Instant::now());
    let stopped = ask(wire, &Question::new("ovos.tools.stop", &json!({})))?;
    let answered = sent.elapsed().as_secs_f64() * 1e3;
    // A machine that was not reached before the answer counts as one that never halts.
    let took = moving
        .halted(at)
        .map_or(f64::INFINITY, |last| (last - at) as f64 / 1e6);
    resume(wire, &stopped)?;
    Ok((took, answered))
}

/// Lifts the stop everywhere.
fn resume(wire: &mut Wire, stopped: &Value) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        let status = ask(wire, &Question::new("ovos.tools.status", &json!({})))?;
        let toolboxes = status["toolboxes"].as_array().into_iter().flatten();
        let mut latched = toolboxes.filter(|toolbox| toolbox["latched"] == true).peekable();
        if latched.peek().is_none() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other(format!(
                "not resumed: {status}; stopped: {stopped}"
            )));
        }
        for toolbox in latched {
            let asked = json!({"toolbox_id": toolbox["toolbox_id"], "stop_id": toolbox["stop_id"]});
            ask(wire, &Question::new("ovos.tools.resume", &asked))?;
        }
    }
}

fn ask(wire: &mut Wire, question: &Question) -> io::Result<Value> {
    wire.send(question.request.as_bytes())?;
    let frame = wire.until(&question.answer, |text| serde_json::from_slice::<Value>(text))?;
    Ok(frame.map_err(io::Error::other)?["data"].clone())
}
