//! What uses up the service's means keeps neither a stop nor a safe stop from the machine: a thousand calls under way, thousands
//! of idle clients.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::python::{hive_python, node, python, script};
use crate::support::scene::{Scene, assert_still, from_first, monotonic_ns, ready};
use crate::support::service::testbed_plugins;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit, setrlimit};
use serde_json::{Value, json};

const CALLS: usize = 1000;

/// The time limit of a request: far less than the calls, which take 300 s, and enough for a slow and busy machine.
const PROMPT: Duration = Duration::from_secs(10);

#[test]
fn a_thousand_slow_calls_delay_nothing() {
    let scene = Scene::new(&json!({}));
    let (_bus, service, mut client) = scene.open();
    let calls: Vec<String> = (0..CALLS).map(|n| format!("slow-{n}")).collect();
    for call_id in &calls {
        client.call(call_id, "slow", &json!({ "seconds": 300 }));
    }
    client.until_phases(&[("running", CALLS)]);

    // Another client, so that no answer waits behind messages that this one has not read.
    let mut other = Client::connect(scene.port);
    let rows = [
        ("ovos.tools.list", json!({})),
        ("ovos.tools.get", json!({ "name": "add" })),
        ("ovos.tools.invoke", json!({ "name": "ping" })),
        ("ovos.tools.plan", json!({ "name": "assemble" })),
        ("ovos.tools.status", json!({})),
        ("mycroft.ovos_tools.is_alive", json!({})),
        ("ovos.tools.cancel", json!({ "call_id": calls[0] })),
    ];
    for (topic, data) in &rows {
        for _ in 0..5 {
            let start = Instant::now();
            let answer = other.ask_within(topic, data, PROMPT);
            assert!(
                answer.is_some(),
                "{topic}: no answer within {PROMPT:?}\n{}",
                service.log()
            );
            assert!(start.elapsed() < PROMPT, "{topic} took {:?}", start.elapsed());
        }
    }

    other.call(
        "motion",
        "assemble",
        &json!({ "step_ms": 5, "steps": 100_000, "timeout_ms": 300_000 }),
    );
    scene.until_moving("motion");
    let asked_at = monotonic_ns();
    let stopped = other
        .ask_within("ovos.tools.stop", &json!({}), PROMPT)
        .expect("a prompt answer to a stop");
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
    let motors = scene.motors();
    let stopped = from_first(&motors, &["emergency"]).expect("the emergency halt");
    assert_still(stopped);
    let took = Duration::from_nanos(stopped[0].at - asked_at);
    assert!(took < PROMPT, "the motors were stopped after {took:?}");

    client.until_answered(&calls);
    client.invoke("ping", &json!({}));
    for call_id in &calls[1..] {
        let answer = client.only_answer(call_id);
        assert!(
            answer["error"].as_str().unwrap().starts_with("EmergencyStop: "),
            "{answer}"
        );
    }
    let first = client.only_answer(&calls[0])["error"].as_str().unwrap();
    assert!(first.starts_with("CancelledError: "), "{first}");
}

/// Descriptors that the service is started with.
const FEW: u64 = 1024;

/// Clients that do nothing.
const IDLE: usize = 5000;

/// The service with its own bus and so many descriptors; `hard`: it cannot raise their number.
fn service_with_few_descriptors(scene: &Scene, hard: bool) -> Process {
    let limit = if hard { "-n" } else { "-Sn" };
    let mut command = scene.sandbox.command("sh");
    command
        .args(["-c", &format!("ulimit {limit} {FEW}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_ovos-tools"))
        .args(["serve", "--embedded-bus", "always", "--plugins"])
        .arg(testbed_plugins());
    Process::start("service", &scene.sandbox, command)
}

/// Connects, and goes as far as `stage` says: only TCP, part of the handshake, all of it, or a message that has no end.
fn idle_client(port: u16, stage: usize) -> Option<TcpStream> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!(
        "GET /core HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    // A socket that the bus has ended meanwhile cannot be written to, and is as good as an idle one.
    _ = match stage {
        0 => Ok(()),
        1 => socket.write_all(&head.as_bytes()[..40]),
        2 => socket.write_all(head.as_bytes()),
        _ => socket.write_all(head.as_bytes()).and_then(|()| {
            // The header of a text frame of 20 MiB, its mask, and the beginning of its payload.
            let mut frame = vec![0x81, 0xff];
            frame.extend_from_slice(&(20_u64 << 20).to_be_bytes());
            frame.resize(100_000, b'x');
            socket.write_all(&frame)
        }),
    };
    Some(socket)
}

/// The process of testbed.
fn pid_of_testbed(client: &mut Client) -> Pid {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap();
    let testbed = toolboxes
        .iter()
        .find(|toolbox| toolbox["toolbox_id"] == "testbed");
    let pid = testbed.and_then(|testbed| testbed["pid"].as_i64()).unwrap();
    Pid::from_raw(pid.try_into().unwrap()).unwrap()
}

/// The soft limit of descriptors of a process.
fn soft_limit(pid: Pid) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn thousands_of_idle_clients_leave_the_safety_net() {
    let own = getrlimit(Resource::Nofile);
    let needed = (IDLE + 200) as u64;
    assert!(
        own.maximum.is_none_or(|hard| hard >= needed),
        "this test opens {needed} sockets"
    );
    if own.current.is_some_and(|soft| soft < needed) {
        let current = Some(needed);
        setrlimit(Resource::Nofile, Rlimit { current, ..own }).unwrap();
    }
    for hard in [false, true] {
        let scene = Scene::new(&json!({}));
        let mut service = service_with_few_descriptors(&scene, hard);
        let mut client = Client::connect(scene.port);
        ready(&mut service, &mut client);
        let testbed = pid_of_testbed(&mut client);
        assert_eq!(
            soft_limit(testbed),
            FEW,
            "a toolbox keeps the limit that the service was given"
        );
        client.call(
            "motion",
            "assemble",
            &json!({ "step_ms": 5, "steps": 100_000, "timeout_ms": 300_000 }),
        );
        scene.until_moving("motion");
        let idle: Vec<TcpStream> = (0..IDLE).filter_map(|n| idle_client(scene.port, n % 4)).collect();
        assert_eq!(idle.len(), IDLE, "{}", service.log());

        // The client that was there before is still there; its toolbox dies.
        kill_process(testbed, Signal::KILL).unwrap();
        client.until_answered(&["motion".to_owned()]);
        scene.until_motors("safe stop", |motors| {
            motors.iter().any(|motor| motor.run == "safe_stop").then_some(())
        });
        let mut other = Client::connect(scene.port);
        let stopped = other
            .ask_within("ovos.tools.stop", &json!({}), PROMPT)
            .unwrap_or_else(|| panic!("a stop has no answer\n{}", service.log()));
        let toolboxes = stopped["toolboxes"].as_array().unwrap();
        assert!(
            toolboxes
                .iter()
                .any(|toolbox| toolbox["toolbox_id"] == "testbed" && toolbox["stop_id"].is_string()),
            "{stopped}"
        );
        assert!(
            toolboxes
                .iter()
                .all(|toolbox| !toolbox["error"].to_string().contains("StateError")),
            "the stop is on record: {stopped}"
        );
        drop(idle);
    }
}

/// Leaves a process no free descriptor: its limit is the lowest one that is free, so all that it gets is what it closes itself.
fn exhaust(process: Pid) {
    let open: BTreeSet<u64> = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()))
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let limit = Rlimit {
        current: (0..).find(|number| !open.contains(number)),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    prlimit(Some(process), Resource::Nofile, limit).unwrap();
}

/// Without the reserve of descriptors three of these fail: `safe_stop` starts a process, the record of a stop is a file, and the
/// control socket takes a connection.
#[test]
fn a_service_without_a_free_descriptor_stops_from_its_reserve() {
    let scene = Scene::new(&json!({}));
    let mut service = service_with_few_descriptors(&scene, false);
    let mut client = Client::connect(scene.port);
    ready(&mut service, &mut client);
    let pid = Pid::from_raw(service.pid().try_into().unwrap()).unwrap();
    let testbed = pid_of_testbed(&mut client);
    client.call(
        "motion",
        "assemble",
        &json!({ "step_ms": 5, "steps": 100_000, "timeout_ms": 300_000 }),
    );
    scene.until_moving("motion");
    // They fill the holes among the descriptors that the service opened at its start, the reserve with them.
    let _idle: Vec<TcpStream> = (0..100).filter_map(|_| idle_client(scene.port, 2)).collect();
    let status = client.ask_within("ovos.tools.status", &json!({}), PROMPT);
    assert!(status.is_some(), "{}", service.log());

    exhaust(pid);
    kill_process(testbed, Signal::KILL).unwrap();
    client.until_answered(&["motion".to_owned()]);
    scene.until_motors("safe stop", |motors| {
        motors.iter().any(|motor| motor.run == "safe_stop").then_some(())
    });

    exhaust(pid);
    let stopped = client
        .ask_within("ovos.tools.stop", &json!({}), PROMPT)
        .unwrap_or_else(|| panic!("a stop has no answer\n{}", service.log()));
    assert!(
        !stopped.to_string().contains("StateError"),
        "the stop is on record: {stopped}"
    );

    // The bus ends an idle client for the new one, and not the new one itself.
    exhaust(pid);
    let mut command = scene.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
    let output = command.arg("stop").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("testbed_dup"));
    assert!(
        line.is_some_and(|line| line.contains("stopped")),
        "{output:?}\n{}",
        service.log()
    );

    exhaust(pid);
    let mut control = UnixStream::connect(scene.sandbox.path("run/ovos-tools/control.sock")).unwrap();
    control.set_read_timeout(Some(PROMPT)).unwrap();
    control.write_all(b"{\"do\":\"stop\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(control).read_line(&mut answer).unwrap();
    assert!(answer.contains("stop_id"), "{answer}\n{}", service.log());
}

/// Programs say no Origin, or their own Host; a page in a browser says whose page it is.
#[test]
fn clients_of_every_kind_connect_and_no_web_page_does() {
    let (Some(_), Some(hive)) = (python(), hive_python()) else {
        return;
    };
    let scene = Scene::new(&json!({}));
    let (_bus, service, _client) = scene.open();
    let (url, host) = (scene.url(), format!("127.0.0.1:{}", scene.port));

    let mut node = node("bus_clients.mjs", &scene.sandbox).unwrap();
    node.arg(&host);
    let output = Process::start("node", &scene.sandbox, node).finish();
    assert!(
        output.contains("the clients of Node have their answers"),
        "{output}"
    );

    let output = script("bus_origins.py", &[&url, &host], &scene.sandbox).finish();
    assert!(
        output.contains("the clients of Python have their answers"),
        "{output}"
    );

    let mut satellite = scene.sandbox.command(hive);
    let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    satellite
        .arg("-u")
        .arg(scripts.join("hive_satellite.py"))
        .arg(&url);
    let output = Process::start("satellite", &scene.sandbox, satellite).finish();
    assert!(
        output.contains("the satellite has its answer"),
        "{output}\n{}",
        service.log()
    );
}

/// A list that is too large for the bus says how to ask for it, and the command line and every client of ours ask so.
#[test]
fn a_list_that_is_too_large_is_had_in_pages() {
    let scene = Scene::new(&json!({}));
    let section = json!({"ovos-phal-plugin-tools": {"testbed": {"grown": 400}}});
    let top = json!({ "websocket": {"max_msg_size": 0.0625}, "PHAL": section });
    scene.configure(&json!({}), &top);
    let (_bus, _service, mut client) = scene.open();
    for topic in [
        "ovos.tools.list",
        "ovos.tools.export",
        "ovos.persona.tools.discover",
    ] {
        let answer = client.ask(topic, &json!({}));
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("`\"limit\": 500`") && error.contains("max_msg_size"),
            "{topic}: {answer}"
        );
    }
    let reloaded = client.ask("ovos.tools.reload", &json!({}));
    assert!(
        reloaded["tools_left_out"].is_string() && reloaded["total_tools"].as_u64() > Some(400),
        "{reloaded}"
    );

    let list = |args: &[&str]| -> Value {
        let output = scene.ours("list", args).finish();
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    };
    let count = |list: &Value| list["tools"].as_array().unwrap().len();
    let all = list(&["list", "--json"]);
    assert!(count(&all) > 400, "{}", count(&all));
    assert!(all.get("next_cursor").is_none());
    assert!(count(&list(&["export", "mcp", "--json"])) > 400);
}
