//! The configuration while the service runs: changed files are read again on a message from the bus, and a message
//! itself can change only the log level.

mod unreadable;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with, testbed_plugins};
use crate::support::stage::Stage;
use serde_json::{Value, json};

fn greeting(client: &mut Client) -> Value {
    client.invoke("version", &json!({}))["result"]["greeting"].clone()
}

/// The section of testbed with this greeting.
fn greets(greeting: &str) -> Value {
    json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "greeting": greeting } } } })
}

/// Calls a tool until the log has a line about it, which needs the level DEBUG.
fn until_debug(service: &mut Process, client: &mut Client) {
    service.until("a line of level DEBUG", |service| {
        client.invoke("ping", &json!({}));
        service.output().contains("call received").then_some(())
    });
}

/// Waits for a text in the log, because the topics of the configuration have no answers.
fn until_logged(service: &mut Process, what: &str) {
    service.until(what, |service| service.output().contains(what).then_some(()));
}

fn pending(client: &mut Client) -> Vec<String> {
    let status = client.ask("ovos.tools.status", &json!({}));
    let keys = status["pending_config"].as_array().expect("pending_config");
    keys.iter().map(|key| key.as_str().unwrap().to_owned()).collect()
}

#[test]
fn changed_files_are_read_again_whatever_the_message_holds() {
    let mut stage = Stage::new(&json!({}));
    stage
        .scene
        .configure(&json!({ "max_calls": 7 }), &greets("good day"));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let text = format!(r#"{{"type":"configuration.updated","data":{{"deep":{deep}}}}}"#);
    stage.client.send_text(&text);
    until_logged(&mut stage.service, "the configuration changed");
}

#[test]
fn changed_files_are_read_again() {
    let mut stage = Stage::new(&json!({}));
    assert_eq!(greeting(&mut stage.client), "hello");
    assert_eq!(pending(&mut stage.client), [""; 0]);

    stage
        .scene
        .configure(&json!({ "max_calls": 7 }), &greets("good day"));
    assert_eq!(
        pending(&mut stage.client),
        [""; 0],
        "it was not said that the files changed"
    );
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the configuration changed");
    let keys = pending(&mut stage.client);
    for part in ["testbed", "max_calls"] {
        assert!(keys.iter().any(|key| key.contains(part)), "no {part} in {keys:?}");
    }
    assert_eq!(
        greeting(&mut stage.client),
        "hello",
        "a section takes effect when its toolbox is reloaded"
    );

    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut stage.client), "good day");
    let keys = pending(&mut stage.client);
    assert!(
        keys.iter().all(|key| key.contains("max_calls")),
        "what waits for a restart: {keys:?}"
    );
    assert!(!keys.is_empty());
}

#[test]
fn a_reload_that_fails_changes_no_permission_either() {
    let mut stage = Stage::new(&json!({}));
    let calls_add = |client: &mut Client| {
        let answer = client.invoke("add", &json!({"a": 1, "b": 2}));
        answer["result"]["result"] == 3
    };
    let testbed = |section: Value| json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": section } } });
    let broken = json!({ "tools": { "deny": ["add"] }, "refuse_open": "no device" });
    let mended = json!({ "tools": { "deny": ["add"] } });
    for (section, number, denied) in [(broken, 1, false), (mended, 2, true)] {
        stage.scene.configure(&json!({}), &testbed(section));
        stage.client.send("configuration.updated", &json!({}));
        stage.service.until("the configuration", |service| {
            (service.output().matches("the configuration changed").count() == number).then_some(())
        });
        stage.client.ask("ovos.tools.reload", &json!({}));
        assert_eq!(calls_add(&mut stage.client), !denied, "reload {number}");
        assert_eq!(
            pending(&mut stage.client),
            if denied { vec![] } else { vec!["testbed"] }
        );
    }
}

#[test]
fn a_forbidden_tool_cannot_be_a_step_of_another_tool() {
    let mut stage = Stage::new(&json!({}));
    let key = "PHAL.ovos-phal-plugin-tools.testbed.tools";
    let forbidden = |key: &str| {
        format!(
            "PermissionError: step `count_marks` of the plan is the tool `count_marks`, which the configuration forbids \
             (`{key}`)"
        )
    };
    let too_much = |tool: &str, effect: &str| {
        format!(
            "PlanError: step `{tool}` of the plan has the effect `read`, but it is the tool `{tool}`, whose effect is \
             `{effect}`"
        )
    };
    let rows = [
        (json!({}), "count_marks", None),
        (
            json!({ "deny": ["count_*"] }),
            "count_marks",
            Some(forbidden(&format!("{key}.deny"))),
        ),
        (
            json!({ "allow": ["delegate"] }),
            "count_marks",
            Some(forbidden(&format!("{key}.allow"))),
        ),
        (
            json!({ "allow": ["delegate", "count_marks"] }),
            "count_marks",
            None,
        ),
        (json!({}), "set_mark", Some(too_much("set_mark", "write"))),
        (json!({}), "assemble", Some(too_much("assemble", "motion"))),
    ];
    for (tools, tool, error) in rows {
        let testbed = json!({ "testbed": { "tools": tools } });
        stage.scene.configure(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        );
        stage.client.send("configuration.updated", &json!({}));
        stage.reload();
        let call = json!({ "name": "delegate", "args": { "tool": tool } });
        let planned = stage.client.ask("ovos.tools.plan", &call);
        let ran = stage.client.ask("ovos.tools.invoke", &call);
        let reason = error.map_or(Value::Null, Value::from);
        assert_eq!(
            (&planned["error"], &ran["error"]),
            (&reason, &reason),
            "{testbed} {tool}"
        );
        assert_eq!(ran["result"]["success"] == true, reason.is_null(), "{ran}");
    }
    assert_eq!(
        stage.client.invoke("count_marks", &json!({}))["result"]["marks"],
        0
    );
}

#[test]
fn the_log_level_of_a_file_applies_at_once() {
    let mut stage = Stage::new(&json!({}));
    stage.client.invoke("ping", &json!({}));
    assert!(
        !stage.service.output().contains("call received"),
        "it is DEBUG from the start"
    );
    stage
        .scene
        .configure(&json!({}), &json!({ "logging": { "log_level": "DEBUG" } }));
    stage.client.send("configuration.updated", &json!({}));
    until_debug(&mut stage.service, &mut stage.client);
}

#[test]
fn a_broken_file_changes_nothing() {
    let mut stage = Stage::new(&json!({}));
    let conf = stage.scene.sandbox.path("config/mycroft/mycroft.conf");
    stage
        .scene
        .configure(&json!({ "max_calls": -1 }), &greets("good day"));
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the changed configuration is not used");
    let output = stage.service.output();
    for part in [conf.to_str().unwrap(), "max_calls", "-1"] {
        assert!(output.contains(part), "no {part:?} in\n{output}");
    }
    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(
        greeting(&mut stage.client),
        "hello",
        "what was in force stays in force"
    );
    // A valid file is used again.
    stage.scene.configure(&json!({}), &greets("good day"));
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the configuration changed");
    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut stage.client), "good day");
    fs::metadata(conf).unwrap();
}

#[test]
fn a_wrong_section_leaves_its_toolbox_as_it_was() {
    let mut stage = Stage::new(&json!({}));
    let tools = |client: &mut Client| client.ask("ovos.tools.list", &json!({}))["tools"].clone();
    let before = tools(&mut stage.client);
    let wrong = json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "allow_sha256": "nowhere" } } } });
    stage.scene.configure(&json!({}), &wrong);
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the configuration changed");
    let reloaded = stage.client.ask("ovos.tools.reload", &json!({ "detail": true }));
    let failed = reloaded["failed"].to_string();
    assert!(
        failed.contains("allow_sha256") && failed.contains("nowhere"),
        "{reloaded}"
    );
    assert_eq!(greeting(&mut stage.client), "hello");
    assert_eq!(tools(&mut stage.client), before);
}

#[test]
fn a_cleared_patch_leaves_the_log_level_of_the_files() {
    let mut stage = Stage::new(&json!({}));
    let line = "the configuration changed";
    let patch = json!({ "config": { "logging": { "log_level": "ERROR" } } });
    stage.client.send("configuration.patch", &patch);
    stage.scene.configure(&json!({ "max_calls": 7 }), &json!({}));
    stage.client.send("configuration.updated", &json!({}));
    // A reload waits until the files have been read.
    stage.client.ask("ovos.tools.reload", &json!({}));
    assert!(!pending(&mut stage.client).is_empty());

    stage.client.send("configuration.patch.clear", &json!({}));
    stage.scene.configure(&json!({ "max_calls": 8 }), &json!({}));
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, line);
    let output = stage.service.output();
    assert_eq!(
        output.matches(line).count(),
        1,
        "the patch hid the first line:\n{output}"
    );
}

#[test]
fn a_patch_never_reaches_our_section() {
    let mut stage = Stage::new(&json!({}));
    let ours = json!({ "service": { "operator_tools": true }, "testbed": { "greeting": "patched" } });
    let patch = json!({ "config": { "PHAL": { "ovos-phal-plugin-tools": ours }, "logging": { "log_level": "DEBUG" } } });
    let message = json!({ "type": "configuration.patch", "data": patch, "context": { "source": "mallory" } });
    stage.client.send_text(&message.to_string());
    // The level of the same patch applies, so the whole patch has been read by then.
    until_debug(&mut stage.service, &mut stage.client);
    let output = stage.service.output();
    let warning = output
        .lines()
        .find(|line| line.contains("ignored a configuration.patch"));
    assert!(warning.is_some_and(|line| line.contains("mallory")), "{output}");

    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut stage.client), "hello");
    let reset = stage.client.invoke("reset_stop", &json!({}));
    assert!(
        reset["error"].as_str().unwrap().starts_with("PermissionError: "),
        "{reset}"
    );
    assert_eq!(pending(&mut stage.client), [""; 0]);
}

/// The rules of the files hold for every call after the answer to a reload; files that cannot be read change none.
#[test]
fn rules_of_the_policy_are_in_force_after_a_reload() {
    let scene = Scene::new(&json!({}));
    let (_bus, _service, mut client) = scene.open();
    let file = scene.sandbox.path("config/mycroft/mycroft.conf");
    let add = json!({ "a": 1, "b": 2 });
    let rule = |decide: &str| json!([{ "tools": ["add"], "decide": decide, "reason": "so it is" }]);
    for (rules, kind) in [
        (json!([]), None),
        (rule("deny"), Some("PermissionError")),
        (rule("confirm"), Some("ConfirmationRequired")),
        (Value::Null, Some("ConfirmationRequired")),
        (rule("allow"), None),
        (rule("deny"), Some("PermissionError")),
        (json!([]), None),
    ] {
        match &rules {
            Value::Null => fs::write(&file, "{").unwrap(),
            rules => scene.configure(&json!({ "policy": rules }), &json!({})),
        }
        client.ask("ovos.tools.reload", &json!({}));
        let answer = client.invoke("add", &add);
        let error = answer["error"]
            .as_str()
            .map(|error| error.split(':').next().unwrap());
        assert_eq!(error, kind, "{rules}: {answer}");
        let status = client.ask("ovos.tools.status", &json!({}));
        let pending = status["pending_config"].to_string();
        assert!(!pending.contains("policy"), "{rules}: {pending}");
    }
}

/// `reload` reads the files, and says what they name in vain.
#[test]
fn a_reload_reads_the_files_and_names_what_means_nothing() {
    let mut stage = Stage::new(&json!({}));
    stage.scene.configure(
        &json!({ "policy": [{ "tools": ["testbed__ad"], "decide": "deny" }],
            "doors": { "mcp": { "tools": { "deny": ["countmarks"] }, "toolboxes": { "allow": ["testbad"] } } } }),
        &json!({ "PHAL": { "ovos-phal-plugin-tools": {
            "testbed": { "greeting": "good day", "tools": { "deny": ["count_mark"] } }, "testbet": { "x": 1 } } } }),
    );
    let reload = stage.client.ask("ovos.tools.reload", &json!({"detail": true}));
    assert_eq!(reload["replaced"], json!(["testbed"]), "{reload:#}");
    assert_eq!(greeting(&mut stage.client), "good day");
    for answer in [reload, stage.status()] {
        let warnings = answer["warnings"].to_string();
        for part in [
            "section `testbet` matches no installed toolbox; did you mean `testbed`?",
            "tools.deny: `count_mark` matches none of its tools; did you mean `count_marks`?",
            "rule 1 of service.policy: `testbed__ad` matches no loaded tool; did you mean `testbed__add`?",
            "service.doors.mcp.tools.deny: `countmarks` matches no loaded tool; did you mean `count_marks`?",
            "service.doors.mcp.toolboxes.allow: `testbad` matches no toolbox that is installed; did you mean `testbed`?",
        ] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
    }
    // A file that breaks while the service runs changes nothing, and is named.
    let file = stage.scene.sandbox.path("config/mycroft/mycroft.conf");
    fs::write(&file, "{").unwrap();
    let reload = stage.client.ask("ovos.tools.reload", &json!({"detail": true}));
    assert_eq!(reload["closed"], Value::Null);
    assert!(
        reload["warnings"]
            .to_string()
            .contains("its last good content stays in force"),
        "{reload:#}"
    );
    assert_eq!(greeting(&mut stage.client), "good day");
}

/// A service that may not read a file of mode 000, also if the tests run as root.
fn without_capabilities(scene: &Scene) -> Process {
    let mut command = scene.sandbox.command("setpriv");
    command.args([
        "--inh-caps=-all",
        "--bounding-set=-all",
        env!("CARGO_BIN_EXE_ovos-tools"),
    ]);
    command.args(["serve", "--plugins"]).arg(testbed_plugins());
    Process::start("service", &scene.sandbox, command)
}

/// A service as a package installs it: with plugins beside the program.
fn installed(scene: &Scene) -> std::path::PathBuf {
    let program = scene.sandbox.path("prefix/bin/ovos-tools");
    let plugins = scene.sandbox.path("prefix/lib/ovos-tools/plugins");
    for folder in [program.parent().unwrap(), plugins.as_path()] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_ovos-tools"), &program).unwrap();
    fs::copy(plugins_with("robot").join("robot.so"), plugins.join("robot.so")).unwrap();
    fs::copy(plugins_with("ros").join("ros.so"), plugins.join("ros.so")).unwrap();
    fs::copy(testbed_plugins().join("testbed.so"), plugins.join("testbed.so")).unwrap();
    program
}

/// What is packaged and would drive a simulator is off until it is asked for, and costs no process.
#[test]
fn a_packaged_simulator_is_off_until_it_is_asked_for() {
    let scene = Scene::new(&json!({}));
    let program = installed(&scene);
    let file = scene.sandbox.path("config/mycroft/mycroft.conf");
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let serve = |args: &[&str]| {
        let mut command = scene.sandbox.command(&program);
        command.arg("serve").args(args);
        Process::start("service", &scene.sandbox, command)
    };
    let run = |args: &[&str]| {
        let ran = scene.sandbox.command(&program).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        (ran.status.code(), text)
    };
    let line = "`ovos-tools enable robot` turns it on";
    let is_listed = |client: &mut Client| {
        let list = client.ask("ovos.tools.list", &json!({}));
        list.to_string().contains("\"toolbox_id\":\"robot\"")
    };

    let before = fs::read_to_string(&file).unwrap();
    let mut service = serve(&[]);
    ready(&mut service, &mut client);
    assert!(!is_listed(&mut client));
    service.until("the ready line", |service| {
        service.output().contains("Try: ").then_some(())
    });
    assert!(service.output().contains(line), "{}", service.output());
    let status = client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["off"][0]["toolbox_id"], "robot", "{status:#}");
    assert_eq!(status["off"][0]["enable"], "ovos-tools enable robot");
    // What needs a section is off with a reason of its own, and is no simulator.
    assert_eq!(status["off"][1]["toolbox_id"], "ros", "{status:#}");
    let reason = status["off"][1]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("because it has no section that names what it reaches"),
        "{reason}"
    );
    let reload = client.ask("ovos.tools.reload", &json!({"detail": true}));
    assert_eq!(reload["off"], status["off"]);
    for (topic, data) in [
        (
            "ovos.tools.invoke",
            json!({"name": "wave", "toolbox_id": "robot", "args": {}}),
        ),
        ("ovos.tools.invoke", json!({"name": "robot__wave", "args": {}})),
        ("ovos.tools.get", json!({"name": "robot__wave"})),
        (
            "ovos.persona.tools.call",
            json!({"toolbox_id": "robot", "name": "wave", "kwargs": {}}),
        ),
    ] {
        let answer = client.ask(topic, &data);
        let error = answer["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{topic}: {answer}"));
        assert!(
            error.contains("nknown tool") && error.contains(line),
            "{topic}: {error}"
        );
    }
    let (code, doctor) = run(&["doctor"]);
    assert_eq!(code, Some(0), "{doctor}");
    assert!(doctor.contains(line), "{doctor}");
    assert!(doctor.contains("`ovos-tools enable ros` turns it on"), "{doctor}");
    let (code, said) = run(&["enable", "ros"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the service here reloaded: added ros"), "{said}");
    let (code, said) = run(&["disable", "ros"]);
    assert_eq!(code, Some(0), "{said}");
    fs::write(&file, &before).unwrap();

    // The running service is told; comments stay.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("// mine\n{text}")).unwrap();
    let (code, said) = run(&["enable", "robot"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the service here reloaded: added robot"), "{said}");
    assert!(fs::read_to_string(&file).unwrap().starts_with("// mine\n"));
    assert_eq!(
        fs::read_to_string(file.with_extension("conf.before")).unwrap(),
        format!("// mine\n{text}")
    );
    assert!(is_listed(&mut client));
    let (code, said) = run(&["disable", "robot"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!is_listed(&mut client), "{said}");
    for (id, expected) in [
        (
            "robto",
            "nothing here is called `robto`; did you mean `robot`?; toolboxes: ",
        ),
        ("kitchen", "nothing here is called `kitchen`; toolboxes: "),
        (
            "consle",
            "nothing here is called `consle`; did you mean `console`?; toolboxes: ",
        ),
    ] {
        let (code, output) = run(&["enable", id]);
        assert_eq!(code, Some(2), "{output}");
        assert!(output.contains(expected), "{output}");
        assert_eq!(
            output.matches(", robot").count() + output.matches(": robot").count(),
            1,
            "{output}"
        );
    }
    drop(service);

    // Other ways to ask for it, and a use before an upgrade.
    let own = scene.sandbox.path("data/ovos-tools/plugins");
    type Ask = fn(&Scene, &std::path::Path);
    let rows: [(&str, &[&str], Ask); 4] = [
        ("--simulators", &["--simulators"], |_, _| {}),
        ("an empty section", &[], |scene, _| {
            scene.configure(
                &json!({}),
                &json!({"PHAL": {"ovos-phal-plugin-tools": {"robot": {}}}}),
            );
        }),
        ("used before", &[], |scene, _| {
            let folder = scene.sandbox.path("state/ovos-tools/robot");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("poses.json"), "{}").unwrap();
        }),
        ("dropped in", &[], |scene, own| {
            fs::remove_dir_all(scene.sandbox.path("state/ovos-tools/robot")).unwrap();
            fs::create_dir_all(own).unwrap();
            fs::copy(plugins_with("robot").join("robot.so"), own.join("robot.so")).unwrap();
        }),
    ];
    for (what, args, ask) in rows {
        fs::write(&file, &text).unwrap();
        ask(&scene, &own);
        let mut service = serve(args);
        ready(&mut service, &mut client);
        assert!(is_listed(&mut client), "{what}");
        let status = client.ask("ovos.tools.status", &json!({}));
        assert_eq!(status["off"][0]["toolbox_id"], "ros", "{what}: {status:#}");
        let kept = status["warnings"]
            .to_string()
            .contains("stays on because it was used before");
        assert_eq!(kept, what == "used before", "{what}: {status:#}");
    }
}
