//! The JSON Schemas in `schemas/` match the types. They are committed so that readers, client generators and reviews
//! see every change of the wire. What a toolbox lists is compared by a test of that toolbox, which builds nothing else
//! (`ovos_toolbox_sdk::testing::assert_tools_committed`); here is what holds for the tools of all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ovos_toolbox_wire::{
    Action, Complete, Conclusion, Effect, Event, Manifest, Plan, Progress, Report, Start, ToolDefinition,
    ToolList,
};
use ovos_tools::export::{ExportTool, Format, export};
use protocol::{Notice, Order};
use schemars::{Schema, schema_for};

/// The generated folders below `schemas/`.
const FOLDERS: [&str; 3] = ["abi", "bus", "protocol"];

fn abi() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([
        ("action", schema_for!(Action)),
        ("complete", schema_for!(Complete)),
        ("conclude", schema_for!(Conclusion)),
        ("event", schema_for!(Event)),
        ("manifest", schema_for!(Manifest)),
        ("plan", schema_for!(Plan)),
        ("progress", schema_for!(Progress)),
        ("report", schema_for!(Report)),
        ("start", schema_for!(Start)),
        ("tool", schema_for!(ToolDefinition)),
        ("tools", schema_for!(ToolList)),
    ])
}

fn protocol() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([("notice", schema_for!(Notice)), ("order", schema_for!(Order))])
}

fn expected() -> BTreeMap<PathBuf, String> {
    let bus = client::payload::schemas();
    let bus = bus
        .into_iter()
        .map(|(topic, schema)| (Path::new("bus").join(format!("{topic}.json")), schema));
    let abi = abi()
        .into_iter()
        .map(|(shape, schema)| (Path::new("abi").join(format!("{shape}.json")), schema));
    let protocol = protocol()
        .into_iter()
        .map(|(side, schema)| (Path::new("protocol").join(format!("{side}.json")), schema));
    let text = |schema| format!("{:#}\n", serde_json::Value::from(schema));
    bus.chain(abi)
        .chain(protocol)
        .map(|(path, schema)| (path, text(schema)))
        .collect()
}

fn committed(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a readable folder").path();
            let name = path.strip_prefix(root).expect("below the root").to_owned();
            found.insert(name, std::fs::read_to_string(&path).expect("a readable schema"));
        }
    }
    found
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let expected = expected();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        for folder in FOLDERS {
            // A schema whose type is gone goes too.
            _ = std::fs::remove_dir_all(root.join(folder));
            std::fs::create_dir_all(root.join(folder)).expect("the folder can be made");
        }
        for (path, text) in &expected {
            std::fs::write(root.join(path), text).expect("the schema can be written");
        }
    }
    let committed = committed(&root);
    let differing: Vec<&PathBuf> = expected
        .keys()
        .chain(committed.keys())
        .filter(|path| expected.get(*path) != committed.get(*path))
        .collect();
    assert!(
        differing.is_empty(),
        "these schemas are not what the types say: {differing:?}\nrefresh them with `UPDATE_SCHEMAS=1 cargo test --test contract schemas` \
         and look at the difference: it is a change of the wire"
    );
}

#[test]
fn every_schema_is_one() {
    for (path, text) in expected() {
        let schema = serde_json::from_str(&text).expect("JSON");
        assert!(
            jsonschema::meta::is_valid(&schema),
            "{} is not a JSON Schema",
            path.display()
        );
    }
}

/// The limit of the export that is part of every prompt: it costs the model's attention and the user's money.
const MOST_EXPORTED_BYTES: usize = 50_000;

#[test]
fn exported_tools_are_short_and_plain() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/toolboxes");
    let mut sizes = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        let text = std::fs::read_to_string(&path).expect("readable tools");
        let list: ToolList = serde_json::from_str(&text).expect("tools");
        let id = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a toolbox id");
        let offered = || list.tools.iter().filter(|tool| tool.effect != Effect::Resume);
        let schemas: Vec<_> = offered().map(ToolDefinition::shown_arguments).collect();
        let tools: Vec<ExportTool<'_>> = offered()
            .zip(&schemas)
            .map(|(tool, argument_schema)| ExportTool {
                exported_name: &tool.name,
                toolbox_id: id,
                name: &tool.name,
                description: &tool.description,
                argument_schema,
                output_schema: &tool.output_schema,
                effect: tool.effect,
            })
            .collect();
        let exported = export(Format::OpenaiChat, &tools);
        for tool in exported.as_array().expect("an array") {
            let text = tool.to_string();
            for keyword in ["oneOf", "title"] {
                assert!(
                    !text.contains(&format!("\"{keyword}\":")),
                    "{id}: `{keyword}` in {text}"
                );
            }
        }
        sizes.insert(id.to_owned(), exported.to_string().len());
    }
    let all: usize = sizes.values().sum();
    assert!(sizes.len() >= 6, "the tools of {:?}", sizes.keys());
    assert!(all < MOST_EXPORTED_BYTES, "{all} bytes are exported: {sizes:?}");
}

/// The tools of a toolbox that ships.
fn shipped(id: &str) -> Vec<ToolDefinition> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/toolboxes/{id}.json"));
    let text = std::fs::read_to_string(path).expect("readable tools");
    serde_json::from_str::<ToolList>(&text).expect("tools").tools
}

#[test]
fn every_tool_says_whose_it_is() {
    for id in ["robot", "ros", "drone"] {
        for tool in shipped(id) {
            let text = tool.description.to_lowercase();
            assert!(text.contains(id), "{id}: {} says {text:?}", tool.name);
        }
    }
    let greetings = [shipped("hello"), shipped("hello_c")].map(|tools| tools[0].description.clone());
    assert_ne!(greetings[0], greetings[1]);
}

/// The arguments of a schema that take numbers, with their texts.
fn numbers(path: &str, schema: &serde_json::Value, found: &mut Vec<(String, String)>) {
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let choices = part["anyOf"].as_array().cloned().unwrap_or_default();
        let kinds = std::iter::once(part)
            .chain(&choices)
            .map(|choice| choice["type"].to_string());
        if kinds
            .into_iter()
            .any(|kind| kind.contains("number") || kind.contains("integer"))
        {
            let text = part["description"].as_str().unwrap_or_default();
            found.push((path.clone(), text.to_lowercase()));
        }
        numbers(&path, part, found);
        numbers(&path, &part["items"], found);
    }
}

/// A model that takes left for right turns a machine the wrong way.
#[test]
fn every_angle_states_its_convention() {
    const ANGLES: [&str; 10] = [
        "angle",
        "bearing",
        "turn",
        "rotat",
        "yaw",
        "heading",
        "pan",
        "tilt",
        "deg",
        "direction",
    ];
    // Left is positive; a compass; a joint's own way; or how far, where another word says to which side.
    const CONVENTIONS: [&str; 7] = [
        "positive is left",
        "positive to the left",
        "positive is up",
        "compass",
        "positive is the way in which its joint",
        "clockwise",
        "in that direction",
    ];
    let mut checked = 0;
    for id in ["robot", "drone"] {
        for tool in shipped(id) {
            let mut found = Vec::new();
            numbers("", &tool.argument_schema, &mut found);
            for (path, text) in found {
                let name = path.rsplit('.').next().unwrap_or_default().to_owned();
                let is_angle =
                    ANGLES.iter().any(|word| name.contains(word)) || tool.name == "turn" && name == "target";
                if !is_angle {
                    continue;
                }
                checked += 1;
                let is_stated =
                    CONVENTIONS.iter().any(|words| text.contains(words)) || text.contains("to either side");
                assert!(is_stated, "{id}: {}{path}: {text:?}", tool.name);
            }
        }
    }
    assert!(checked >= 14, "only {checked} angles were found");
}
