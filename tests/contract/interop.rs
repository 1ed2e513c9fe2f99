//! Python's published clients work unchanged, over the published bus and over ours, and where our answers differ
//! from the published service's every difference is listed.
//!
//! Each test starts processes and runs one script of tests/python, which asserts and prints.

use crate::support::process::{Process, Sandbox};
use crate::support::python::{python, script};
use crate::support::service::{Bus, BusKind, Service, subject_is_reference};

/// tests/python/readme_example.py is the example of ovos-PHAL-plugin-tools' README, letter by letter.
fn readme_examples(kind: BusKind) {
    if python().is_none() {
        return;
    }
    let bus = Bus::start(kind);
    let service = Service::start(&bus);
    let sandbox = Sandbox::with_bus(bus.port());
    let text = script("readme_example.py", &[], &sandbox).finish();
    for expected in [
        "\nResult: {'result': 42}\n",
        "{'name': 'add', 'description': '",
        "'toolbox_id': 'testbed'}",
    ] {
        assert!(
            text.contains(expected),
            "no {expected:?} in\n{text}\n{}",
            service.log()
        );
    }
    for tool in ["add", "echo", "ping", "slow", "fail", "bad_output"] {
        let lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("{tool} — ")))
            .count();
        assert_eq!(lines, 1, "`{tool}` in the list\n{text}");
    }
    assert_eq!(
        text.lines().filter(|line| line.starts_with("dup — ")).count(),
        2,
        "{text}"
    );
}

#[test]
fn readme_examples_over_the_python_bus() {
    readme_examples(BusKind::Python);
}

#[test]
fn readme_examples_over_the_embedded_bus() {
    readme_examples(BusKind::Embedded);
}

/// The published bus client connects, emits, asks, and comes back after a restart of the bus.
fn bus_client(kind: BusKind) {
    if python().is_none() {
        return;
    }
    let mut bus = Bus::start(kind);
    let sandbox = Sandbox::with_bus(bus.port());
    let mut client = script("bus_client.py", &[], &sandbox);
    client.until("a word about the first bus", |client| {
        client.output().contains("RESTART THE BUS").then_some(())
    });
    bus.restart();
    let text = client.finish();
    assert!(text.contains("the bus client noticed nothing"), "{text}");
}

/// Checks bus_client.py itself: a test that the published bus does not pass is wrong.
#[test]
fn the_bus_client_on_the_python_bus() {
    bus_client(BusKind::Python);
}

#[test]
fn the_bus_client_on_the_embedded_bus() {
    bus_client(BusKind::Embedded);
}

fn status_topics(kind: BusKind) {
    if python().is_none() {
        return;
    }
    let bus = Bus::start(kind);
    let service = Service::start(&bus);
    script("status_topics.py", &[&bus.url(), service.name], &Sandbox::new()).finish();
}

#[test]
fn status_topics_are_answered() {
    status_topics(BusKind::Python);
    status_topics(BusKind::Embedded);
}

/// The command line reads the answers of the published service, which have fewer keys than ours.
#[test]
fn the_command_line_works_with_the_reference() {
    if python().is_none() {
        return;
    }
    let bus = Bus::start(BusKind::Python);
    let service = Service::reference(&bus);
    let sandbox = Sandbox::with_bus(bus.port());
    for (arguments, expected) in [
        (&["list"][..], "testbed_dup (1 tool)\n NAME  EFFECT  ARGUMENTS"),
        (&["list", "--toolbox", "testbed"], "testbed ("),
        (&["get", "add"], "add (testbed)\n"),
        (&["invoke", "add", "a=1", "b=2"], "{\n  \"result\": 3\n}\n"),
        (
            &["invoke", "add", "a=1", "b=2", "--progress", "--detail", "--json"],
            "\"result\":{\"result\":3}",
        ),
        (&["reload"], "2 toolboxes with 8 tools: testbed, testbed_dup\n"),
    ] {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        command.args(arguments).args(["--bus", &bus.url()]);
        let text = Process::start("command-line", &sandbox, command).finish();
        assert!(
            text.contains(expected),
            "{arguments:?}: no {expected:?} in\n{text}\n{}",
            service.log()
        );
    }
}

/// The plugin for ovos-PHAL says which services answer, and what to do about it.
#[test]
fn phal_logs_which_services_answer() {
    if python().is_none() || subject_is_reference() {
        return;
    }
    let (none, two) = (
        "no ovos-tools service answers on the bus",
        "2 ovos-tools services answer",
    );
    let (one, other) = (
        "the ovos-tools service answers",
        "ovos-PHAL-plugin-tools answers ovos.tools.*",
    );
    for (ours, others, expected) in [
        (0, 0, &[none, "ovos-tools install-service"][..]),
        (1, 0, &[one]),
        (2, 0, &[two, "pgrep"]),
        (0, 1, &[none, other, "\"enabled\": false"]),
        (1, 1, &[one, other, "clients take the answer that comes first"]),
    ] {
        let bus = Bus::start(BusKind::Embedded);
        let mut services: Vec<Service> = (0..ours).map(|_| Service::start(&bus)).collect();
        services.extend((0..others).map(|_| Service::reference(&bus)));
        let text = script("phal_looks.py", &[], &Sandbox::with_bus(bus.port())).finish();
        for part in [none, one, two, other].iter().chain(expected) {
            let wanted = expected.contains(part);
            assert_eq!(
                text.contains(part),
                wanted,
                "{ours} and {others}: {part:?} in\n{text}"
            );
        }
    }
}

/// One list of requests goes to the published service and to us, each on a published bus of its own.
///
/// tests/python/allowed_differences.py has every allowed difference. The answers of the reference are stored in
/// tests/data, so that they do not change by themselves; `UPDATE_REFERENCE=1` stores them again.
#[test]
fn every_difference_to_the_reference_is_listed() {
    if python().is_none() {
        return;
    }
    let (their_bus, our_bus) = (Bus::start(BusKind::Python), Bus::start(BusKind::Python));
    let theirs = Service::reference(&their_bus);
    let ours = Service::start(&our_bus);
    let (their_url, our_url) = (their_bus.url(), our_bus.url());
    let saved = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reference_answers.json");
    let mut args = vec!["--reference", &their_url, "--ours", &our_url, "--answers", saved];
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        args.push("--update");
    }
    if subject_is_reference() {
        args.push("--same");
    }
    let text = script("differential.py", &args, &Sandbox::new()).finish();
    println!("{text}");
    drop((theirs, ours));
}
