//! Compares recorded frames of a dialect with their expected meaning.

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};

use crate::dialect::{Dialect, Meaning, VoiceCall};
use crate::kind::kind_of;

/// Checks each line of a recording, `{"frame": ..., "heard": [...]}`. `"heard": null` means that the frame is dropped before it is
/// parsed.
#[track_caller]
pub(crate) fn check(dialect: &dyn Dialect, recording: &str) {
    let mut checked = 0;
    for line in recording.lines() {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let frame = &row["frame"];
        let text = frame.to_string();
        let is_read = kind_of(&text).is_some_and(|kind| dialect.reads(kind));
        let meanings = match is_read {
            true => Value::from_iter(dialect.parse(frame).iter().map(meaning_json)),
            false => Value::Null,
        };
        assert_eq!(meanings, row["heard"], "{text}");
        checked += 1;
    }
    assert!(checked > 10, "only {checked} frames were found");
}

fn meaning_json(heard: &Meaning) -> Value {
    match heard {
        Meaning::IfStop(asked) => json!({ "if_stop": meaning_json(&Meaning::Call(asked.clone())) }),
        Meaning::Floor { taken } => json!({ "floor": taken }),
        Meaning::SpokeTooSoon => json!("spoke too soon"),
        Meaning::Chat { id, group } => json!({"chat": id, "group": group}),
        Meaning::Call(VoiceCall {
            id,
            name,
            arguments,
            wants_answer,
            turn,
        }) => {
            let arguments: Result<&Object, &String> = arguments.as_ref();
            let mut call = json!({"call": id, "name": name, "wants_answer": wants_answer});
            match arguments {
                Ok(object) => call["arguments"] = Value::Object(object.clone()),
                // The rest is text of the parser.
                Err(error) => call["wrong"] = json!(error.split(';').next()),
            }
            if let Some(turn) = turn {
                call["turn"] = json!(turn);
            }
            call
        }
        Meaning::Cancel(ids) => json!({ "cancel": ids }),
        Meaning::Interrupted => json!("interrupted"),
        Meaning::ToolsRefused(why) => json!({ "tools_refused": why }),
        Meaning::Complaint(complaint) => json!({ "complaint": complaint }),
    }
}
