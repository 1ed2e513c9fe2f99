//! The codec and the hashes, judged by the published rosbags and by ROS 2's own wheels.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "each test program uses its part")]
#[path = "support/python.rs"]
mod python;

use std::process::Command;

use ros_graph::cdr::{Cdr, Order};
use ros_graph::definition::TypeName;
use ros_graph::library::Library;
use serde_json::Value;

/// rosbags writes the text of a type and of all that it contains with these lines between them.
const BETWEEN: &str = "================================================================================\nMSG: ";

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
    let Some(python) = python::robots() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/rosbags_codec.py");
    // None of the messages has a wide text: rclpy judges those.
    let cdr = Cdr::default();
    let (mut same, mut all) = (0, 0);
    for distribution in ["humble", "jazzy", "kilted", "lyrical"] {
        let output = Command::new(&python).args([script, distribution]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let name: TypeName = case["name"].as_str().unwrap().parse().unwrap();
            let shape = library(&name, case["text"].as_str().unwrap()).shape(&name).unwrap();
            for (order, theirs) in [(Order::Little, bytes(&case["little"])), (Order::Big, bytes(&case["big"]))] {
                all += 1;
                let ours = cdr.encode_as(&shape, &case["value"], order);
                let mut ours = ours.unwrap_or_else(|error| panic!("{name}: {error}\n{}", case["value"]));
                let read = cdr.decode(&shape, &theirs, order);
                let read = read.unwrap_or_else(|error| panic!("{name}: {error}\n{}", case["value"]));
                // Padding at the end is allowed and not always written.
                ours.resize(theirs.len().max(ours.len()), 0);
                assert_eq!(ours, theirs, "{name} {order:?}\n{}", case["value"]);
                assert!(alike(&read, &case["value"]), "{name} {order:?}\n{read}\n{}", case["value"]);
                same += 1;
            }
        }
    }
    println!("{same} of {all} the same");
    assert!(all > 10_000, "only {all} values");
}

/// The same values; 1 and 1.0 are one number.
fn alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(name, value)| theirs.get(name).is_some_and(|other| alike(value, other)))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| alike(ours, theirs))
        }
        (Value::Number(ours), Value::Number(theirs)) => {
            #[allow(clippy::cast_possible_truncation, reason = "singles are compared as singles")]
            let single = |number: &serde_json::Number| number.as_f64().map(|number| number as f32);
            ours == theirs || (ours.as_i64().is_none() && single(ours) == single(theirs)) || ours.as_f64() == theirs.as_f64()
        }
        _ => ours == theirs,
    }
}
