//! The built libraries of the Rust and the C toolbox behave the same.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use ovos_toolbox_sdk::abi::status;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed, built};

fn rust() -> PathBuf {
    built("hello")
}

fn c() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hello_c");
    // One file per caller: tests run in parallel, and a loaded library must not be overwritten.
    let name = format!(
        "hello_c-{}.so",
        std::thread::current().name().unwrap_or("test").replace(':', "_")
    );
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // What a toolbox with a serial port includes: none of its names are those of hello_c.
    let flags = "CFLAGS=-O1 -Wall -Wextra -Werror -pedantic -include fcntl.h -include unistd.h";
    let made = Command::new("make")
        .args(["-B", "-C"])
        .arg(source)
        .args([format!("OUT={}", library.display()).as_str(), flags])
        .output()
        .expect("make (Debian: apt install build-essential)");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    library
}

fn check(library: &Path, id: &str, language: &str) {
    let toolbox = Harness::load(library, json!({"unknown": 1})).unwrap();
    let manifest = toolbox.manifest();
    assert_eq!(
        (manifest.id.as_str(), manifest.licence.as_str()),
        (id, "Apache-2.0")
    );
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes");
    assert_tools_committed(&toolbox, &committed.join(format!("{id}.json")));
    let tools = toolbox.tools();
    assert_eq!(tools.len(), 1, "{id}");
    assert_eq!(
        json!(tools[0]),
        json!({
            "name": id,
            "description": format!("Greets a person by name: the example in {language}."),
            "effect": "read",
            "argument_schema": {
                "title": "HelloArgs", "type": "object", "required": ["name"],
                "properties": {"name": {"title": "Name", "type": "string", "description": "Whom to greet."}},
            },
            "output_schema": {
                "title": "HelloOutput", "type": "object", "required": ["greeting"],
                "properties": {"greeting": {"title": "Greeting", "type": "string"}},
            },
        })
    );
    for name in ["Ada", "", "\"quoted\" \\ back", "{[,:]}", "héllo ☃\n", "name"] {
        let output = toolbox
            .call(id, json!({"other": {"name": [1, "}"]}, "name": name}))
            .unwrap();
        assert_eq!(output, json!({"greeting": format!("Hello, {name}!")}), "{id}");
    }
    for (args, expected) in [
        (json!({}), status::BAD_ARGS),
        (json!({"name": 3}), status::BAD_ARGS),
    ] {
        assert_eq!(
            toolbox.start(id, args.clone()).err().unwrap().status,
            expected,
            "{id} {args}"
        );
    }
    assert_eq!(
        toolbox.start("nope", json!({"name": "x"})).err().unwrap().status,
        status::UNKNOWN_TOOL
    );
    for broken in [
        "",
        "{",
        "}",
        "]]]",
        "\"",
        "{\"action\":{\"name\":\"",
        "{\"action\":{\"params\":{\"name\":\"\\",
    ] {
        assert!(toolbox.start_text(broken).is_err(), "{id} {broken}");
    }
    toolbox.cancel(1);
    toolbox.halt(&["all"], true).unwrap();
    toolbox.resume().unwrap();
    assert!(toolbox.close().is_clean(), "{id}");
}

#[test]
fn both_greet() {
    check(&rust(), "hello", "Rust");
    check(&c(), "hello_c", "C");
}

#[test]
fn one_symbol_is_exported() {
    for library in [rust(), c()] {
        let output = Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(&library)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let symbols: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .collect();
        assert_eq!(symbols, ["toolbox_entry_v1"], "{}", library.display());
    }
}
