//! The program as a person meets it who starts it by hand.

use std::process::Command;

#[test]
fn by_hand_it_says_who_starts_it() {
    for (arguments, code, expected) in [
        (
            &[][..],
            70,
            "ovos-tools starts it for an entry of service.programs",
        ),
        (&["--safe-stop"], 0, ""),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_program_in_rust"))
            .args(arguments)
            .output();
        let output = output.expect("it runs");
        let text = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
