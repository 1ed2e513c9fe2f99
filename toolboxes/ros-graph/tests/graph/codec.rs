//! The codec and the hashes, judged by the published rosbags and by ROS 2's own wheels.

use std::process::Command;

use ros_graph::cdr::{Cdr, Order};
use ros_graph::definition::TypeName;
use ros_graph::description::hash;
use ros_graph::library::Library;
use serde_json::Value;

use crate::python;

/// rosbags writes the text of a type and of all that it contains with these lines between them.
const BETWEEN: &str =
    "================================================================================\nMSG: ";

fn library(name: &TypeName, text: &str) -> Library {
    let mut library = Library::empty();
    let mut parts = text.split(BETWEEN);
    library.add_text(name, parts.next().unwrap_or_default()).unwrap();
    for part in parts {
        let (inner, text) = part.split_once('\n').unwrap();
        library.add_text(&inner.parse().unwrap(), text).unwrap();
    }
    library
}

fn bytes(digits: &Value) -> Vec<u8> {
    let digits = digits.as_str().unwrap();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Ten random values of every message of four distributions, in both orders, both ways.
#[test]
fn values_are_the_bytes_that_rosbags_has() {
    let Some(python) = python::rosbags() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/rosbags_codec.py");
    // None of the messages has a wide text: rclpy judges those.
    let cdr = Cdr::default();
    let (mut same, mut all) = (0, 0);
    for distribution in ["humble", "jazzy", "kilted", "lyrical"] {
        let output = Command::new(&python)
            .args([script, distribution])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let name: TypeName = case["name"].as_str().unwrap().parse().unwrap();
            let shape = library(&name, case["text"].as_str().unwrap())
                .shape(&name)
                .unwrap();
            for (order, theirs) in [
                (Order::Little, bytes(&case["little"])),
                (Order::Big, bytes(&case["big"])),
            ] {
                all += 1;
                let ours = cdr.encode_as(&shape, &case["value"], order);
                let mut ours = ours.unwrap_or_else(|error| panic!("{name}: {error}\n{}", case["value"]));
                let read = cdr.decode(&shape, &theirs, order);
                let read = read.unwrap_or_else(|error| panic!("{name}: {error}\n{}", case["value"]));
                // Padding at the end is allowed and not always written.
                ours.resize(theirs.len().max(ours.len()), 0);
                assert_eq!(ours, theirs, "{name} {order:?}\n{}", case["value"]);
                assert!(
                    alike(&read, &case["value"]),
                    "{name} {order:?}\n{read}\n{}",
                    case["value"]
                );
                same += 1;
            }
        }
    }
    println!("{same} of {all} the same");
    assert!(all > 10_000, "only {all} values");
}

/// Every message, service and action of ROS 2's own wheels has the hash that they say, from the text beside it.
#[test]
fn hashes_are_those_of_the_distribution() {
    let Some(python) = python::ros() else { return };
    let share = python.ancestors().nth(2).unwrap().join("share");
    let mut library = Library::empty();
    let read = library.add_folder(&share).unwrap();
    let (mut same, mut by_idl) = (0, 0);
    for package in std::fs::read_dir(&share).unwrap() {
        for kind in ["msg", "srv", "action"] {
            let Ok(files) = std::fs::read_dir(package.as_ref().unwrap().path().join(kind)) else {
                continue;
            };
            for file in files.map(|file| file.unwrap().path()) {
                if file.extension().is_none_or(|suffix| suffix != "json") {
                    continue;
                }
                let described: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
                for row in described["type_hashes"].as_array().unwrap() {
                    let name: TypeName = row["type_name"].as_str().unwrap().parse().unwrap();
                    match hash(&library, &name) {
                        Ok(ours) => assert_eq!(ours, row["hash_string"].as_str().unwrap(), "{name}"),
                        Err(_) => {
                            // A few of the tests of ROS have no text but that of IDL.
                            assert!(
                                !file.with_extension(kind).exists(),
                                "{name} of {}",
                                file.display()
                            );
                            by_idl += 1;
                            continue;
                        }
                    }
                    same += 1;
                }
            }
        }
    }
    println!("{read} files, {same} hashes the same, {by_idl} of types in IDL alone");
    assert!(same > 500 && by_idl < 20, "{same} {by_idl}");
}

/// The same values; 1 and 1.0 are one number.
fn alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(name, value)| theirs.get(name).is_some_and(|other| alike(value, other)))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| alike(ours, theirs))
        }
        (Value::Number(ours), Value::Number(theirs)) => {
            #[allow(clippy::cast_possible_truncation, reason = "singles are compared as singles")]
            let single = |number: &serde_json::Number| number.as_f64().map(|number| number as f32);
            ours == theirs
                || (ours.as_i64().is_none() && single(ours) == single(theirs))
                || ours.as_f64() == theirs.as_f64()
        }
        _ => ours == theirs,
    }
}
