//! What one conversation asks for begins in the order of arrival; a stop ends what arrived before it, whatever stands beside its
//! name; and a list of tools that the speech service refuses is told.

use serde_json::{Map, Value, json};

use crate::stop_arguments::STOP_ARGUMENTS;
use crate::voice::openai::done;
use crate::voice::speech::Line;
use crate::voice::stage::{Stage, moves};

/// A call: its id, the name of its tool and its arguments.
type Asked = (String, &'static str, Value);

/// How a burst of calls comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// Hume: a frame for each.
    Frames,
    /// Realtime: all calls of one response.
    Response,
    /// Realtime: a response for each.
    Responses,
}

const WAYS: [How; 3] = [How::Frames, How::Response, How::Responses];

/// How many bursts each way gets.
fn bursts() -> u64 {
    std::env::var("BURSTS").map_or(100, |number| number.parse().unwrap())
}

/// Runs `what` with a conversation of each kind.
fn each(stage: &mut Stage, mut what: impl FnMut(&mut Stage, &Line, How)) {
    for how in WAYS {
        let (_door, line) = if how == How::Frames {
            stage.joined()
        } else {
            let door = stage.door(&["openai", "--call", "rtc_1"]);
            let line = stage.speech.accept();
            line.tools();
            (door, line)
        };
        what(stage, &line, how);
    }
}

/// Asks for all of these without waiting; returns the answers by their ids, as the model reads them.
fn burst(line: &Line, how: How, calls: &[Asked]) -> Map<String, Value> {
    let texts: Vec<String> = calls.iter().map(|(_, _, args)| args.to_string()).collect();
    let items: Vec<[&str; 3]> = calls
        .iter()
        .zip(&texts)
        .map(|((id, name, _), args)| [id.as_str(), name, args])
        .collect();
    let complete = json!({"status": "completed"});
    match how {
        How::Frames => calls
            .iter()
            .for_each(|(id, name, args)| line.call(id, name, args)),
        How::Response => done(line, "resp", &complete, &items),
        How::Responses => items
            .iter()
            .for_each(|item| done(line, "resp", &complete, &[*item])),
    }
    let mut answers = Map::new();
    line.until("the answers", |frame| {
        if let Some((id, answer)) = answered(frame)
            && calls.iter().any(|(known, ..)| *known == id)
        {
            assert!(answers.insert(id, answer).is_none(), "answered twice: {frame}");
        }
        (answers.len() == calls.len()).then_some(())
    });
    answers
}

/// The call that a frame answers, and the answer as the model reads it.
fn answered(frame: &Value) -> Option<(String, Value)> {
    let read = |text: &Value| serde_json::from_str(text.as_str().unwrap()).unwrap();
    if let Some(id) = frame["item"]["call_id"].as_str() {
        return Some((id.to_owned(), read(&frame["item"]["output"])));
    }
    let id = frame["tool_call_id"].as_str()?;
    let answer = if frame["type"] == "tool_error" {
        json!({"success": false, "message": frame["content"]})
    } else {
        read(&frame["content"])
    };
    Some((id.to_owned(), answer))
}

#[test]
fn calls_begin_in_the_order_of_arrival() {
    let mut stage = Stage::new(&json!({}));
    each(&mut stage, |stage, line, how| {
        for burst in 0..bursts() {
            let calls: Vec<Asked> = (0..6)
                .map(|at| (format!("{burst}-{at}"), "add", json!({"a": burst, "b": at})))
                .collect();
            let answers = self::burst(line, how, &calls);
            for (at, (id, ..)) in calls.iter().enumerate() {
                assert_eq!(answers[id]["data"]["result"], burst + at as u64, "{id}, {how:?}");
            }
            let mut starts = Vec::new();
            stage.client.until("six calls", |message| {
                if message["type"] == "ovos.tools.invoke" && message["data"]["args"]["a"] == burst {
                    starts.push(message["data"]["args"]["b"].as_u64().unwrap());
                }
                (starts.len() == 6).then_some(())
            });
            assert_eq!(starts, [0, 1, 2, 3, 4, 5], "burst {burst}, {how:?}");
        }
    });
}

#[test]
fn stop_moving_ends_what_arrived_before_it_and_nothing_else() {
    let mut stage = Stage::new(&json!({}));
    each(&mut stage, |stage, line, how| {
        for burst in 0..bursts() {
            let short = json!({"subsystems": ["base"], "steps": 0, "step_ms": 2});
            let calls: Vec<Asked> = [
                ("assemble", moves("left_arm")),
                ("assemble", moves("right_arm")),
                ("stop_moving", json!({})),
                ("assemble", short),
            ]
            .into_iter()
            .enumerate()
            .map(|(at, (name, args))| (format!("{burst}-{at}"), name, args))
            .collect();
            let answers = self::burst(line, how, &calls);
            let worked: Vec<bool> = calls
                .iter()
                .map(|(id, ..)| answers[id]["success"] == true)
                .collect();
            assert_eq!(
                worked,
                [false, false, true, true],
                "burst {burst}, {how:?}: {answers:#?}"
            );
            let stopped = &answers[&calls[2].0]["data"];
            assert_eq!(
                *stopped,
                json!({"stopped": 2, "running": []}),
                "burst {burst}, {how:?}"
            );
        }
        let calls = stage.client.ask("ovos.tools.status", &json!({}))["calls"].clone();
        assert_eq!(calls, json!([]), "{how:?}");
    });
}

#[test]
fn every_stop_is_carried_out_whatever_its_arguments_are() {
    let mut stage = Stage::new(&json!({}));
    each(&mut stage, |stage, line, how| {
        if how == How::Responses {
            return;
        }
        for (number, form) in STOP_ARGUMENTS.iter().enumerate() {
            // The last is a tool of the toolbox.
            for name in ["emergency_stop", "stop_moving", "stop"] {
                let id = format!("{name}-{number}");
                let mut call = match how {
                    How::Frames => {
                        json!({"type": "tool_call", "tool_type": "function", "tool_call_id": id, "name": name,
                        "response_required": true})
                    }
                    _ => {
                        json!({"id": "i", "object": "realtime.item", "type": "function_call", "status": "completed",
                        "call_id": id, "name": name})
                    }
                };
                let key = if how == How::Frames {
                    "parameters"
                } else {
                    "arguments"
                };
                if let Some(form) = form {
                    call[key] = serde_json::from_str(form).unwrap();
                }
                if how == How::Response {
                    call = json!({"type": "response.done", "event_id": "e", "response": {"id": "r", "status": "completed",
                        "object": "realtime.response", "output": [call]}});
                }
                line.say(&call);
                let answer = line.until("the answer", |frame| {
                    answered(frame)
                        .filter(|(of, _)| *of == id)
                        .map(|(_, answer)| answer)
                });
                assert_eq!(answer["success"], true, "{name} {form:?}, {how:?}: {answer}");
                let toolboxes = stage.client.ask("ovos.tools.status", &json!({}))["toolboxes"].clone();
                let is_testbed = |toolbox: &&Value| toolbox["toolbox_id"] == "testbed";
                let testbed = toolboxes.as_array().unwrap().iter().find(is_testbed).unwrap();
                assert_eq!(
                    testbed["latched"],
                    name != "stop_moving",
                    "{name} {form:?}, {how:?}"
                );
                if name != "stop_moving" {
                    let resume = json!({"toolbox_id": "testbed", "stop_id": testbed["stop_id"]});
                    stage.client.ask("ovos.tools.resume", &resume);
                }
            }
        }
    });
}

#[test]
fn a_list_of_tools_that_is_refused_is_told_to_the_bus_and_at_last_to_the_user() {
    let refusals = [
        (
            &["openai", "--call", "rtc_1"][..],
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "too many tools",
                "param": "session.tools", "event_id": "ovos-tools"}}),
        ),
        (
            &["hume", "--chat", "c1"],
            json!({"type": "error", "code": "E0", "slug": "invalid_tools", "message": "too many tools"}),
        ),
    ];
    for (arguments, refusal) in refusals {
        let mut stage = Stage::new(&json!({}));
        let _door = stage.door(arguments);
        let line = stage.speech.accept();
        let mut tool_count = line.tools().len();
        loop {
            line.say(&refusal);
            let event = stage.client.until("the event", |message| {
                let is_it =
                    message["type"] == "ovos.tools.event" && message["data"]["kind"] == "voice_tools_refused";
                is_it.then(|| message["data"].clone())
            });
            let data = &event["data"];
            assert_eq!(event["toolbox_id"], "service");
            assert_eq!(data["dialect"], arguments[0], "{event}");
            assert_eq!(data["conversation"], arguments[2], "{event}");
            assert_eq!(data["refused"], tool_count, "{event}");
            assert!(
                data["why"].as_str().unwrap().contains("too many tools"),
                "{event}"
            );
            if data["now"] == 0 {
                assert_eq!(event["severity"], "error", "{event}");
                break;
            }
            assert_eq!(event["severity"], "warning", "{event}");
            let names = line.tools();
            assert_eq!(names[..2], ["emergency_stop", "stop_moving"]);
            assert_eq!(data["now"], names.len(), "{event}");
            tool_count = names.len();
        }
        let text = line.until("what the user is told", |frame| {
            let text = frame["text"]
                .as_str()
                .or(frame["item"]["content"][0]["text"].as_str())?;
            Some(text.to_owned())
        });
        assert!(text.contains("I have no tools"), "{text}");
    }
}
