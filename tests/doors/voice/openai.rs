//! Calls over OpenAI's protocol.

use serde_json::{Value, json};

use crate::voice::speech::Line;
use crate::voice::stage::{KEY, Stage, moves};

/// A response that ended like this, with one item for each call `[call_id, name, arguments]`.
pub(crate) fn done(line: &Line, response: &str, status: &Value, calls: &[[&str; 3]]) {
    let item = |[call_id, name, arguments]: &[&str; 3]| {
        json!({"id": format!("item_{call_id}"), "object": "realtime.item", "type": "function_call", "status": "completed",
            "call_id": call_id, "name": name, "arguments": arguments})
    };
    let output: Vec<Value> = calls.iter().map(item).collect();
    let mut response = json!({"object": "realtime.response", "id": response, "output": output});
    for (key, value) in status.as_object().unwrap() {
        response[key] = value.clone();
    }
    for [call_id, name, arguments] in calls {
        // It comes for every response, also for one that is interrupted.
        line.say(
            &json!({"type": "response.function_call_arguments.done", "event_id": "e", "response_id": "r",
            "item_id": "i", "output_index": 0, "call_id": call_id, "name": name, "arguments": arguments}),
        );
    }
    line.say(&json!({"type": "response.done", "event_id": "event", "response": response}));
}

/// The types of the next frames, and the outputs among them by call id.
#[track_caller]
fn next(line: &Line, count: usize) -> (Vec<String>, serde_json::Map<String, Value>) {
    let (mut kinds, mut outputs) = (Vec::new(), serde_json::Map::new());
    line.until("the next frames", |frame| {
        kinds.push(frame["type"].as_str().unwrap().to_owned());
        if let Some(call_id) = frame["item"]["call_id"].as_str() {
            let output = frame["item"]["output"].as_str().unwrap();
            outputs.insert(call_id.to_owned(), serde_json::from_str(output).unwrap());
        }
        (kinds.len() == count).then_some(())
    });
    (kinds, outputs)
}

#[test]
fn only_calls_of_complete_responses_run() {
    let stage = Stage::new(&json!({"interrupt": "cancel_motion"}));
    let _door = stage.door(&["openai", "--call", "rtc_1"]);
    let line = stage.speech.accept();
    assert_eq!(line.path, "/v1/realtime?call_id=rtc_1");
    assert_eq!(line.key, format!("Bearer {KEY}"));
    let tools = line.tools();
    assert_eq!(tools[..2], ["emergency_stop", "stop_moving"]);

    let complete = json!({"status": "completed"});
    let cut = |reason: &str| json!({"status": "cancelled", "status_details": {"type": "cancelled", "reason": reason}});
    done(
        &line,
        "resp_1",
        &cut("turn_detected"),
        &[["cut", "set_mark", "{}"]],
    );
    done(
        &line,
        "resp_2",
        &cut("client_cancelled"),
        &[["cancelled", "set_mark", "{}"]],
    );
    done(
        &line,
        "resp_3",
        &json!({"status": "incomplete"}),
        &[["half", "set_mark", "{}"]],
    );
    done(
        &line,
        "resp_4",
        &complete,
        &[
            ["sum", "add", r#"{"a": 1, "b": 2}"#],
            ["bad", "add", "{"],
            ["slow", "slow", r#"{"seconds": 0.1}"#],
        ],
    );
    // The voice speaks once, after the last answer.
    let (kinds, outputs) = next(&line, 4);
    assert_eq!(kinds[..3], ["conversation.item.create"; 3]);
    assert_eq!(kinds[3], "response.create");
    assert_eq!(outputs["sum"]["data"], json!({"result": 3}));
    assert_eq!(outputs["bad"]["success"], false);
    done(&line, "resp_5", &complete, &[["count", "count_marks", "{}"]]);
    let (_, outputs) = next(&line, 2);
    assert_eq!(outputs["count"]["data"], json!({"marks": 0}), "nothing else ran");

    // The same call again, and an interruption of what moves.
    done(&line, "resp_5", &complete, &[["count", "count_marks", "{}"]]);
    done(
        &line,
        "resp_6",
        &complete,
        &[["move", "assemble", &moves("left_arm").to_string()]],
    );
    stage.scene.until_moving("voice-openai-");
    done(&line, "resp_7", &cut("turn_detected"), &[]);
    let (kinds, outputs) = next(&line, 2);
    assert_eq!(kinds, ["conversation.item.create", "response.create"]);
    assert_eq!(outputs["move"]["success"], false, "{outputs:?}");
}

/// A stop does not wait for the rest of what the voice says, and is not lost when the user cuts that short.
#[test]
fn a_stop_is_run_at_once_and_also_when_its_response_is_cut() {
    let stage = Stage::new(&json!({}));
    let _door = stage.door(&["openai", "--call", "rtc_1"]);
    let line = stage.speech.accept();
    line.tools();
    let complete = json!({"status": "completed"});
    let cut =
        json!({"status": "cancelled", "status_details": {"type": "cancelled", "reason": "turn_detected"}});
    let moving = moves("left_arm").to_string();
    done(&line, "resp_1", &complete, &[["move", "assemble", &moving]]);
    stage.scene.until_moving("voice-openai-");

    line.say(&json!({"type": "response.created", "response": {"id": "resp_2", "status": "in_progress"}}));
    let item = |call_id: &str, name: &str| {
        json!({"type": "response.output_item.done", "response_id": "resp_2", "output_index": 0, "item": {"id": "i",
            "type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": "{}"}})
    };
    line.say(&item("early", "set_mark"));
    line.say(&item("stop", "stop_moving"));
    // The voice has the floor: it is not told to speak.
    let (kinds, outputs) = next(&line, 2);
    assert_eq!(kinds, ["conversation.item.create"; 2]);
    assert_eq!(outputs["stop"]["success"], true, "{outputs:?}");
    assert_eq!(outputs["move"]["success"], false, "{outputs:?}");
    done(
        &line,
        "resp_2",
        &cut,
        &[["early", "set_mark", "{}"], ["stop", "stop_moving", "{}"]],
    );
    let (kinds, _) = next(&line, 1);
    assert_eq!(kinds, ["response.create"]);

    done(&line, "resp_3", &cut, &[["emergency", "emergency_stop", "{}"]]);
    let (_, outputs) = next(&line, 2);
    assert_eq!(outputs["emergency"]["data"]["confirmed"], true, "{outputs:?}");
    done(&line, "resp_4", &complete, &[["count", "count_marks", "{}"]]);
    let (_, outputs) = next(&line, 2);
    assert_eq!(
        outputs["count"]["data"],
        json!({"marks": 0}),
        "only the stops ran"
    );
}
