//! `start: true`: the service starts a door, watches it, starts it again, and ends it with itself.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process, free_port};
use crate::support::scene::Scene;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

fn scene(port: u16) -> Scene {
    let address = format!("127.0.0.1:{port}");
    Scene::new(&json!({ "doors": { "mcp": { "start": true, "http_address": address } } }))
}

/// Waits until the status of the door fits, and returns it.
#[track_caller]
fn until_door(client: &mut Client, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + DEADLINE;
    loop {
        let status = client.ask("ovos.tools.status", &json!({}));
        let door = &status["doors"][0];
        if fits(door) {
            return door.clone();
        }
        assert!(Instant::now() < end, "no {what}: {door}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn pid_of(door: &Value) -> Option<Pid> {
    Pid::from_raw(i32::try_from(door["pid"].as_i64()?).ok()?)
}

/// Waits for the end of a process that is not a child of this one.
#[track_caller]
fn until_gone(pid: Pid) {
    let end = Instant::now() + DEADLINE;
    while test_kill_process(pid).is_ok() {
        assert!(Instant::now() < end, "process {pid:?} does not end");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[track_caller]
fn until_logged(service: &Process, text: &str) {
    let end = Instant::now() + DEADLINE;
    while !service.log().contains(text) {
        assert!(Instant::now() < end, "no {text:?} in {}", service.log());
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[track_caller]
fn until_listening(port: u16) {
    let end = Instant::now() + DEADLINE;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "the door does not listen");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn a_door_is_started_watched_and_ended_with_the_service() {
    let port = free_port();
    let scene = scene(port);
    let (_bus, mut service, mut client) = scene.open();
    let first = until_door(&mut client, "process", |door| pid_of(door).is_some());
    assert_eq!((&first["name"], &first["restarts"]), (&json!("mcp"), &json!(0)));
    until_listening(port);
    let first = pid_of(&first).unwrap();
    kill_process(first, Signal::KILL).unwrap();
    let second = until_door(&mut client, "restart", |door| {
        door["restarts"] == 1 && pid_of(door).is_some()
    });
    assert!(second["reason"].as_str().unwrap().contains('9'), "{second}");
    until_listening(port);
    let second = pid_of(&second).unwrap();
    service.signal(Signal::TERM);
    service.end_within(DEADLINE);
    assert!(test_kill_process(second).is_err(), "it outlives the service");

    // A service that is killed takes its doors with it, too.
    let mut service = scene.service(&mut client);
    let third = pid_of(&until_door(&mut client, "process", |door| pid_of(door).is_some())).unwrap();
    until_listening(port);
    service.kill();
    until_gone(third);
}

#[test]
fn a_door_that_is_enabled_is_started_with_the_service() {
    let address = format!("127.0.0.1:{}", free_port());
    let scene = Scene::new(&json!({ "doors": { "console": { "address": address } } }));
    let run = |word: &str| {
        let mut command = scene.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        let out = command.args([word, "console"]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(run("enable").contains("console: switched on"));
    let (_bus, service, mut client) = scene.open();
    let door = until_door(&mut client, "process", |door| pid_of(door).is_some());
    assert_eq!(door["name"], "console");
    // Its token is in no log.
    until_logged(&service, "the page is at");
    assert!(!service.log().contains("#token"), "{}", service.log());
}

#[test]
fn a_door_that_ends_again_and_again_is_given_up_and_costs_the_service_nothing() {
    // The port is taken, so the door cannot listen.
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let scene = scene(taken.local_addr().unwrap().port());
    let (_bus, service, mut client) = scene.open();
    let door = until_door(&mut client, "end", |door| {
        door["restarts"] == 4 && door["pid"].is_null()
    });
    assert!(door["reason"].as_str().unwrap().contains("exit status"), "{door}");
    let answer = client.invoke("ping", &json!({}));
    assert!(answer.get("error").is_none(), "{answer}");
    assert!(Path::new(&format!("/proc/{}", service.pid())).exists());
}
