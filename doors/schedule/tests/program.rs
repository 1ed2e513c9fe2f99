//! What the program says without a bus. What it does with one is tested in `tests/doors/schedule` of the service.

use std::process::Command;

#[test]
fn its_help_is_that_of_a_subcommand() {
    let program = env!("CARGO_BIN_EXE_ovos-tools-schedule");
    let output = Command::new(program)
        .arg("--help")
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for part in ["Usage: ovos-tools schedule", "--bus <URL>"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}
