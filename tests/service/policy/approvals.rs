//! The answers of operators: at a terminal, by the command line, and through the control socket.

use super::*;

#[test]
fn an_operator_approves_one_run_and_refuses_for_longer() {
    let stage = stage(&json!([]), false);
    let (mut door, mut other) = (stage.door("mcp"), stage.door("voice"));
    assert_eq!(
        stage.person(&["approve"]),
        (Some(0), "no calls are waiting for approval\n".to_owned())
    );
    let confirm = waits(&mut door, &wave(), None);
    let id = confirm["id"].as_str().unwrap();
    let (code, shown) = stage.person(&["approve"]);
    assert_eq!(code, Some(0), "{shown}");
    for part in [
        id,
        "door:mcp",
        "assemble of testbed",
        "WAVE",
        "left_arm",
        "step_ms",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert!(
        !shown.contains(confirm["token"].as_str().unwrap()),
        "the token is the client's: {shown}"
    );
    waits(&mut door, &wave(), None);
    assert_eq!(stage.begun(), 0, "looking approves nothing");
    let (code, shown) = stage.person(&["approve", id]);
    assert!(code == Some(0) && shown.contains("approved"), "{shown}");
    waits(&mut other, &wave(), None);
    runs(&mut door, &wave(), None);
    let starts = stage.begun();
    let again = waits(&mut door, &wave(), None);
    assert_eq!(stage.begun(), starts, "one approval, one run");
    let (code, shown) = stage.person(&["approve", id]);
    assert!(
        code == Some(1) && shown.contains("no call with this id is waiting"),
        "{shown}"
    );

    let (code, shown) = stage.person(&["deny", again["id"].as_str().unwrap()]);
    assert_eq!(code, Some(0), "{shown}");
    for client in [&mut door, &mut other] {
        for token in [None, Some(&again["token"])] {
            refused(&ask(client, &wave(), token), &["was denied", "10 min"]);
        }
    }
    assert_eq!(stage.begun(), starts);

    let id = again["id"].as_str().unwrap();
    let (_, shown) = stage.person(&["approve"]);
    assert!(shown.starts_with(&format!("{id} denied for ")), "{shown}");
    let (code, shown) = stage.person(&["approve", id]);
    assert!(code == Some(0) && shown.contains("approved"), "{shown}");
    runs(&mut door, &wave(), None);
    assert!(stage.begun() > starts, "the operator has lifted it");
}

#[test]
fn a_call_of_the_command_line_runs_after_an_operator_has_approved_it() {
    let stage = stage_of_cautious_bus();
    let wave = wave().to_string();
    let call = ["invoke", "assemble", wave.as_str()];
    let (code, shown) = stage.person(&call);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.starts_with("error: ConfirmationRequired: assemble of testbed: "),
        "{shown}"
    );
    let (_, id) = shown.split_once("`ovos-tools approve ").unwrap();
    let (id, _) = id.split_once('`').unwrap();
    assert_eq!(stage.begun(), 0);
    let (code, shown) = stage.person(&["approve", id]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = stage.person(&call);
    assert_eq!(code, Some(0), "{shown}");
    let starts = stage.begun();
    assert_ne!(starts, 0);
    let (code, shown) = stage.person(&call);
    assert_eq!(code, Some(1), "one approval, one run: {shown}");
    assert_eq!(stage.begun(), starts);
}

#[test]
fn a_person_at_a_terminal_is_asked_before_a_call_runs() {
    let Some(python) = python() else { return };
    let stage = stage_of_cautious_bus();
    let wave = wave().to_string();
    // typed, whether it is asked, whether it runs, what is told
    for (typed, is_asked, runs, text) in [
        ("\u{4}", true, false, "`ovos-tools approve "),
        ("y\n", true, true, "\"success\": true"),
        ("n\n", true, false, "was denied"),
        ("y\n", false, false, "was denied"),
    ] {
        let before = stage.begun();
        let (code, shown) = stage.person_types(python, typed, &["invoke", "assemble", &wave]);
        assert_eq!(code, Some(i32::from(!runs)), "{typed:?}: {shown}");
        assert_eq!(stage.begun() > before, runs, "{typed:?}: {shown}");
        let question = shown.contains("assemble of testbed: ") && shown.contains("Let this run? [y/N]");
        assert_eq!(question, is_asked, "{typed:?}: {shown}");
        assert!(shown.contains(text), "{typed:?}: {shown}");
    }
}

#[test]
fn the_control_socket_serves_its_user_line_by_line() {
    let mut stage = stage(&json!([]), false);
    let mode = fs::metadata(stage.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let long = format!("{{\"do\": \"approve\", \"id\": \"{}\"}}", "x".repeat(70 << 10));
    for (line, error) in [
        ("", "not a request"),
        ("nonsense", "not a request"),
        (r#"{"do": "invoke", "name": "assemble"}"#, "not a request"),
        (r#"{"do": "approve"}"#, "not a request"),
        (r#"{"do": "approve", "id": "x", "all": true}"#, "not a request"),
        (r#"{"do": "deny", "id": "x"}"#, "no call with this id is waiting"),
        (&long, "one line of at most"),
    ] {
        let answer = stage.control(line);
        assert!(answer["error"].as_str().unwrap().contains(error), "{answer}");
    }
    let stopped = stage.control(r#"{"do": "stop"}"#);
    let stop = &stopped["toolboxes"][0];
    assert_eq!(
        (&stop["toolbox_id"], &stop["ok"]),
        (&json!("testbed"), &json!(true)),
        "{stopped}"
    );
    let answer = stage.client.invoke("assemble", &wave());
    assert!(
        answer["error"].as_str().unwrap().starts_with("EmergencyStop: "),
        "{answer}"
    );
    let resume = json!({ "do": "resume", "toolbox_id": "testbed", "stop_id": "stop-of-yesterday" });
    let answer = stage.control(&resume.to_string());
    assert_eq!(answer["toolboxes"][0]["ok"], false, "{answer}");
    let resume = json!({ "do": "resume", "toolbox_id": "testbed", "stop_id": stop["stop_id"] });
    let answer = stage.control(&resume.to_string());
    assert_eq!(answer["toolboxes"][0]["ok"], true, "{answer}");
    runs(&mut stage.client, &wave(), None);
}

#[test]
fn a_person_resumes_where_the_bus_is_away() {
    let mut stage = stage(&json!([]), true);
    let stopped = stage
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
    let stop_id = stopped["toolboxes"][0]["stop_id"].as_str().unwrap();
    stage.bus.kill();
    for (stop_id, expected) in [("stop-of-yesterday", Some(1)), (stop_id, Some(0))] {
        let (code, shown) = stage.person(&["resume", "testbed", stop_id]);
        assert_eq!(code, expected, "{shown}");
    }
    let (code, shown) = stage.person(&["resume", "testbed"]);
    assert_eq!(code, Some(3), "without the id there is nothing to lift: {shown}");
}
