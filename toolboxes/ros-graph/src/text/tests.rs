use serde_json::{Value, json};

use super::parse;
use crate::definition::Definition;

fn message(text: &str) -> Result<Definition, String> {
    let name = "a_msgs/msg/A".parse().unwrap();
    parse(&name, text)
        .map(|mut parts| parts.remove(0))
        .map_err(|error| error.to_string())
}

#[test]
fn a_field_is_read_as_it_is_written() {
    for (line, of, default) in [
        ("float64 x", "float64", Value::Null),
        ("  int32\tx  5 # steps", "int32", json!(5)),
        ("char x 255", "uint8", json!(255)),
        ("string<=5[<=2] x", "string<=5[<=2]", Value::Null),
        ("wstring x \"# no comment\"", "wstring", json!("# no comment")),
        ("string x 'it\\'s'", "string", json!("it's")),
        ("string x plain text", "string", json!("plain text")),
        ("bool[2] x [true, false]", "bool[2]", json!([true, false])),
        ("float32[] x [1, -2.5]", "float32[]", json!([1.0, -2.5])),
        ("Pose[36] x", "a_msgs/msg/Pose[36]", Value::Null),
        ("geometry_msgs/Pose x", "geometry_msgs/msg/Pose", Value::Null),
        ("std_msgs/msg/Header x", "std_msgs/msg/Header", Value::Null),
        ("Header x", "std_msgs/msg/Header", Value::Null),
        ("uint64 x 18446744073709551615", "uint64", json!(u64::MAX)),
        ("uint8 x 0xFF", "uint8", json!(255)),
    ] {
        let definition = message(line).unwrap();
        let field = &definition.fields[0];
        assert_eq!(field.of.to_string(), of, "{line}");
        assert_eq!(field.default.clone().unwrap_or_default(), default, "{line}");
    }
}

#[test]
fn a_constant_is_read_as_it_is_written() {
    for (line, value) in [
        ("int32 X=-5", json!(-5)),
        ("uint8 X = 0x10 # sixteen", json!(16)),
        ("float32 X=1e3", json!(1000.0)),
        ("string X=a b # c", json!("a b")),
        ("string X=\"a # b\"", json!("a # b")),
        ("bool X=True", json!(true)),
    ] {
        assert_eq!(message(line).unwrap().constants[0].value, value, "{line}");
    }
}

#[test]
fn what_is_not_of_the_language_is_refused_by_its_line() {
    for (text, reason) in [
        ("float64", "expected a type and a name"),
        ("float64 1x", "expected a name after the type"),
        ("float64 x-y", "expected a blank after the name"),
        (
            "int8 x 128",
            "`128` is not a value of type int8, expected a whole number from -128 to 127",
        ),
        (
            "uint8 X=-1",
            "`-1` is not a value of type uint8, expected a whole number from 0 to 255",
        ),
        ("int32[0] x", "expected a length from 1"),
        ("int32[99999999999] x", "expected a length from 1"),
        ("int32[ x", "expected ] at the end"),
        ("a/b/c/d x", "is not a type"),
        ("int32[2] x [1]", "1 elements do not fit"),
        ("float64 x\nfloat64 x", "line 2: a second field"),
        ("float64 x\n---\nfloat64 y", "line 2: more parts"),
    ] {
        let error = message(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_comment_above_or_beside_a_field_is_kept() {
    let definition = message("# first\n\n# metres,\n# forward\nfloat64 x\nfloat64 y # left").unwrap();
    let comments: Vec<&str> = definition
        .fields
        .iter()
        .map(|field| field.comment.as_str())
        .collect();
    assert_eq!(comments, ["metres, forward", "left"]);
}

#[test]
fn an_action_has_three_parts() {
    let name = "a_msgs/action/Spin".parse().unwrap();
    let parts = parse(&name, "float32 angle\r\n---\r\n---\r\nfloat32 turned\r\n").unwrap();
    let names: Vec<String> = parts.iter().map(|part| part.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "a_msgs/action/Spin_Goal",
            "a_msgs/action/Spin_Result",
            "a_msgs/action/Spin_Feedback"
        ]
    );
    assert_eq!(parts[2].fields[0].name, "turned");
    assert!(parse(&name, "float32 angle\n---\n").is_err());
}
