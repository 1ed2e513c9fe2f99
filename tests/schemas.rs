//! The JSON Schemas in `schemas/` are what the types say. They are committed so that a reader, a client generator and a
//! review see every change of the wire; this test keeps them honest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ovos_toolbox_wire::{
    Action, Completion, Conclusion, Event, Manifest, Plan, Progress, Report, Start, ToolDefinition, ToolList,
};
use schemars::{Schema, schema_for};

fn abi() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([
        ("action", schema_for!(Action)),
        ("complete", schema_for!(Completion)),
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

fn expected() -> BTreeMap<PathBuf, String> {
    let bus = ovos_tools::api::schemas();
    let bus = bus
        .into_iter()
        .map(|(topic, schema)| (Path::new("bus").join(format!("{topic}.json")), schema));
    let abi = abi()
        .into_iter()
        .map(|(shape, schema)| (Path::new("abi").join(format!("{shape}.json")), schema));
    let text = |schema| format!("{:#}\n", serde_json::Value::from(schema));
    bus.chain(abi)
        .map(|(path, schema)| (path, text(schema)))
        .collect()
}

fn committed(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for folder in ["bus", "abi"] {
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
fn committed_schemas_are_what_the_types_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let expected = expected();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        for folder in ["bus", "abi"] {
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
        "these schemas are not what the types say: {differing:?}\nrefresh them with `UPDATE_SCHEMAS=1 cargo test --test schemas` \
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
