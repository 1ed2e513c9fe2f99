//! Emergency stop, resume, and the stop of the user.

use serde_json::json;

use crate::api::{INVOKE, LATCHED, assemble, resume, resume_all, start_assemble, status_of, world};
use crate::support::contract::{Client, expect};

#[test]
fn a_stop_latches_and_reports_which_halts_were_confirmed() {
    let (_world, mut client) = world();
    let moving = start_assemble(&mut client, "moving");
    let queued = assemble(&mut client, "queued", &json!({}));
    client.progress("queued", "queued");
    let stopped = client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed"}));
    expect(
        "stop",
        &json!({"toolboxes": [{"toolbox_id": "testbed", "ok": true, "stop_id": "*"}]}),
        &stopped,
    );
    expect(
        "moving",
        &json!({"...": 0, "result": {"...": 0, "success": false, "completed": []}}),
        &client.answer(moving),
    );
    expect(
        "queued",
        &json!({"...": 0, "error": "~EmergencyStop: "}),
        &client.answer(queued),
    );

    let stop_id = &stopped["toolboxes"][0]["stop_id"];
    expect(
        "status",
        &json!({"...": 0, "latched": true, "stop_id": stop_id, "stop_reason": "ovos.tools.stop from contract test"}),
        &status_of(&mut client, "testbed"),
    );
    assert_eq!(status_of(&mut client, "testbed_dup")["latched"], false);
    let cases = [
        ("assemble", json!({}), json!({"error": LATCHED})),
        ("set_mark", json!({}), json!({"error": LATCHED})),
        ("count_marks", json!({}), json!({"result": {"marks": 0}})),
        ("brake", json!({"ms": 1}), json!({"result": {"held_ms": 1}})),
    ];
    for (name, args, mut expected) in cases {
        expected["name"] = json!(name);
        expect(name, &expected, &client.invoke(name, args));
    }
    expect(
        "detail",
        &json!({"...": 0, "error_detail": {"...": 0, "kind": "EmergencyStop"}}),
        &client.ask(INVOKE, json!({"name": "assemble", "detail": true})),
    );
}

#[test]
fn a_stop_that_cannot_be_understood_stops_everything() {
    let (_world, mut client) = world();
    let both = json!({"toolboxes": [{"...": 0, "toolbox_id": "testbed", "ok": true}, {"...": 0, "toolbox_id": "testbed_dup", "ok": true}]});
    for data in [
        json!({}),
        json!(null),
        json!({"toolbox_id": null}),
        json!({"toolbox_id": 5}),
        json!({"toolbox_id": ["testbed"]}),
        json!({"toolbox_id": "nope"}),
        json!({"toolbox_id": ""}),
        json!({"toolbox": "testbed"}),
        // A request of this size is read only after the machine stands still.
        json!({"padding": "x".repeat(100 << 10), "toolbox_id": "testbed"}),
    ] {
        expect(&data.to_string(), &both, &client.ask("ovos.tools.stop", data));
        resume_all(&mut client);
    }
    // There is no sender to answer, but the machine stops.
    for frame in [
        r#"{"type": "ovos.tools.stop""#,
        r#"{"type": "ovos.tools.stop", "data": []}"#,
        r#"{"type": "ovos.tools.stop", "data": {"toolbox_id": NaN}}"#,
        r#"{"type":"ovos.tools.stop","data":{"toolbox_id":"testbed"},"context":5}"#,
        r#"{"context": {}, "data": {}, "type": "ovos.tools.stop"}"#,
    ] {
        let moving = start_assemble(&mut client, "moving");
        client.say(frame);
        client.answer(moving);
        for toolbox_id in ["testbed", "testbed_dup"] {
            assert_eq!(status_of(&mut client, toolbox_id)["latched"], true, "{frame}");
        }
        resume_all(&mut client);
    }
    // A call of a tool of effect `stop` stops, whatever its arguments are.
    for data in [
        json!({"name": "stop"}),
        json!({"name": "stop", "args": [5]}),
        json!({"name": "stop", "toolbox_id": "nope"}),
        json!({"name": "stop", "toolbox_id": "testbed_dup"}),
        json!({"name": "stop", "toolbox_id": 7, "call_id": "", "timeout_ms": "x", "detail": 9}),
    ] {
        let moving = start_assemble(&mut client, "moving");
        let answer = client.ask(INVOKE, data.clone());
        expect(
            &data.to_string(),
            &json!({"name": "stop", "result": {"...": 0, "success": true, "stop_id": "*"}}),
            &answer,
        );
        client.answer(moving);
        assert_eq!(status_of(&mut client, "testbed")["latched"], true, "{data}");
        resume_all(&mut client);
    }
}

#[test]
fn only_the_stop_that_holds_is_lifted_and_only_when_the_toolbox_agrees() {
    let (_world, mut client) = world();
    let stop = |client: &mut Client| {
        client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed"}))["toolboxes"][0]["stop_id"].clone()
    };
    let older = stop(&mut client);
    let newer = stop(&mut client);
    assert_ne!(older, newer);
    for wrong in [&older, &json!("made up")] {
        expect(
            "wrong stop_id",
            &json!({"toolbox_id": "testbed", "ok": false, "error": "~is not the stop in force"}),
            &resume(&mut client, "testbed", wrong),
        );
    }
    client.invoke("configure", json!({"refuse_resume": true}));
    expect(
        "refused",
        &json!({"toolbox_id": "testbed", "ok": false, "error": "~the button is still pressed"}),
        &resume(&mut client, "testbed", &newer),
    );
    assert_eq!(status_of(&mut client, "testbed")["latched"], true);
    client.invoke("configure", json!({"refuse_resume": false}));
    expect(
        "resumed",
        &json!({"toolbox_id": "testbed", "ok": true}),
        &resume(&mut client, "testbed", &newer),
    );
    expect(
        "twice",
        &json!({"toolbox_id": "testbed", "ok": false, "error": "~it is not in emergency stop state"}),
        &resume(&mut client, "testbed", &newer),
    );
    expect(
        "works again",
        &json!({"...": 0, "result": {"marks": 1}}),
        &client.invoke("set_mark", json!({})),
    );
}

#[test]
fn the_users_stop_ends_the_calls_of_its_session() {
    let (_world, mut client) = world();
    let call = |id: &str| json!({"name": "slow", "args": {"seconds": 300}, "call_id": id, "progress": true});
    let start = |client: &mut Client, session: &str, id: &str| {
        let n = client.send_in(session, INVOKE, call(id));
        client.progress(id, "action_started");
        n
    };
    let kitchen = start(&mut client, "kitchen", "k");
    let garden = start(&mut client, "garden", "g");
    let nowhere = start(&mut client, "", "n");
    let cancelled = json!({"...": 0, "error": "~CancelledError: the user said stop"});
    client.send_in("kitchen", "ovos.stop", json!({}));
    expect("kitchen", &cancelled, &client.answer(kitchen));
    client.invoke("ping", json!({}));
    assert_eq!(client.answered(garden).or(client.answered(nowhere)), None);
    client.send_in("default", "mycroft.stop", json!({}));
    expect("garden", &cancelled, &client.answer(garden));
    expect("nowhere", &cancelled, &client.answer(nowhere));
    assert_eq!(status_of(&mut client, "testbed")["latched"], false);
}

#[test]
fn every_stop_and_resume_is_an_event() {
    let (_world, mut client) = world();
    let event = |client: &mut Client, kind: &str| {
        let frame = client.until(kind, |frame| {
            frame["type"] == "ovos.tools.event" && frame["data"]["kind"] == kind
        });
        frame["data"].clone()
    };
    // By a client, and by a tool.
    for (topic, data, by) in [
        (
            "ovos.tools.stop",
            json!({"toolbox_id": "testbed"}),
            "ovos.tools.stop from contract test",
        ),
        (
            INVOKE,
            json!({"name": "testbed__stop"}),
            "tool `stop` from contract test",
        ),
    ] {
        client.send(topic, data);
        let stopped = event(&mut client, "emergency_stop");
        let stop_id = stopped["data"]["stop_id"].clone();
        expect(
            by,
            &json!({"toolbox_id": "testbed", "kind": "emergency_stop", "severity": "warning", "ts": "*",
                    "data": {"stop_id": "*", "by": by}}),
            &stopped,
        );
        client.send(
            "ovos.tools.resume",
            json!({"toolbox_id": "testbed", "stop_id": stop_id}),
        );
        expect(
            "resumed",
            &json!({"toolbox_id": "testbed", "kind": "resumed", "severity": "info", "ts": "*",
                    "data": {"stop_id": stop_id, "by": "ovos.tools.resume from contract test"}}),
            &event(&mut client, "resumed"),
        );
    }
    // One event for each toolbox.
    client.send("ovos.tools.stop", json!({}));
    let mut both = [0, 1].map(|_| event(&mut client, "emergency_stop")["toolbox_id"].clone());
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("testbed"), json!("testbed_dup")]);
    resume_all(&mut client);
}
