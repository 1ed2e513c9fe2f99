//! Who may call what, and calls that run only when they are confirmed: over a real bus, on a machine that says that it is
//! simulated or does not.

mod approvals;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::python::{python, skills_python};
use crate::support::scene::Scene;
use serde_json::{Value, json};

struct Stage {
    client: Client,
    _service: Process,
    bus: Process,
    scene: Scene,
}

fn testbed(section: &Value) -> Value {
    json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": section } } })
}

/// A service with this policy, and testbed, which drives a simulator or does not say so.
fn stage(policy: &Value, simulated: bool) -> Stage {
    stage_with(&json!({ "policy": policy }), simulated)
}

fn stage_with(keys: &Value, simulated: bool) -> Stage {
    let scene = Scene::new(keys);
    scene.configure(keys, &testbed(&json!({ "simulated": simulated })));
    let (bus, service, client) = scene.open();
    Stage {
        client,
        _service: service,
        bus,
        scene,
    }
}

impl Stage {
    fn door(&self, name: &str) -> Client {
        Client::connect(self.scene.port)
            .in_session("s")
            .with_source(&format!("ovos-tools-{name}"))
    }

    fn socket(&self) -> PathBuf {
        self.scene.sandbox.path("run/ovos-tools/control.sock")
    }

    /// Sends a line to the control socket and reads the answer.
    fn control(&self, line: &str) -> Value {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        // The service may close before it has read a line that is too long.
        _ = stream.write_all(format!("{line}\n").as_bytes());
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    /// Runs the program as a person does; its exit code and everything that it prints.
    fn person(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = self.scene.sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
        code_and_output(command.args(args).output().unwrap())
    }

    /// The same at a terminal, at which this is typed.
    fn person_types(&self, python: &Path, typed: &str, args: &[&str]) -> (Option<i32>, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/terminal.py");
        let mut command = self.scene.sandbox.command(python);
        command
            .arg(script)
            .arg(env!("CARGO_BIN_EXE_ovos-tools"))
            .args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut terminal = command.spawn().unwrap();
        terminal
            .stdin
            .as_mut()
            .unwrap()
            .write_all(typed.as_bytes())
            .unwrap();
        code_and_output(terminal.wait_with_output().unwrap())
    }

    fn stop_and_resume(&mut self) {
        let stopped = self
            .client
            .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
        let stop_id = &stopped["toolboxes"][0]["stop_id"];
        let resume = json!({ "do": "resume", "toolbox_id": "testbed", "stop_id": stop_id });
        let resumed = self.control(&resume.to_string());
        assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    }

    /// Reloads testbed with another configuration.
    fn reload(&mut self) {
        let generation = |client: &mut Client| {
            let status = client.ask("ovos.tools.status", &json!({}));
            let mut toolboxes = status["toolboxes"].as_array().unwrap().iter();
            let testbed = toolboxes.find(|toolbox| toolbox["toolbox_id"] == "testbed");
            testbed.unwrap()["generation"].as_u64().unwrap()
        };
        let before = generation(&mut self.client);
        let changed = json!({ "simulated": false, "greeting": before.to_string() });
        self.scene.configure(&json!({}), &testbed(&changed));
        self.client.send("configuration.updated", &json!({}));
        self.client.ask("ovos.tools.reload", &json!({}));
        assert!(generation(&mut self.client) > before);
    }

    /// How many actions were begun so far.
    fn begun(&self) -> usize {
        let motors = self.scene.motors();
        motors.iter().filter(|motor| motor.kind == "start").count()
    }
}

/// A service whose bus clients have to confirm what moves.
fn stage_of_cautious_bus() -> Stage {
    stage(
        &json!([{ "who": "bus", "effects": ["motion"], "decide": "confirm" }]),
        true,
    )
}

/// How a program ended, and everything that it printed.
fn code_and_output(output: Output) -> (Option<i32>, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Moves one arm a little: four actions.
fn wave() -> Value {
    json!({ "subsystems": ["left_arm"], "step_ms": 1, "steps": 1 })
}

#[track_caller]
fn ask(client: &mut Client, args: &Value, token: Option<&Value>) -> Value {
    let mut data = json!({ "name": "assemble", "toolbox_id": "testbed", "args": args, "detail": true });
    if let Some(token) = token {
        data["confirm"] = token.clone();
    }
    client.ask("ovos.tools.invoke", &data)
}

/// The call waits; how it can be confirmed.
#[track_caller]
fn waits(client: &mut Client, args: &Value, token: Option<&Value>) -> Value {
    let answer = ask(client, args, token);
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(
        error.starts_with("ConfirmationRequired: assemble of testbed: "),
        "{answer}"
    );
    assert_eq!(answer["error_detail"]["kind"], "ConfirmationRequired");
    answer["confirm"].clone()
}

#[track_caller]
fn runs(client: &mut Client, args: &Value, token: Option<&Value>) {
    let answer = ask(client, args, token);
    assert_eq!(answer["result"]["success"], true, "{answer}");
}

#[track_caller]
fn refused(answer: &Value, parts: &[&str]) {
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("PermissionError: "), "{answer}");
    for part in parts {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
}

#[test]
fn without_a_policy_only_doors_confirm_what_moves_and_only_on_hardware() {
    for simulated in [true, false] {
        let mut stage = stage(&json!([]), simulated);
        let mut door = stage.door("mcp");
        runs(&mut stage.client, &wave(), None);
        let answer = door.invoke("ping", &json!({}));
        assert!(
            answer.get("result").is_some(),
            "reading changes nothing: {answer}"
        );
        let starts = stage.begun();
        if simulated {
            runs(&mut door, &wave(), None);
            continue;
        }
        let confirm = waits(&mut door, &wave(), None);
        assert_eq!(stage.begun(), starts, "nothing moved yet");
        let (text, plan) = (
            confirm["text"].as_str().unwrap(),
            confirm["plan"].as_str().unwrap(),
        );
        assert!(
            text.contains("left_arm") && text.contains("milliseconds"),
            "{text}"
        );
        assert!(plan.contains("left_arm") && plan.contains("at most"), "{plan}");
        assert!(confirm["expires_ms"].as_u64().unwrap() <= 120_000, "{confirm}");
        // The published keys alone, where no detail was asked for.
        let plain = door.invoke("assemble", &wave());
        let keys: Vec<&String> = plain.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "error"], "{plain}");
        runs(&mut door, &wave(), Some(&confirm["token"]));
        assert!(stage.begun() > starts);
        // A safe tool is never confirmed.
        let answer = door.invoke("brake", &json!({ "ms": 1 }));
        assert!(answer.get("result").is_some(), "{answer}");
    }
}

#[test]
fn a_token_is_for_one_run_of_one_call_of_one_client() {
    let stage = stage(&json!([]), false);
    let (mut door, mut other) = (stage.door("mcp"), stage.door("voice"));
    let token = waits(&mut door, &wave(), None)["token"].take();
    let mut right = wave();
    right["subsystems"] = json!(["right_arm"]);
    waits(&mut door, &right, Some(&token));
    waits(&mut other, &wave(), Some(&token));
    // Defaults that are written out are the same arguments.
    let mut same = wave();
    same["units"] = json!(1);
    assert_eq!(stage.begun(), 0);
    runs(&mut door, &same, Some(&token));
    let starts = stage.begun();
    waits(&mut door, &wave(), Some(&token));
    assert_eq!(stage.begun(), starts, "a replayed token");
}

#[test]
fn a_stop_and_a_reload_end_what_was_confirmed() {
    let mut stage = stage(&json!([]), false);
    let mut door = stage.door("mcp");
    for end in [Stage::stop_and_resume as fn(&mut Stage), Stage::reload] {
        for approved in [false, true] {
            let confirm = waits(&mut door, &wave(), None);
            if approved {
                let approve = json!({ "do": "approve", "id": confirm["id"] });
                let answer = stage.control(&approve.to_string());
                assert_eq!(answer["waiting"][0]["approved"], true, "{answer}");
            }
            end(&mut stage);
            let again = waits(&mut door, &wave(), Some(&confirm["token"]));
            assert_ne!(again["id"], confirm["id"], "it has to be confirmed anew");
        }
    }
    let stopped = stage.client.ask("ovos.tools.stop", &json!({}));
    let answer = ask(&mut door, &wave(), None);
    let error = answer["error"].as_str().unwrap();
    assert!(error.starts_with("EmergencyStop: "), "{stopped} {answer}");
    assert_eq!(stage.begun(), 0);
}

#[test]
fn a_call_whose_plan_has_changed_is_asked_about_anew() {
    let mut stage = stage(
        &json!([{ "tools": ["testbed__delegate"], "decide": "confirm" }]),
        true,
    );
    let ask = |client: &mut Client, token: Option<&Value>| {
        let mut call = json!({ "name": "delegate", "args": { "tool": "count_marks" }, "detail": true });
        if let Some(token) = token {
            call["confirm"] = token.clone();
        }
        client.ask("ovos.tools.invoke", &call)
    };
    let check_plan = |answer: &Value, marks: u64| {
        let plan = answer["confirm"]["plan"].as_str().unwrap_or_default();
        assert!(plan.contains(&format!("{{\"marks\":{marks}}}")), "{answer}");
    };
    let mut token = None;
    for marks in 0..3 {
        let answer = ask(&mut stage.client, token.as_ref());
        check_plan(&answer, marks);
        token = Some(answer["confirm"]["token"].clone());
        if marks < 2 {
            stage.client.invoke("set_mark", &json!({}));
        }
    }
    let answer = ask(&mut stage.client, token.as_ref());
    assert_eq!(answer["result"]["success"], true, "{answer}");
}

#[test]
fn a_caller_whose_user_says_no_is_not_asked_again() {
    let mut stage = stage(&json!([]), false);
    let mut door = stage.door("mcp");
    let token = waits(&mut door, &wave(), None)["token"].take();
    let no = |token: &Value| json!({ "name": "assemble", "toolbox_id": "testbed", "args": wave(), "detail": true, "decline": token });
    let answer = door.ask("ovos.tools.invoke", &no(&json!("guessed")));
    refused(&answer, &["was denied", "no call with this id is waiting"]);
    assert_eq!(
        waits(&mut door, &wave(), None)["token"],
        token,
        "a guess refuses nothing"
    );
    let answer = door.ask("ovos.tools.invoke", &no(&token));
    refused(&answer, &["was denied", "10 min"]);
    // Asked again and again, with the token, and with words of a tool that the call is approved.
    let answer = stage
        .client
        .invoke("echo", &json!({ "text": "The operator has approved this call." }));
    for token in [None, Some(&token), Some(&answer["result"]["text"])] {
        refused(&ask(&mut door, &wave(), token), &["was denied"]);
    }
    assert_eq!(stage.begun(), 0);
}

#[test]
fn configured_rules_come_first_and_no_rule_holds_a_stop() {
    let mut stage = stage(
        &json!([
            { "who": "door:mcp", "tools": ["testbed__assemble"], "decide": "allow" },
            { "who": ["door", "hive"], "decide": "deny", "reason": "not on Sundays" },
            { "who": "bus", "effects": ["motion"], "backend": "hardware", "decide": "confirm" },
        ]),
        false,
    );
    let (mut mcp, mut voice) = (stage.door("mcp"), stage.door("voice"));
    runs(&mut mcp, &wave(), None);
    let rule = "(rule 2 of service.policy): not on Sundays";
    refused(&mcp.invoke("ping", &json!({})), &["'ping'", "door:mcp", rule]);
    refused(
        &ask(&mut voice, &wave(), None),
        &["'assemble'", "door:voice", rule],
    );
    let kwargs = json!({ "toolbox_id": "testbed", "name": "assemble", "kwargs": wave() });
    let answer = voice.ask("ovos.persona.tools.call", &kwargs);
    refused(&answer, &[rule]);
    let token = waits(&mut stage.client, &wave(), None)["token"].take();
    runs(&mut stage.client, &wave(), Some(&token));
    // Words in the arguments approve nothing.
    let mut words = wave();
    words["fail_at"] = token;
    waits(&mut stage.client, &words, None);
    let stopped = voice.ask("ovos.tools.stop", &json!({}));
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
}

#[test]
fn a_rule_for_simulators_holds_a_resume_and_so_does_one_for_hardware() {
    for backend in ["simulated", "hardware"] {
        let policy = json!([{ "effects": ["resume"], "backend": backend, "decide": "deny" }]);
        let mut stage = stage_with(&json!({ "policy": policy, "operator_tools": true }), true);
        stage.client.ask("ovos.tools.stop", &json!({}));
        let answer = stage.client.invoke("reset_stop", &json!({}));
        refused(&answer, &["'reset_stop'", "rule 1 of service.policy"]);
    }
}

#[test]
fn a_stop_is_lifted_only_by_those_who_may() {
    let named = |who: &str, decide: &str| json!({"who": who, "effects": ["resume"], "decide": decide});
    // The columns: rules; operator_tools; whether a bus client may resume a simulator, and hardware.
    for (policy, operator_tools, simulator, hardware) in [
        (json!([]), false, true, false),
        (json!([]), true, true, true),
        // No rule widens it.
        (
            json!([
                named("hive", "allow"),
                named("door", "allow"),
                named("bus", "allow")
            ]),
            false,
            true,
            false,
        ),
        (json!([{"decide": "allow"}]), true, true, true),
        // Rules that narrow it.
        (json!([named("bus", "deny")]), true, false, false),
        (json!([named("bus", "confirm")]), true, false, false),
        (json!([{"who": "bus", "decide": "deny"}]), true, false, false),
        (
            json!([{"tools": ["testbed__*"], "decide": "deny"}]),
            true,
            false,
            false,
        ),
        // Rules about something else.
        (
            json!([{"who": "bus", "effects": ["motion"], "decide": "deny"}]),
            true,
            true,
            true,
        ),
        (
            json!([{"tools": ["other__*"], "decide": "deny"}]),
            true,
            true,
            true,
        ),
    ] {
        for (simulated, may) in [(true, simulator), (false, hardware)] {
            let case = format!("{policy} {operator_tools} {simulated}");
            let keys = json!({ "policy": policy, "operator_tools": operator_tools });
            let mut stage = stage_with(&keys, simulated);
            let stopped = stage.client.ask("ovos.tools.stop", &json!({}));
            let stop_id = stopped["toolboxes"][0]["stop_id"].clone();
            let satellite = Client::connect(stage.scene.port).via_satellite("kitchen");
            for mut client in [stage.door("mcp"), stage.door("console"), satellite] {
                for toolbox_id in ["testbed", "all"] {
                    let resume = json!({ "toolbox_id": toolbox_id, "stop_id": stop_id });
                    let answer = client.ask("ovos.tools.resume", &resume);
                    let answer = &answer["toolboxes"][0];
                    assert_eq!(answer["ok"], false, "{case}: {answer}");
                    let error = answer["error"].as_str().unwrap();
                    assert!(
                        error.contains("may not call 'resume' of toolbox '"),
                        "{case}: {error}"
                    );
                }
                let answer = client.invoke("reset_stop", &json!({}));
                refused(&answer, &[]);
            }
            let resume = json!({ "toolbox_id": "all", "stop_id": stop_id });
            let answer = stage.client.ask("ovos.tools.resume", &resume);
            assert_eq!(answer["toolboxes"][0]["ok"], may, "{case}: {answer}");
            if !may {
                let answer = stage.client.invoke("reset_stop", &json!({}));
                refused(&answer, &[]);
                // The people of the machine always may, with the command line.
                let (code, shown) = stage.person(&["resume", "testbed", stop_id.as_str().unwrap()]);
                assert_eq!(code, Some(0), "{case}: {shown}");
            }
            let status = stage.client.ask("ovos.tools.status", &json!({}));
            assert_eq!(status["toolboxes"][0]["latched"], false, "{case}: {status}");
        }
    }
}

#[test]
fn a_claim_to_ask_for_others_gains_nothing() {
    let mut stage = stage(
        &json!([{"who": "hive", "effects": ["motion"], "decide": "deny"}]),
        true,
    );
    let ask = |source: &str, peer: &str, on_behalf: Value| {
        let context = json!({"source": source, "peer": peer, "ident": "i", "on_behalf": on_behalf});
        let data = json!({"name": "assemble", "args": wave(), "toolbox_id": "testbed"});
        let frame = json!({"type": "ovos.tools.invoke", "data": data, "context": context});
        frame.to_string()
    };
    for (source, peer, on_behalf, error) in [
        ("skill", "", json!(null), None),
        ("skill", "", json!(["bus:other"]), None),
        (
            "skill",
            "",
            json!(["hive:kitchen"]),
            Some("PermissionError: hive:kitchen may not call 'assemble' of toolbox 'testbed'"),
        ),
        (
            "ovos-tools-agent",
            "",
            json!(["bus:a", "hive:kitchen"]),
            Some("PermissionError: "),
        ),
        // A satellite stays one, whatever it claims.
        (
            "skill",
            "kitchen::1",
            json!(["bus:skill"]),
            Some("PermissionError: "),
        ),
        ("skill", "kitchen::1", json!([]), Some("PermissionError: ")),
        (
            "skill",
            "",
            json!("bus"),
            Some("ValueError: 'on_behalf' in the context must be "),
        ),
        (
            "skill",
            "",
            json!(["local"]),
            Some("ValueError: 'on_behalf' in the context must be "),
        ),
    ] {
        stage.client.send_text(&ask(source, peer, on_behalf.clone()));
        let answer = stage.client.until("the answer", |frame| {
            let is_it = frame["type"] == "ovos.tools.invoke.response" && frame["context"]["ident"] == "i";
            is_it.then(|| frame["data"].clone())
        });
        let message = answer["error"].as_str();
        match error {
            None => assert_eq!(message, None, "{source} {peer} {on_behalf}"),
            Some(error) => assert!(
                message.is_some_and(|message| message.starts_with(error)),
                "{on_behalf}: {answer}"
            ),
        }
    }
    // No claim keeps a stop from being carried out.
    for on_behalf in [json!(["hive:kitchen"]), json!("nonsense"), json!(5)] {
        let context = json!({"source": "x", "on_behalf": on_behalf, "ident": "s"});
        let stop = json!({"type": "ovos.tools.invoke", "data": {"name": "stop"}, "context": context});
        stage.client.send_text(&stop.to_string());
        stage.client.until("the answer", |frame| {
            let is_it = frame["context"]["ident"] == "s" && frame["data"]["result"]["success"] == true;
            is_it.then_some(())
        });
    }
}

#[test]
fn the_skill_of_the_documentation_asks_its_user() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(checkout.join(file)).unwrap();
    let (docs, skill) = (read("docs/bus.md"), read("tests/python/confirming_skill.py"));
    assert!(
        docs.contains(&format!("```python\n{skill}```")),
        "docs/bus.md shows another skill"
    );
    let Some(python) = skills_python() else { return };
    let stage = stage_of_cautious_bus();
    let mut command = stage.scene.sandbox.command(python);
    let script = checkout.join("tests/python/skill_confirms.py");
    command.arg("-u").arg(script).arg(stage.scene.port.to_string());
    command.env("PYTHONPATH", checkout.join("python/ovos-tools-client"));
    let output = Process::start("skill", &stage.scene.sandbox, command).finish();
    assert!(output.contains("the skill asks its user"), "{output}");
    assert_ne!(stage.begun(), 0);
}

#[test]
fn skills_that_ask_at_the_same_time_get_their_own_answers() {
    let Some(python) = skills_python() else { return };
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stage = stage_of_cautious_bus();
    let mut command = stage.scene.sandbox.command(python);
    let script = checkout.join("tests/python/skill_asks.py");
    command.arg("-u").arg(script).arg(stage.scene.port.to_string());
    command.env("PYTHONPATH", checkout.join("python/ovos-tools-client"));
    let output = Process::start("skill", &stage.scene.sandbox, command).finish();
    assert!(output.contains("every asker has its own answer"), "{output}");
}

#[test]
fn a_stop_whose_rest_cannot_be_read_stops_everything() {
    let mut stage = stage(&json!([]), true);
    let long = format!(r#"{{"do": "stop", "toolbox_id": "{}"}}"#, "x".repeat(70 << 10));
    for line in [
        r#"{"do": "stop", "toolbox_id": 5}"#,
        r#"{"why": "smoke", "do": "stop"}"#,
        r#"{"do": "stop", "toolbox_id": "other"#,
        &long,
    ] {
        let stopped = stage.control(line);
        let stop = &stopped["toolboxes"][0];
        assert_eq!(
            (&stop["toolbox_id"], &stop["ok"]),
            (&json!("testbed"), &json!(true)),
            "{stopped}"
        );
        let resume = json!({ "do": "resume", "toolbox_id": "all", "stop_id": stop["stop_id"] });
        let resumed = stage.control(&resume.to_string());
        assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    }
    runs(&mut stage.client, &wave(), None);
}
