//! The difference between two configurations.

use serde_json::json;

use crate::machine::{Machine, SYSTEM, USER};

#[test]
fn changes_name_what_differs() {
    let section = |drain: u64, digits: u64| json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"drain_ms": drain}, "math": {"digits": digits}, "same": {}}}});
    let machine = Machine::new(&[(USER, &section(1, 1).to_string())], &[]);
    let before = machine.load().unwrap();
    let drain = "PHAL.\"ovos-phal-plugin-tools\".service.drain_ms";
    for (file, keys, toolboxes) in [
        (section(1, 1), vec![], vec![]),
        (section(2, 1), vec![drain], vec![]),
        (section(1, 2), vec![], vec!["math"]),
        (json!({}), vec![drain], vec!["math"]),
        (
            json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"drain_ms": 1}, "math": 5}}}),
            vec![],
            vec!["math"],
        ),
    ] {
        machine.write(USER, &file.to_string());
        let changes = before.changes(&machine.load().unwrap());
        assert_eq!(
            (changes.keys, changes.toolboxes),
            (vec_of(&keys), vec_of(&toolboxes)),
            "{file}"
        );
    }
    let program = json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"drain_ms": 1, "programs": {"p": {"command": "p"}}}, "math": {"digits": 1}, "same": {}}}});
    machine.write(USER, &program.to_string());
    let changes = before.changes(&machine.load().unwrap());
    let added = "PHAL.\"ovos-phal-plugin-tools\".service.programs.p";
    assert_eq!((changes.keys, changes.programs), (vec![], vec![added.to_owned()]));
    // The same values in another file are no change.
    machine.write(USER, "{}");
    machine.write(SYSTEM, &section(1, 1).to_string());
    assert!(before.changes(&machine.load().unwrap()).is_empty());
}

fn vec_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
