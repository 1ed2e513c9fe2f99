//! Programs that misbehave cost themselves only: what their callers are told, what `status` shows, and that another program
//! is served all the while.

use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::scene::{Entry, Scene};
use crate::support::process::DEADLINE;

/// What becomes of a program that misbehaves.
enum Then {
    /// It is no toolbox; `status` shows why.
    Refused(&'static str),
    /// A call is answered with something that has this text; then the toolbox's key in `status` has that one.
    Answers(&'static str, &'static str, &'static str),
}
use Then::{Answers, Refused};

const POKED: &str = r#""poked":true"#;
const CRASHED: &str = "its process ended with exit code 3";

/// A misbehaviour, its script with its arguments, and what becomes of it.
const ROWS: &[(&str, &str, &[&str], Then)] = &[
    ("silent", "silent", &[], Refused("it sent no hello within 10 s")),
    (
        "slow_hello",
        "slow_hello",
        &[],
        Refused(
            "it sent no hello within 10 s; if it needs longer to start and to import, raise service.probe_ms",
        ),
    ),
    (
        "half_frame",
        "half_frame",
        &[],
        Refused("it sent no hello within 10 s"),
    ),
    (
        "long_hello",
        "long_frame",
        &["hello"],
        Refused(
            "it sent something that cannot be read: a frame announces 104857600 bytes; at most 1048576 are allowed",
        ),
    ),
    (
        "wrong_version",
        "wrong_version",
        &[],
        Refused("it speaks protocol 1 (version 1), but this service speaks 2"),
    ),
    (
        "refuses",
        "refuses",
        &[],
        Refused("it says that it cannot be a toolbox: no arm is connected; connect one"),
    ),
    (
        "other_id",
        "other_id",
        &["elsewhere"],
        Refused(
            "it offers toolbox `elsewhere`, and may offer `other_id`; if it should, add the id to `service.programs.other_id",
        ),
    ),
    (
        "usurper",
        "other_id",
        &["good"],
        Refused("toolbox id `good` already belongs to the program `good`, which comes first"),
    ),
    (
        "several",
        "several",
        &[],
        Refused("it names 2 toolboxes in its hello"),
    ),
    (
        "changes_id",
        "changes_id",
        &[],
        Refused("its hello no longer names toolbox `changes_id`"),
    ),
    (
        "forgets_id",
        "changes_id",
        &["nothing"],
        Refused("its hello no longer names toolbox `forgets_id`"),
    ),
    (
        "doubles_id",
        "changes_id",
        &["twice"],
        Refused("its hello no longer names toolbox `doubles_id`"),
    ),
    (
        "missing",
        "no_such_file",
        &[],
        Refused("it ended before its hello, with exit code 2"),
    ),
    ("writable", "writable", &[], Refused("writable.py has mode 0666")),
    (
        "dies_before",
        "dies",
        &["before"],
        Refused("it ended before its hello, with exit code 3; it wrote: about to die"),
    ),
    ("dies_after", "dies", &["after"], Refused(CRASHED)),
    ("dies_open", "dies", &["open"], Refused(CRASHED)),
    ("dies_tools", "dies", &["tools"], Refused(CRASHED)),
    (
        "dies_plan",
        "dies",
        &["plan"],
        Answers(CRASHED, "last_death", CRASHED),
    ),
    (
        "dies_start",
        "dies",
        &["start"],
        Answers(CRASHED, "last_death", CRASHED),
    ),
    (
        "dies_conclude",
        "dies",
        &["conclude"],
        Answers(CRASHED, "last_death", CRASHED),
    ),
    ("forks", "forks", &[], Answers(CRASHED, "last_death", CRASHED)),
    (
        "closes_unasked",
        "closes_unasked",
        &[],
        Answers(CRASHED, "last_death", CRASHED),
    ),
    (
        "no_json",
        "no_json",
        &[],
        Answers(
            "it sent a frame that cannot be read",
            "last_death",
            "it sent a frame that cannot be read",
        ),
    ),
    (
        "long_answer",
        "long_frame",
        &["answer"],
        Answers(
            "a frame announces 104857600 bytes",
            "last_death",
            "a frame announces 104857600 bytes",
        ),
    ),
    (
        "never_beats",
        "never_beats",
        &[],
        Answers(
            "it was silent for 500 ms",
            "last_death",
            "it was silent for 500 ms",
        ),
    ),
    (
        "forged_runs",
        "forged_runs",
        &[],
        Answers(POKED, "generation", "1"),
    ),
    ("prints", "prints", &[], Answers(POKED, "generation", "1")),
    ("floods", "floods", &[], Answers(POKED, "generation", "1")),
    (
        "no_effect",
        "no_effect",
        &[],
        Answers(POKED, "dropped_tools", "tool `quiet`: it has no `effect`"),
    ),
    (
        "long_result",
        "long_result",
        &[],
        Answers("the limit is 8388608", "generation", "1"),
    ),
    (
        "repeats_request",
        "repeats_request",
        &[],
        Answers(
            r#""answers":[[6,"ToolboxError"],[5,"TimeoutError"]]"#,
            "generation",
            "1",
        ),
    ),
];

#[test]
fn a_program_that_misbehaves_costs_itself_only() {
    let entries: Vec<Entry> = ROWS
        .iter()
        .map(|&(name, script, args, _)| Entry {
            name,
            script,
            args,
            more: if name == "usurper" {
                json!({ "toolboxes": ["good"] })
            } else {
                json!({})
            },
            ..Entry::of(name)
        })
        .collect();
    let mut scene = Scene::start(&entries);
    let good = scene.until("good", "readiness", |toolbox| toolbox["state"] == "ready");
    served(&mut scene);
    assert_eq!(
        scene.failure("silent"),
        None,
        "what answers does not wait for what does not"
    );

    for (name, _, _, then) in ROWS {
        match then {
            Refused(reason) => {
                let end = Instant::now() + DEADLINE;
                let found = loop {
                    if let Some(found) = scene.failure(name) {
                        break found;
                    }
                    assert!(Instant::now() < end, "{name}: it is not shown that it failed");
                };
                assert!(found.contains(reason), "{name}: {found}");
                let answer = scene.call(name, "poke");
                assert!(answer["error"].is_string(), "{name}: {answer}");
            }
            Answers(text, key, shown) => {
                scene.until(name, "readiness", |toolbox| toolbox["state"] == "ready");
                let call = json!({ "name": "poke", "args": {}, "toolbox_id": name, "call_id": name });
                scene.client.send("ovos.tools.invoke", &call);
                served(&mut scene);
                scene.client.until_answered([&(*name).to_owned()]);
                let answer = scene.client.only_answer(name).to_string();
                assert!(answer.contains(text), "{name}: {answer}");
                scene.until(name, shown, |toolbox| {
                    toolbox[key].to_string().contains(shown) && toolbox["state"] == "ready"
                });
            }
        }
        served(&mut scene);
    }
    let after = scene.until("good", "status", |_| true);
    for key in ["pid", "generation", "restarts", "state"] {
        assert_eq!(after[key], good[key], "{key}");
    }
    let log = scene.service.process.output();
    for line in ["printed before hello", "printed in start", "about to die"] {
        assert!(log.contains(line), "{line} is not logged");
    }
}

/// Fails if the program that behaves does not answer.
#[track_caller]
fn served(scene: &mut Scene) {
    let start = Instant::now();
    let answer = scene.call("good", "poke");
    assert_eq!(answer["result"], json!({ "poked": true }), "{answer}");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "it was answered after {took:?}");
}

#[test]
fn a_program_that_does_not_halt_is_ended_and_its_toolbox_latched() {
    let entry = |name, args| Entry {
        script: "never_halts",
        args,
        ..Entry::of(name)
    };
    let names = ["hangs", "floods"];
    let mut scene = Scene::ready(&[entry(names[0], &[]), entry(names[1], &["floods"])]);
    for name in names {
        let call = json!({ "name": "move", "args": {}, "toolbox_id": name, "call_id": name });
        scene.client.send("ovos.tools.invoke", &call);
        scene.client.until_call(name, "running");
    }
    let stopped = scene.client.ask("ovos.tools.stop", &json!({}));
    let reached = |id: &str| -> Value {
        let toolboxes = stopped["toolboxes"].as_array().unwrap();
        let of_it = toolboxes.iter().find(|toolbox| toolbox["toolbox_id"] == id);
        of_it.map(|toolbox| toolbox["ok"].clone()).unwrap_or_default()
    };
    assert_eq!(reached("good"), true, "{stopped}");
    for name in names {
        assert_eq!(reached(name), false, "{name}: {stopped}");
        scene.client.until_answered([&name.to_owned()]);
        let answer = scene.client.only_answer(name).to_string();
        assert!(answer.contains("error"), "{name}: {answer}");
        let toolbox_row = scene.until(name, "a restart", |toolbox| {
            toolbox["generation"] == 2 && toolbox["state"] == "ready"
        });
        assert_eq!(toolbox_row["latched"], true, "{name}: {toolbox_row}");
        let death = toolbox_row["last_death"].as_str().unwrap();
        assert!(
            death.contains("it did not answer a halt within 200 ms"),
            "{name}: {death}"
        );
    }
}

#[test]
fn a_program_that_does_not_close_is_ended_when_it_is_removed() {
    let dies = Entry {
        script: "dies",
        args: &["close"],
        ..Entry::of("dies_close")
    };
    let mut scene = Scene::ready(&[Entry::of("ignores_sigterm"), dies]);
    let pids = ["ignores_sigterm", "dies_close"].map(|id| {
        let pid = scene.until(id, "process", |toolbox| toolbox["pid"].is_number())["pid"].as_i64();
        Pid::from_raw(pid.unwrap().try_into().unwrap()).unwrap()
    });
    scene.configure(&[]);
    let report = scene.reload();
    assert_eq!(
        report["removed"],
        json!(["dies_close", "ignores_sigterm"]),
        "{report}"
    );
    assert_eq!(report["unchanged"], json!(["good"]), "{report}");
    for pid in pids {
        scene.service.process.until("the end of the program", |_| {
            test_kill_process(pid).err().map(drop)
        });
    }
    served(&mut scene);
}
