//! What a recogniser sees, and an SO-101 picks up.

use serde_json::{Value, json};

use crate::points::Arm;
use crate::reach::tip;
use crate::things::{answered, put};

/// A recogniser that knows the things of a simulator, as the example's questions and answers go.
struct Recogniser {
    python: std::process::Child,
    answers: std::io::BufReader<std::process::ChildStdout>,
    _things: tempfile::TempDir,
}

impl Recogniser {
    fn start(things: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("things.json");
        std::fs::write(&file, things.to_string()).unwrap();
        let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recogniser.py");
        let mut python = std::process::Command::new("python3")
            .arg(example)
            .arg(file)
            .arg("--lines")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let answers = std::io::BufReader::new(python.stdout.take().unwrap());
        Self {
            python,
            answers,
            _things: folder,
        }
    }

    fn answer(&mut self, question: &Value) -> Value {
        use std::io::{BufRead as _, Write as _};
        writeln!(self.python.stdin.as_mut().unwrap(), "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Recogniser {
    fn drop(&mut self) {
        drop(self.python.stdin.take());
        self.python.wait().unwrap();
    }
}

#[test]
fn what_the_example_recogniser_sees_is_listed_and_picked() {
    let arm = Arm::new();
    let robot = arm.open();
    let things = json!({"objects": [
        {"name": "cup", "bearing": 10, "distance": 0.3, "at": [0.23, -0.05, 0.04]},
        {"name": "lamp", "bearing": -30, "distance": 2.0, "at": [1.7, 1.0, 0.5]},
    ]});
    let recogniser = std::sync::Mutex::new(Recogniser::start(&things));
    robot.respond("ovos.robot.recognise", move |question| {
        Some(Ok(recogniser.lock().unwrap().answer(&question)))
    });
    let seen = answered(&robot, "what_is_there", json!({}));
    assert_eq!(seen["success"], true, "{seen:#}");
    let cup = &seen["data"]["things"][0];
    assert_eq!(
        (&cup["name"], &cup["bearing_degrees"]),
        (&json!("cup"), &json!(-10.0)),
        "{seen:#}"
    );
    assert_eq!(cup["position"]["frame"], "right_arm", "{seen:#}");
    put(&arm, true);
    for (object, why) in [
        ("cup", None),
        ("lamp", Some("out of reach")),
        ("fork", Some("does not know where fork is")),
    ] {
        let picked = answered(&robot, "pick_object", json!({"object": object}));
        assert_eq!(picked["success"], why.is_none(), "{object}: {picked:#}");
        assert!(
            picked["message"]
                .as_str()
                .unwrap()
                .contains(why.unwrap_or_default()),
            "{object}: {picked:#}"
        );
    }
    let at = tip(&arm.angles());
    assert!(
        (at[0] - 0.23).hypot(at[1] + 0.05) < 0.04 && at[2] > 0.07,
        "{at:?}"
    );
}

#[test]
fn an_answer_of_another_shape_is_refused() {
    let arm = Arm::new();
    let robot = arm.open();
    for (answer, why) in [
        (
            json!({"things": "a cup"}),
            "otherwise than schemas/recognition says",
        ),
        (json!({"objects": []}), "missing field `things`"),
        (json!({"things": [{"angle": 5}]}), "missing field `name`"),
        (
            json!({"success": false, "message": "the camera is off"}),
            "the camera is off",
        ),
    ] {
        let response = answer.clone();
        robot.respond("ovos.robot.recognise", move |_| Some(Ok(response.clone())));
        let seen = answered(&robot, "what_is_there", json!({}));
        assert_eq!(seen["success"], false, "{answer}: {seen:#}");
        assert!(
            seen["message"].as_str().unwrap().contains(why),
            "{answer}: {seen:#}"
        );
    }
}
