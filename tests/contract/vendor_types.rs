//! Promise: the vendors' own published types accept the output of `export`.
//!
//! Runs `tests/python/export_types.py` with the packages of `tests/python/requirements-export.txt`. Without them the
//! test fails and tells how to get them: a skipped check would look like a passed one. Only `make test` on a machine
//! without Python skips it, and reports that.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ovos_toolbox_wire::Effect;
use ovos_tools::export::{ExportTool, Format, export};
use ovos_tools::names::{NamedTool, Names};
use serde_json::{Map, Value, json};

#[test]
fn vendors_accept_what_we_export() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("OVOS_TOOLS_SKIP_PYTHON").is_some() {
        skip::skip(
            "python",
            "OVOS_TOOLS_SKIP_PYTHON is set, so no export is held against the vendors' types",
        );
        return;
    }
    let python = checkout.join(".venv-vendors/bin/python");
    assert!(
        python.is_file(),
        "no interpreter at {}: run `make venv`",
        python.display()
    );

    let mut child = Command::new(&python)
        .arg(checkout.join("tests/python/export_types.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(exports().to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{stdout}{stderr}\n(a missing module: run `make venv`; interpreter {})",
        python.display()
    );
    for converter in [
        "home_assistant",
        "google_genai",
        "openai_agents",
        "langchain",
        "pydantic_ai",
    ] {
        let expected = format!("{converter} converts {} tools", tools().len());
        assert!(stdout.contains(&expected), "{converter}: {stdout}");
    }
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Json) {
        assert!(
            stdout.contains(&format!("{format}: {} tools fit", tools().len())),
            "{format} was not checked: {stdout}"
        );
    }
}

/// Every format's export of the same tools, by format name.
fn exports() -> Value {
    let tools = tools();
    let named: Vec<NamedTool<'_>> = tools
        .iter()
        .map(|(toolbox_id, name, ..)| NamedTool {
            toolbox_id,
            name,
            stops: false,
            yields: false,
        })
        .collect();
    let names = Names::new(&named, []);
    let exported: Vec<ExportTool<'_>> = tools
        .iter()
        .zip(names.call_names())
        .map(
            |((toolbox_id, name, argument_schema, output_schema), exported_name)| ExportTool {
                exported_name,
                toolbox_id,
                name,
                description: "Does what it is called; \"quotes\", ümlauts and\nlines.",
                argument_schema,
                output_schema,
                effect: if name == "get_state" {
                    Effect::Read
                } else {
                    Effect::Motion
                },
            },
        )
        .collect();
    Value::Object(
        Format::ALL
            .iter()
            .map(|format| (format.to_string(), export(*format, &exported)))
            .collect::<Map<_, _>>(),
    )
}

/// Toolbox, name, argument schema, output schema: plain, recursive, odd and nearly empty ones, and those that are shipped.
#[allow(clippy::unwrap_used, reason = "a test helper that fails fails the test")]
fn tools() -> Vec<(String, String, Value, Value)> {
    let odd = odd_tools().into_iter();
    let mut tools: Vec<_> = odd
        .map(|(toolbox_id, name, arguments, output)| {
            (toolbox_id.to_owned(), name.to_owned(), arguments, output)
        })
        .collect();
    for toolbox in ["robot", "ros", "drone", "gstreamer", "math"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/toolboxes/{toolbox}.json"));
        let schemas: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for tool in schemas["tools"].as_array().unwrap() {
            tools.push((
                format!("shipped-{toolbox}"),
                tool["name"].as_str().unwrap().to_owned(),
                tool["argument_schema"].clone(),
                tool["output_schema"].clone(),
            ));
        }
    }
    tools
}

fn odd_tools() -> Vec<(&'static str, &'static str, Value, Value)> {
    let object = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let recursive = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Move", "type": "object",
        "properties": {"points": {"type": "array", "items": {"$ref": "#/$defs/Point"}}, "speed": {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}], "default": null}},
        "required": ["points"], "$defs": {"Point": {"type": "object", "properties": {
            "x": {"type": "number"}, "next": {"$ref": "#/$defs/Point"}}}}});
    let behind_reference = json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"enum": [1, "b"]}}}}});
    vec![
        (
            "math",
            "add",
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
            object.clone(),
        ),
        (
            "sums",
            "add",
            json!({"type": "object"}),
            json!({"type": "integer"}),
        ),
        ("robot", "move_arm", recursive.clone(), recursive),
        ("robot", "get_state", json!({}), json!(true)),
        (
            "robot",
            "größe.ändern/a name longer than any vendor takes, by quite a lot",
            behind_reference,
            object,
        ),
    ]
}
