//! What the program says without a bus. What it does with one is tested in `tests/doors/voice` of the service.

use std::process::Command;

#[test]
fn its_help_names_both_speech_services() {
    let program = env!("CARGO_BIN_EXE_ovos-tools-voice");
    let output = Command::new(program)
        .arg("--help")
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for part in ["hume", "openai"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}
