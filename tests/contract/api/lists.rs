//! Lists, and answers that need no preparation (rows of tests/data/api_contract.json).

use serde_json::{Value, json};

use crate::api::{assert_covers_every_topic, status_of, world};
use crate::support::contract::{Client, World, expect, meets};

#[test]
fn answers_are_what_the_rows_say() {
    let (world, mut client) = world();
    let rows: Vec<Value> = serde_json::from_str(include_str!("../../data/api_contract.json")).unwrap();
    let topics = rows.iter().map(|row| row["topic"].as_str().unwrap());
    assert_covers_every_topic("tests/data/api_contract.json", topics);
    let mut wrong = Vec::new();
    for row in &rows {
        let answer = client.ask(row["topic"].as_str().unwrap(), row["data"].clone());
        if let Err(why) = meets(&row["answer"], &answer) {
            wrong.push(format!("{}: {why}", row["case"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n"),
        world.log()
    );
}

#[test]
fn every_tool_is_listed_and_can_be_called_by_each_of_its_names() {
    let (_world, mut client) = world();
    let list = client.ask("ovos.tools.list", json!({"detail": true}));
    for tool in list["tools"].as_array().unwrap() {
        expect(
            "list",
            &json!({
                "name": "*", "description": "*", "argument_schema": "*", "output_schema": "*", "toolbox_id": "*",
                "meta": {"exported": "*", "category": "*", "effect": "*", "timeout_ms": "*", "subsystems": "*"},
            }),
            tool,
        );
        let (toolbox_id, name) = (
            tool["toolbox_id"].as_str().unwrap(),
            tool["name"].as_str().unwrap(),
        );
        let portable = ovos_tools::names::portable_name(toolbox_id, name);
        let exported = tool["meta"]["exported"].as_str().unwrap().to_owned();
        for alias in [format!("{toolbox_id}__{name}"), portable, exported] {
            let found = client.ask("ovos.tools.get", json!({ "name": alias }));
            expect(
                &alias,
                &json!({"...": 0, "name": name, "toolbox_id": toolbox_id}),
                &found,
            );
        }
    }
    let plain = client.ask("ovos.tools.list", json!({"detail": "what is this"}));
    assert_eq!(
        plain["tools"].as_array().unwrap().len(),
        list["tools"].as_array().unwrap().len()
    );
    assert!(
        plain["tools"]
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool.get("meta").is_none())
    );
}

#[test]
fn a_list_is_filtered_by_toolbox_and_effect() {
    let (_world, mut client) = world();
    let names = |client: &mut Client, filter: Value| -> Vec<String> {
        let list = client.ask("ovos.tools.list", filter);
        let tools = list["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&mut client, json!({"effect": "motion"})), ["assemble"]);
    assert_eq!(
        names(
            &mut client,
            json!({"toolbox_id": "testbed_dup", "effect": "read"})
        ),
        ["dup"]
    );
    assert_eq!(
        names(
            &mut client,
            json!({"toolbox_id": "testbed_dup", "effect": "stop"})
        ),
        [""; 0]
    );
    assert_eq!(names(&mut client, json!({"toolbox_id": "elsewhere"})), [""; 0]);
    for (filter, expected) in [
        (
            json!({"effect": "moton"}),
            "~ValueError: 'effect' must be one of read, write, motion, safe, stop, resume, got \"moton\"",
        ),
        (
            json!({"toolbox_id": 5}),
            "~ValueError: 'toolbox_id' must be a string, got 5",
        ),
    ] {
        let list = client.ask("ovos.tools.list", filter);
        expect("list", &json!({ "error": expected }), &list);
    }
}

#[test]
fn tools_that_resume_are_for_an_operator() {
    let names = |tools: &Value| -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.as_array().unwrap().iter().map(name).collect()
    };
    for operator_tools in [false, true] {
        let world = World::start(&json!({"service": {"operator_tools": operator_tools}}));
        let mut client = world.client();
        let exported = client.ask("ovos.tools.export", json!({}));
        assert!(!names(&exported["tools"]).contains(&"reset_stop".to_owned()));
        client.send("ovos.persona.tools.discover", json!({}));
        for toolbox_id in ["testbed", "testbed_dup"] {
            let answer = client.until(toolbox_id, |frame| {
                frame["type"] == "ovos.persona.tools.discover.response"
                    && frame["data"]["toolbox_id"] == toolbox_id
            });
            assert!(!names(&answer["data"]["tools"]).contains(&"reset_stop".to_owned()));
        }

        client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed"}));
        let older = client.invoke("reset_stop", json!({"stop_id": "an older one"}));
        expect(
            "an older stop_id",
            &json!({"name": "reset_stop", "error": "*"}),
            &older,
        );
        let answer = client.invoke("reset_stop", json!({}));
        let latched = status_of(&mut client, "testbed")["latched"].clone();
        if operator_tools {
            expect(
                "reset",
                &json!({"name": "reset_stop", "result": {"...": 0, "success": true}}),
                &answer,
            );
            assert_eq!(latched, false);
        } else {
            expect(
                "reset",
                &json!({"name": "reset_stop", "error": "~PermissionError: "}),
                &answer,
            );
            assert_eq!(latched, true);
        }
    }
}

#[test]
fn unknown_and_repeated_keys_are_harmless() {
    let (_world, mut client) = world();
    let rows = [
        r#"{"type":"ovos.tools.invoke","data":{"name":"ping","colour":"red"},"context":%,"id":[1],"version":{}}"#,
        r#"{"type":"ovos.tools.list","data":{"name":"ping"},"context":%,"type":"ovos.tools.invoke"}"#,
        r#"{"data":{"name":"nope"},"context":{},"type":"ovos.tools.invoke","data":{"name":"ping"},"context":%}"#,
        r#" { "context" : % , "type" : "ovos.tools.\u0069nvoke" , "data" : {"name":"ping"} } "#,
    ];
    for row in rows {
        let context = client.context().to_string();
        client.say(&row.replace('%', &context));
        let n = client.last();
        expect(
            row,
            &json!({"name": "ping", "result": {"pong": true}}),
            &client.answer(n),
        );
    }
}

/// What a client gets that asks for page after page.
fn in_pages(client: &mut Client, topic: &str, data: &Value, limit: usize) -> Vec<Value> {
    let mut tools = Vec::new();
    let mut request = data.clone();
    request["limit"] = json!(limit);
    loop {
        let mut page = client.ask(topic, request.clone());
        let found = page["tools"].as_array_mut().unwrap();
        assert!(
            !found.is_empty() && found.len() <= limit,
            "{topic} {request}: {} tools",
            found.len()
        );
        tools.append(found);
        match page.get("next_cursor") {
            Some(cursor) => request["cursor"] = cursor.clone(),
            None => return tools,
        }
    }
}

#[test]
fn pages_make_up_the_list() {
    let world = World::start(&json!({"testbed": {"grown": 50}}));
    let mut client = world.client();
    for (topic, data) in [
        ("ovos.tools.list", json!({})),
        ("ovos.tools.list", json!({"detail": true})),
        ("ovos.tools.list", json!({"effect": "read"})),
        ("ovos.tools.list", json!({"toolbox_id": "testbed"})),
        ("ovos.tools.export", json!({})),
        ("ovos.tools.export", json!({"format": "mcp"})),
        (
            "ovos.tools.export",
            json!({"format": "openai", "names": ["add", "grown_7", "ping"]}),
        ),
    ] {
        let whole = client.ask(topic, data.clone());
        assert!(
            whole.get("next_cursor").is_none(),
            "{topic} {data}: only where `limit` is asked for"
        );
        let whole = whole["tools"].as_array().unwrap();
        for limit in [1, 7, whole.len(), 65_536] {
            assert_eq!(
                &in_pages(&mut client, topic, &data, limit),
                whole,
                "{topic} {data} by {limit}"
            );
        }
    }
    for (request, error) in [
        (
            json!({"limit": 0}),
            "~ValueError: 'limit' must be a whole number from 1 to 65536, got 0",
        ),
        (
            json!({"limit": "7"}),
            "~ValueError: 'limit' must be a whole number",
        ),
        (
            json!({"limit": 65_537}),
            "~ValueError: 'limit' must be a whole number",
        ),
        (
            json!({"limit": 7, "cursor": "page 2"}),
            "~ValueError: 'cursor' must be the next_cursor of an answer",
        ),
        (
            json!({"limit": 7, "cursor": 2}),
            "~ValueError: 'cursor' must be a string",
        ),
        (
            json!({"limit": 7, "cursor": "1-7"}),
            "~begin again without 'cursor'",
        ),
    ] {
        for topic in ["ovos.tools.list", "ovos.tools.export"] {
            expect(
                topic,
                &json!({ "error": error }),
                &client.ask(topic, request.clone()),
            );
        }
    }
}

/// A toolbox answers for itself, and so do its pages.
#[test]
fn discover_comes_in_pages_of_each_toolbox() {
    let world = World::start(&json!({"testbed": {"grown": 20}}));
    let mut client = world.client();
    let answers = |client: &mut Client, request: Value, of: &[&str]| -> Vec<Value> {
        client.send("ovos.persona.tools.discover", request);
        of.iter()
            .map(|toolbox_id| {
                let answer = client.until(toolbox_id, |frame| {
                    frame["type"] == "ovos.persona.tools.discover.response"
                        && frame["data"]["toolbox_id"] == *toolbox_id
                });
                answer["data"].clone()
            })
            .collect()
    };
    let both = ["testbed", "testbed_dup"];
    let whole = answers(&mut client, json!({}), &both);
    let pages = answers(&mut client, json!({"limit": 10}), &both);
    for (whole, first) in whole.iter().zip(pages) {
        assert!(whole.get("next_cursor").is_none());
        let toolbox_id = whole["toolbox_id"].as_str().unwrap();
        let mut tools = first["tools"].as_array().unwrap().clone();
        let mut cursor = first.get("next_cursor").cloned();
        while let Some(at) = cursor {
            let next = answers(&mut client, json!({"limit": 10, "cursor": at}), &[toolbox_id]);
            tools.extend(next[0]["tools"].as_array().unwrap().iter().cloned());
            cursor = next[0].get("next_cursor").cloned();
        }
        assert_eq!(&Value::from(tools), &whole["tools"], "{toolbox_id}");
    }
}

/// A client that reads on after a change gets the list that it began, not a mixture.
#[test]
fn a_list_that_was_begun_goes_on_as_it_was() {
    let (_world, mut client) = world();
    let before = client.ask("ovos.tools.list", json!({}));
    let first = client.ask("ovos.tools.list", json!({"limit": 3}));
    client.invoke("grow", json!({"tools": 5}));
    let mut request = json!({"limit": 65_536});
    while client.ask("ovos.tools.list", json!({})) == before {}
    request["cursor"] = first["next_cursor"].clone();
    let rest = client.ask("ovos.tools.list", request);
    let all = [
        first["tools"].as_array().unwrap().as_slice(),
        rest["tools"].as_array().unwrap(),
    ]
    .concat();
    assert_eq!(Value::from(all), before["tools"]);
}

/// Two askers tell their answers apart under every topic; without a call_id an answer has the keys of before.
#[test]
fn every_answer_repeats_the_call_id_of_its_request() {
    let (_world, mut client) = world();
    let stop_id =
        client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed_dup"}))["toolboxes"][0]["stop_id"]
            .clone();
    let add = json!({"name": "add", "args": {"a": 1, "b": 2}});
    let call = json!({"toolbox_id": "testbed", "name": "add", "kwargs": {"a": 1, "b": 2}});
    let step = json!({"steps": [{"id": "a", "name": "add", "args": {"a": 1, "b": 2}}]});
    let rows = [
        ("ovos.tools.list", json!({})),
        ("ovos.tools.list", json!({"effect": "wrong"})),
        ("ovos.tools.get", json!({"name": "add"})),
        ("ovos.tools.get", json!({"name": "add", "detail": true})),
        ("ovos.tools.get", json!({"name": "nope"})),
        ("ovos.tools.plan", add.clone()),
        ("ovos.tools.plan", step.clone()),
        ("ovos.tools.plan", json!({})),
        ("ovos.tools.export", json!({"format": "mcp"})),
        ("ovos.tools.export", json!({"format": "nope"})),
        ("ovos.tools.status", json!({})),
        ("ovos.tools.reload", json!({})),
        ("ovos.tools.invoke", add),
        ("ovos.tools.invoke", json!({"name": "nope"})),
        ("ovos.tools.invoke", json!({"name": "add", "args": 5})),
        ("ovos.tools.run", step),
        ("ovos.tools.run", json!({"steps": 5})),
        ("ovos.persona.tools.discover", json!({})),
        ("ovos.persona.tools.call", call),
        (
            "ovos.persona.tools.testbed.call",
            json!({"name": "add", "kwargs": {"a": 1, "b": 2}}),
        ),
        (
            "ovos.tools.resume",
            json!({"toolbox_id": "testbed_dup", "stop_id": stop_id}),
        ),
        ("ovos.tools.resume", json!({})),
        ("ovos.tools.stop", json!({"toolbox_id": "testbed_dup"})),
        (
            "ovos.tools.stop",
            json!({"toolbox_id": "testbed_dup", "padding": "x".repeat(100 << 10)}),
        ),
        ("mycroft.ovos_tools.is_ready", json!({})),
        ("mycroft.ovos_tools.all_loaded", json!({})),
    ];
    // A cancel's own `call_id` is that of the call to end; see below.
    let topics = rows.iter().map(|(topic, _)| *topic).chain(["ovos.tools.cancel"]);
    assert_covers_every_topic("the table of call ids", topics);
    for (number, (topic, data)) in rows.into_iter().enumerate() {
        let call_id = format!("asker-{number}");
        let mut with = data.clone();
        with["call_id"] = json!(call_id);
        let answer = client.ask(topic, with);
        assert_eq!(answer["call_id"], json!(call_id), "{topic} {data}");
        if topic != "ovos.tools.resume" {
            let without = client.ask(topic, data.clone());
            assert!(without.get("call_id").is_none(), "{topic} {data}: {without}");
        }
    }
    // What is no call_id is not repeated; a call says so.
    let list = client.ask("ovos.tools.list", json!({"call_id": "not allowed"}));
    assert!(list.get("call_id").is_none(), "{list}");
    let cancelled = client.ask("ovos.tools.cancel", json!({"call_id": "nope"}));
    assert_eq!(cancelled["call_id"], "nope");
}
