//! The example of a program in Rust, which is made of `crates/program`.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::scene::{Entry, Scene};
use crate::support::status;

#[test]
fn the_example_in_rust_is_called_restarted_and_closed() {
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name("program_in_rust");
    assert!(
        program.is_file(),
        "no {}: cargo build --package program_in_rust",
        program.display()
    );
    let entry = Entry {
        more: json!({ "command": [program], "args": [] }),
        ..Entry::of("dice")
    };
    let mut scene = Scene::ready(&[entry]);
    let roll = |sides: u64| json!({ "name": "roll", "args": { "sides": sides }, "toolbox_id": "dice" });
    let answer = scene.client.ask("ovos.tools.invoke", &roll(1));
    assert_eq!(answer["result"], json!({ "number": 1 }), "{answer}");
    // It is killed, and another one serves.
    let toolbox = scene.until("dice", "process", |_| true);
    status::signal(&toolbox, Signal::KILL);
    scene.until("dice", "a restart", |toolbox| {
        toolbox["generation"] == 2 && toolbox["state"] == "ready"
    });
    let answer = scene.client.ask("ovos.tools.invoke", &roll(6));
    let number = answer["result"]["number"].as_u64();
    assert!(number.is_some_and(|number| (1..=6).contains(&number)), "{answer}");
    // It closes as it is asked to: nothing is said of it that is said of one that crashed.
    scene.configure(&[]);
    let report = scene.reload();
    assert_eq!(report["removed"], json!(["dice"]), "{report}");
}
