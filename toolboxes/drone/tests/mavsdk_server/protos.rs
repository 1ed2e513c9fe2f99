//! Our protocol files use MAVSDK's numbers: every service, message, field and enum value is compared with the
//! descriptors in the published Python package `mavsdk-grpc`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use drone::mavsdk::DESCRIPTORS;
use prost::Message as _;

/// The Python interpreter of the environment that `scripts/venv.sh` makes.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-mavsdk/bin/python");
    python.exists().then_some(python)
}

/// One line a fact: `service method input output stream`, `message field number type label`, `enum value number`.
const READ: &str = r#"
import importlib, sys
from google.protobuf import descriptor_pool, descriptor_pb2
for name in "core info action offboard mission geofence camera events mavlink_direct param telemetry".split():
    importlib.import_module(f"mavsdk_grpc.{name}_pb2")
def enum(e):
    for v in e.values: print("enum", e.full_name, v.name, v.number)
def message(m):
    for f in m.fields:
        kind = f.message_type.full_name if f.message_type else f.enum_type.full_name if f.enum_type else ""
        print("field", m.full_name, f.name, f.number, f.type, "repeated" if f.is_repeated else "single", kind)
    for e in m.enum_types: enum(e)
    for n in m.nested_types: message(n)
for name in "core info action offboard mission geofence camera events mavlink_direct param telemetry".split():
    file = importlib.import_module(f"mavsdk_grpc.{name}_pb2").DESCRIPTOR
    for m in file.message_types_by_name.values(): message(m)
    for e in file.enum_types_by_name.values(): enum(e)
    for s in file.services_by_name.values():
        for r in s.methods: print("rpc", s.full_name, r.name, r.input_type.full_name, r.output_type.full_name, r.server_streaming)
"#;

fn ours() -> BTreeSet<String> {
    use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorSet};
    fn enumeration(scope: &str, found: &EnumDescriptorProto, facts: &mut BTreeSet<String>) {
        for value in &found.value {
            facts.insert(format!(
                "enum {scope}.{} {} {}",
                found.name(),
                value.name(),
                value.number()
            ));
        }
    }
    fn message(scope: &str, found: &DescriptorProto, facts: &mut BTreeSet<String>) {
        let name = format!("{scope}.{}", found.name());
        for field in &found.field {
            let label = if field.label() == prost_types::field_descriptor_proto::Label::Repeated {
                "repeated"
            } else {
                "single"
            };
            let kind = field.type_name().trim_start_matches('.');
            facts.insert(format!(
                "field {name} {} {} {} {label} {kind}",
                field.name(),
                field.number(),
                field.r#type() as i32
            ));
        }
        for nested in &found.enum_type {
            enumeration(&name, nested, facts);
        }
        for nested in &found.nested_type {
            message(&name, nested, facts);
        }
    }
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let mut facts = BTreeSet::new();
    for file in &set.file {
        let package = file.package();
        file.message_type
            .iter()
            .for_each(|found| message(package, found, &mut facts));
        file.enum_type
            .iter()
            .for_each(|found| enumeration(package, found, &mut facts));
        for service in &file.service {
            for rpc in &service.method {
                facts.insert(format!(
                    "rpc {package}.{} {} {} {} {}",
                    service.name(),
                    rpc.name(),
                    rpc.input_type().trim_start_matches('.'),
                    rpc.output_type().trim_start_matches('.'),
                    if rpc.server_streaming() { "True" } else { "False" },
                ));
            }
        }
    }
    facts
}

#[test]
fn our_numbers_are_those_of_the_published_package() {
    let Some(python) = python() else {
        skip::skip("mavsdk", "no .venv-mavsdk (scripts/venv.sh makes it)");
        return;
    };
    let read = Command::new(python).args(["-c", READ]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let theirs: BTreeSet<String> = String::from_utf8(read.stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim_end().to_string())
        .collect();
    let ours: BTreeSet<String> = ours()
        .into_iter()
        .map(|line| line.trim_end().to_string())
        .collect();
    let differing: Vec<&String> = ours.difference(&theirs).collect();
    assert!(
        ours.len() > 250,
        "only {} facts were read from our protos",
        ours.len()
    );
    assert!(differing.is_empty(), "not what mavsdk-grpc says: {differing:#?}");
}
