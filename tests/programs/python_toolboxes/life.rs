//! Which toolboxes are hosted, and what becomes of them.

use serde_json::{Value, json};

use crate::python_toolboxes::scene::{PYTHON, Package, Scene};

const SAMPLE: Package = Package {
    toolbox: "sample-tools",
    version: "1",
};

fn sorted(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect()
}

#[test]
fn what_is_installed_is_hosted_at_the_next_reload_and_only_what_changed_is_replaced() {
    let mut scene = Scene::start(&[], &json!({ "enabled": "auto", "alone": true }), &json!({}));
    let status = scene.status();
    let python = &status["pythons"][0];
    assert_eq!(
        (&python["program"], &python["interpreter"], &status["failed"]),
        (&json!("python"), &Value::Null, &json!([])),
        "{status}"
    );
    assert!(
        python["left_out"]
            .to_string()
            .contains("has no OPM toolbox that can be offered"),
        "{python}"
    );

    scene.install(&SAMPLE);
    let other = Package {
        toolbox: "other-tools",
        version: "5",
    };
    scene.install(&other);
    // It would offer the service its own tools.
    scene.install(&Package {
        toolbox: "ovos-tools-toolbox",
        version: "1",
    });
    let report = scene.reload();
    assert_eq!(
        sorted(&report["added"]),
        ["other-tools", "sample-tools"],
        "{report}"
    );
    let status = scene.status();
    let python = &status["pythons"][0];
    assert!(
        python["interpreter"].as_str().unwrap().contains("/bin/python"),
        "{python}"
    );
    assert_eq!(
        python["toolboxes"],
        json!(["other-tools (other-tools 5)", "sample-tools (sample-tools 1)"])
    );
    let left_out = python["left_out"].to_string();
    assert!(left_out.contains("ovos-tools-toolbox: the package"), "{left_out}");
    assert_eq!(
        scene.call("sample-tools", "version", &json!({}))["result"],
        json!({ "version": "1" })
    );

    assert_eq!(
        sorted(&scene.reload()["unchanged"]),
        ["other-tools", "sample-tools"]
    );
    scene.install(&Package {
        version: "2",
        ..SAMPLE
    });
    let report = scene.reload();
    assert_eq!(
        (sorted(&report["replaced"]), sorted(&report["unchanged"])),
        (vec!["sample-tools"], vec!["other-tools"]),
        "{report}"
    );
    assert_eq!(
        scene.call("sample-tools", "version", &json!({}))["result"],
        json!({ "version": "2" })
    );

    scene.uninstall("sample-tools");
    let report = scene.reload();
    assert_eq!(sorted(&report["removed"]), ["sample-tools"], "{report}");
}

#[test]
fn of_two_interpreters_with_the_same_toolbox_the_first_one_hosts_it() {
    let python = json!({ "interpreter": PYTHON });
    let mut scene = Scene::start(&[SAMPLE], &python, &json!({}));
    let other = Package {
        toolbox: "other-tools",
        version: "5",
    };
    let newer = Package {
        version: "2",
        ..SAMPLE
    };
    scene.add("second", &[newer, other]);
    let report = scene.reload();
    assert_eq!(sorted(&report["added"]), ["other-tools"], "{report}");
    let version =
        |scene: &mut Scene, toolbox| scene.call(toolbox, "version", &json!({}))["result"]["version"].clone();
    assert_eq!(version(&mut scene, "sample-tools"), "1");
    assert_eq!(version(&mut scene, "other-tools"), "5");
    let status = scene.status();
    let failed = status["failed"].as_array().unwrap();
    let why = failed.iter().find(|one| one["toolbox_id"] == "sample-tools");
    let why = why.unwrap_or_else(|| panic!("{status}"))["reason"].to_string();
    assert!(
        why.contains("`sample-tools`") && why.contains("`python`"),
        "{why}"
    );
    let interpreters = status["pythons"].as_array().unwrap().iter();
    let programs: Vec<_> = interpreters.map(|one| one["program"].as_str().unwrap()).collect();
    assert_eq!(programs, ["python", "second"], "{status}");
}

#[test]
fn an_interpreter_that_is_asked_for_and_has_no_toolbox_is_a_failure() {
    let mut scene = Scene::start(
        &[],
        &json!({ "interpreter": PYTHON, "enabled": true }),
        &json!({}),
    );
    let status = scene.status();
    let failed = status["failed"][0]["reason"].as_str().unwrap();
    let expected = format!("program `python`: {PYTHON}: has no OPM toolbox");
    assert!(failed.starts_with(&expected), "{failed}");
}

#[test]
fn a_service_without_the_program_that_hosts_toolboxes_says_so_also_where_they_are_optional() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("ovos-tools");
    std::fs::copy(env!("CARGO_BIN_EXE_ovos-tools"), &copy).unwrap();
    let mut scene = Scene::start_of(&copy, &[], &json!({ "enabled": "auto" }), &json!({}));
    let status = scene.status();
    assert_eq!(status["failed"], json!([]), "{status}");
    let left_out = status["pythons"][0]["left_out"].to_string();
    assert!(left_out.contains("`make install` puts it there"), "{status}");
}

#[test]
fn a_section_reaches_its_toolbox_whole_and_errors_have_the_texts_of_opm() {
    let section = json!({ "root_path": "/srv", "env": { "OF_THE_SECTION": "1" } });
    let sections = json!({ "sample-tools": section });
    let mut scene = Scene::start(
        &[SAMPLE],
        &json!({ "interpreter": PYTHON, "alone": true }),
        &sections,
    );
    let answer = scene.call("sample-tools", "settings", &json!({}));
    assert_eq!(
        answer["result"],
        json!({ "config": section, "env": "1" }),
        "{answer}"
    );

    for (tool, error) in [
        (
            "raises",
            "RuntimeError: Tool execution failed for 'raises' in ToolBox 'sample-tools': LookupError: there is no moon",
        ),
        (
            "refuses",
            "ValueError: Tool input validation failed for 'refuses' in ToolBox 'sample-tools': no number",
        ),
        (
            "not_a_number",
            "ValueError: Out of range float values are not JSON compliant",
        ),
    ] {
        let answer = scene.call("sample-tools", tool, &json!({}));
        assert_eq!(answer["error"], error, "{answer}");
    }

    scene.call("sample-tools", "logs", &json!({}));
    let line = scene
        .service
        .process
        .until("the line of OVOS's logger", |process| {
            let log = process.output();
            log.lines()
                .find(|line| line.contains("the moon is low"))
                .map(str::to_owned)
        });
    assert!(line.contains(" - WARNING - "), "{line}");
}

#[test]
fn calls_that_never_end_are_answered_and_their_process_is_replaced_without_a_failure() {
    for alone in [true, false] {
        replaced_without_a_failure(alone);
    }
}

fn replaced_without_a_failure(alone: bool) {
    /// As many hang until the process wants to be replaced.
    const HANGING: usize = 8;
    let sections = json!({ "service": { "max_failures": 2 } });
    let mut scene = Scene::start(
        &[SAMPLE],
        &json!({ "interpreter": PYTHON, "alone": alone }),
        &sections,
    );
    for replaced in 1..=3_u64 {
        let ids: Vec<String> = (0..HANGING)
            .map(|number| format!("{replaced}-{number}"))
            .collect();
        for id in &ids {
            let call = json!({ "name": "never", "args": {}, "call_id": id, "timeout_ms": 300 });
            scene.client.send("ovos.tools.invoke", &call);
        }
        scene.client.until_answered(&ids);
        for id in &ids {
            let answer = scene.client.only_answer(id).to_string();
            assert!(answer.contains("TimeoutError"), "{answer}");
        }
        let toolbox = scene.until("sample-tools", "a new process", |toolbox| {
            toolbox["generation"] == replaced + 1 && toolbox["state"] == "ready"
        });
        assert_eq!(toolbox["restarts"], replaced, "{toolbox}");
        assert!(
            toolbox["last_death"].to_string().contains("exit code 75"),
            "{toolbox}"
        );
    }
    assert_eq!(
        scene.call("sample-tools", "version", &json!({}))["result"],
        json!({ "version": "1" })
    );
}
