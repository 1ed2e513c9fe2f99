//! Arguments: the same forms mean the same through every way in. `crates/schema/tests/schema/arguments/native.rs` has the table of
//! forms over every shipped tool.

use std::process::Command;

use serde_json::{Value, json};

use crate::api::{INVOKE, LATCHED, resume_all, world};
use crate::support::contract::{Client, World, expect, meets};

/// What a call ends with.
enum Ending {
    /// This result, and these ignored arguments.
    With(Value, &'static [&'static str]),
    /// An error with this text in it.
    Refused(&'static str),
}
use Ending::{Refused, With};

/// The answers to one call through every topic.
fn answers(client: &mut Client, name: &str, args: &Value) -> Vec<(&'static str, Value)> {
    let by_invoke = client.ask(INVOKE, json!({"name": name, "args": args, "detail": true}));
    let kwargs = json!({"toolbox_id": "testbed", "name": name, "kwargs": args, "detail": true});
    let by_call = client.ask("ovos.persona.tools.call", kwargs.clone());
    let by_predecessor = client.ask("ovos.persona.tools.testbed.call", kwargs);
    let step = json!({"id": "one", "name": name, "args": args});
    let run = client.ask("ovos.tools.run", json!({"steps": [step], "detail": true}));
    let by_step = match run["steps"].get(0) {
        Some(step) => step.clone(),
        None => run,
    };
    vec![
        ("invoke", by_invoke),
        ("call", by_call),
        ("predecessor", by_predecessor),
        ("step", by_step),
    ]
}

#[test]
fn forms_mean_the_same_through_every_way_in() {
    let (world, mut client) = world();
    let sum = || json!({"result": 3});
    let pong = || json!({"pong": true});
    let mut wrong = Vec::new();
    for (name, args, ends) in [
        // The whole.
        ("ping", json!(""), With(pong(), &[])),
        ("ping", json!([]), With(pong(), &[])),
        ("ping", json!(null), With(pong(), &[])),
        ("ping", json!("{}"), With(pong(), &[])),
        ("ping", json!("null"), With(pong(), &[])),
        ("add", json!("{\"a\": 1, \"b\": 2}"), With(sum(), &[])),
        ("brake", json!(""), With(json!({"held_ms": 200}), &[])),
        // Names.
        ("add", json!({"a": 1, "b": 2, "c": 3}), With(sum(), &["c"])),
        (
            "brake",
            json!({"ms": 1, "hard": true}),
            With(json!({"held_ms": 1}), &["hard"]),
        ),
        (
            "brake",
            json!({"ms": "x"}),
            With(json!({"held_ms": 200}), &["ms"]),
        ),
        (
            "set_mark",
            json!({"mss": 5}),
            Refused("unknown argument 'mss' (did you mean 'ms'?); known: ms"),
        ),
        (
            "assemble",
            json!({"subsystem": ["left_arm"]}),
            Refused("unknown argument 'subsystem' (did you mean 'subsystems'?)"),
        ),
        // Values.
        ("set_mark", json!({"ms": null}), With(json!({"marks": "*"}), &[])),
        ("set_mark", json!({"ms": "0.0"}), With(json!({"marks": "*"}), &[])),
        ("set_mark", json!({"ms": true}), Refused("ms: expected integer")),
        (
            "set_mark",
            json!({"ms": "1 s"}),
            Refused("write the number alone, in milliseconds"),
        ),
        (
            "add",
            json!({"a": true, "b": 2}),
            Refused("a: expected integer, got true"),
        ),
        ("add", json!({"a": null, "b": 2}), Refused("a: required")),
        ("show", json!({"items": "[]"}), With(json!({"folder": "*"}), &[])),
        (
            "show",
            json!({"items": "[1"}),
            Refused("items: expected array, got \"[1\""),
        ),
    ] {
        for (way, answer) in answers(&mut client, name, &args) {
            let found = match &ends {
                With(result, ignored) => {
                    let ignored = if ignored.is_empty() {
                        Value::Null
                    } else {
                        json!(ignored)
                    };
                    meets(result, &answer["result"]).and_then(|()| meets(&ignored, &answer["ignored"]))
                }
                Refused(text) => match answer["error"].as_str() {
                    Some(error) if error.contains(text) => Ok(()),
                    _ => Err(format!("expected an error with {text:?}")),
                },
            };
            if let Err(why) = found {
                wrong.push(format!("{name} {args} by {way}: {why}; {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), world.log());
    for wrong in [json!("x"), json!([1]), json!(5), json!(true)] {
        for (way, answer) in answers(&mut client, "ping", &wrong) {
            assert_eq!(answer["result"], Value::Null, "{wrong} by {way}: {answer}");
            assert!(answer["error"].is_string(), "{wrong} by {way}: {answer}");
        }
    }
    // Without `detail` an answer has the published keys.
    let plain = client.ask(INVOKE, json!({"name": "add", "args": {"a": 1, "b": 2, "c": 3}}));
    expect(
        "published",
        &json!({"name": "add", "result": {"result": 3}}),
        &plain,
    );
    // A stop stops, whatever it is given.
    for (topic, key) in [(INVOKE, "args"), ("ovos.persona.tools.testbed.call", "kwargs")] {
        let stop = client.ask(topic, json!({"name": "stop", key: "no {json", "speed": 1}));
        assert!(stop["error"].is_null(), "{stop}");
        let latched = client.ask(INVOKE, json!({"name": "assemble", "args": {}}));
        expect("latched", &json!({"...": 0, "error": LATCHED}), &latched);
        resume_all(&mut client);
    }
}

#[test]
fn arguments_under_another_key_are_never_left_out() {
    let (_world, mut client) = world();
    let left = json!({"subsystems": ["left_arm"], "step_ms": 1});
    let refused = |text: &str| json!({"...": 0, "error": format!("~{text}")});
    for key in ["arguments", "parameters", "params", "kwargs", "input"] {
        let text = format!("the arguments belong under 'args', not under '{key}'");
        for given in [left.clone(), json!(left.to_string())] {
            let answer = client.ask(INVOKE, json!({"name": "assemble", key: given}));
            expect(key, &refused(&text), &answer);
        }
        let both = json!({"name": "assemble", "args": {}, key: left});
        expect(key, &refused(&text), &client.ask(INVOKE, both));
        // What brings to safety is carried out as it was meant.
        let safe = client.ask(INVOKE, json!({"name": "brake", key: {"ms": 2}}));
        expect(key, &json!({"...": 0, "result": {"held_ms": 2}}), &safe);
        // No arguments are no arguments.
        let none = client.ask(INVOKE, json!({"name": "ping", key: {}}));
        expect(key, &json!({"...": 0, "result": {"pong": true}}), &none);
    }
    let call = json!({"toolbox_id": "testbed", "name": "assemble", "args": left});
    let text = "the arguments belong under 'kwargs', not under 'args'";
    expect(
        "call",
        &refused(text),
        &client.ask("ovos.persona.tools.call", call),
    );
    let beside = json!({"name": "assemble", "subsystems": ["left_arm"]});
    let text = "unexpected key 'subsystems' next to 'args', which takes all arguments";
    expect("beside", &refused(text), &client.ask(INVOKE, beside));
    let plan = json!({"name": "assemble", "parameters": left});
    expect(
        "plan",
        &refused("the arguments belong under 'args'"),
        &client.ask("ovos.tools.plan", plan),
    );
    let plan = client.ask(
        "ovos.tools.plan",
        json!({"name": "add", "args": {"a": 1, "b": 1, "c": 1}}),
    );
    expect("plan", &json!({"...": 0, "ignored": ["c"]}), &plan);
}

/// A result is no form of a client: it is neither parsed nor taken for "not given".
#[test]
fn values_from_results_are_read_as_they_are() {
    let (_world, mut client) = world();
    for (from, error) in [
        (
            json!("echo.text"),
            "the arguments of a step are an object, got \"{}\"",
        ),
        (json!({"ms": {"$from": "echo.text"}}), "ms: expected integer"),
    ] {
        let args = if from.is_string() {
            json!({"$from": from})
        } else {
            from
        };
        let steps = json!([{"id": "echo", "name": "echo", "args": {"text": "{}"}}, {"id": "mark", "name": "set_mark", "args": args}]);
        let run = client.ask("ovos.tools.run", json!({"steps": steps}));
        expect(
            "run",
            &json!({"...": 0, "steps": ["*", {"...": 0, "status": "failed", "error": format!("~{error}")}]}),
            &run,
        );
    }
}

#[test]
fn the_command_line_warns_of_what_was_ignored() {
    let world = World::start(&json!({}));
    let ran = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ovos-tools"));
        let out = command
            .args(arguments)
            .args(["--bus", &world.url()])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.success(), text(&out.stdout), text(&out.stderr))
    };
    let warning = "ignored arguments that the tool does not have: c";
    for arguments in [
        &["invoke", "add", "a=1", "b=2", "c=3"][..],
        &["plan", "add", "a=1", "b=2", "c=3"],
    ] {
        let (good, _, output) = ran(arguments);
        assert!(good && output.contains(warning), "{arguments:?}: {output}");
    }
    let (good, out, output) = ran(&["invoke", "ping", ""]);
    assert!(
        good && out.contains("pong") && !output.contains("ignored"),
        "{out} {output}"
    );
    let (good, _, output) = ran(&["invoke", "set_mark", "mss=5"]);
    assert!(!good && output.contains("did you mean 'ms'"), "{output}");
    let (_, out, _) = ran(&["invoke", "fail", "--json"]);
    assert!(!out.contains("error_detail"), "{out}");
}
