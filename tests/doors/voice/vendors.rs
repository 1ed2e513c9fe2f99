//! The vendors' own published types accept what the door says, and servers made of them drive it.

use serde_json::json;

use crate::support::process::Process;
use crate::support::python::voice_python;
use crate::voice::stage::{Stage, binary};

fn driven(script: &str, service: &str) {
    let Some(python) = voice_python() else { return };
    let stage = Stage::new(&json!({"long_calls": "announce", "announce_after_ms": 1500}));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/python")
        .join(script);
    let mut command = stage.scene.sandbox.command(python);
    let door = binary();
    command
        .arg("-u")
        .arg(path)
        .arg(door)
        .arg(stage.scene.url())
        .arg(format!("KEY_OF_{service}"));
    let output = Process::start(script, &stage.scene.sandbox, command).finish();
    println!("{output}");
    assert!(output.contains("everything is as promised"), "{output}");
}

#[test]
fn hume_types_accept_what_the_door_says() {
    driven("voice_hume.py", "hume");
}

#[test]
fn openai_types_accept_what_the_door_says() {
    driven("voice_openai.py", "openai");
}
