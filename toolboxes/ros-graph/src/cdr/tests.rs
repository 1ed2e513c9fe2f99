use serde_json::{Value, json};

use super::{Cdr, Order, Wide};
use crate::definition::TypeName;
use crate::library::Library;
use crate::shape::Shape;

const EVERYTHING: &str = "bool truth\nbyte raw\nint8 a\nuint8 b\nint16 c\nuint16 d\nint32 e\nuint32 f\nint64 g\nuint64 h\n\
    float32 i\nfloat64 j\nstring<=5 k\nwstring l\nuint8[] m\nuint8[3] n\nint16[<=2] o\nstring[] p\nInner[] q\nEmpty r\n\
    Inner[2] s\nint32 t 7\n";

fn shape(text: &str) -> std::sync::Arc<Shape> {
    let mut library = Library::empty();
    for (name, text) in [("A", text), ("Inner", "float64 x\nstring y"), ("Empty", "")] {
        library
            .add_text(&format!("a_msgs/msg/{name}").parse().unwrap(), text)
            .unwrap();
    }
    let name: TypeName = "a_msgs/msg/A".parse().unwrap();
    library.shape(&name).unwrap()
}

fn full() -> Value {
    let inner = json!({"x": 0.5, "y": "y"});
    json!({
        "truth": true, "raw": 255, "a": -128, "b": 255, "c": -32768, "d": 65535, "e": i32::MIN, "f": u32::MAX,
        "g": i64::MIN, "h": u64::MAX, "i": 0.1, "j": "-Infinity", "k": "grün", "l": "wide ä€😀", "m": "AQL/",
        "n": "AAEC", "o": [-1, 2], "p": ["", "a"], "q": [inner], "r": {}, "s": [inner, inner], "t": 7
    })
}

#[test]
fn every_kind_of_field_comes_back_in_both_orders_and_widths() {
    let shape = shape(EVERYTHING);
    for order in [Order::Little, Order::Big] {
        for wide in [Wide::Four, Wide::Two] {
            let cdr = Cdr {
                wide,
                ..Cdr::default()
            };
            let bytes = cdr.encode_as(&shape, &full(), order).unwrap();
            assert_eq!(
                cdr.decode(&shape, &bytes, order).unwrap(),
                full(),
                "{order:?} {wide:?}"
            );
        }
    }
}

#[test]
fn what_is_not_given_is_the_default_or_zero() {
    let shape = shape(EVERYTHING);
    let bytes = Cdr::default().encode(&shape, &json!({})).unwrap();
    let value = Cdr::default().decode(&shape, &bytes, Order::Little).unwrap();
    assert_eq!(value, shape.zero());
    assert_eq!(
        (&value["t"], &value["k"], &value["n"]),
        (&json!(7), &json!(""), &json!("AAAA"))
    );
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_its_place() {
    let shape = shape(EVERYTHING);
    for (value, expected) in [
        (
            json!({"nose": 1}),
            "a_msgs/msg/A: a_msgs/msg/A has no field `nose`; it has truth, raw",
        ),
        (json!({"truth": 1}), "truth: expected true or false, found 1"),
        (
            json!({"a": 128}),
            "a: expected a whole number from -128 to 127, found 128",
        ),
        (json!({"b": 1.5}), "b: expected a whole number"),
        (json!({"h": -1}), "h: expected a whole number from 0"),
        (json!({"i": 1e39}), "i: 1e39 is too large for float32"),
        (json!({"i": 1e39}), "too large"),
        (json!({"j": null}), "j: expected a number, \"NaN\""),
        (
            json!({"k": "zu lang"}),
            "k: a text of at most 5 is allowed, found one of 7",
        ),
        (json!({"k": "a\u{0}"}), "k: a text has no zero"),
        (json!({"l": 1}), "l: expected a text, found 1"),
        (json!({"m": "*"}), "m: expected base64"),
        (json!({"n": [1, 2]}), "n: expected 3 elements, found 2"),
        (json!({"n": "AQ=="}), "n: expected 3 elements, found 1"),
        (
            json!({"o": [1, 2, 3]}),
            "o: at most 2 elements are allowed, found 3",
        ),
        (json!({"q": [{}, {"x": "fast"}]}), "q[1].x: expected a number"),
        (
            json!({"r": []}),
            "r: expected an object of a_msgs/msg/Empty, found a list",
        ),
        (json!([]), "a_msgs/msg/A: expected an object"),
    ] {
        let error = Cdr::default().encode(&shape, &value).unwrap_err().to_string();
        let expected = expected.replace("1e39", "1000000000000000000000000000000000000000");
        assert!(
            error.starts_with(&expected) || error.contains(&expected),
            "{value}: {error}"
        );
    }
}

#[test]
fn bytes_that_are_of_another_type_are_refused() {
    let string = [3, 0, 0, 0, b'a', b'b', 0];
    for (text, bytes, said) in [
        ("uint32 x", &[1, 0, 0][..], "x: 4 bytes are needed, 3 are left"),
        ("uint8 x", &[1, 0, 0, 0, 0], "end: 4 bytes follow the message"),
        ("bool x", &[2], "x: 2 is not a bool, expected 0 or 1"),
        (
            "string x",
            &[3, 0, 0, 0, b'a', b'b', b'c'],
            "x: a string that does not end with a zero byte",
        ),
        (
            "string x",
            &[3, 0, 0, 0, 0xFF, 0xFE, 0],
            "x: a string that is not UTF-8",
        ),
        ("string<=1 x", &string, "x: a text of 2, where at most 1"),
        (
            "string x",
            &[255, 255, 255, 255, 0],
            "x: 4294967295 bytes are needed",
        ),
        (
            "float64[] x",
            &[255, 255, 255, 255, 0, 0, 0, 0],
            "x: 4294967295 elements do not fit",
        ),
        (
            "Empty[] x",
            &[255, 255, 255, 255, 0, 0, 0, 0],
            "x: 4294967295 elements do not fit",
        ),
        (
            "int8[<=1] x",
            &[2, 0, 0, 0, 1, 1],
            "x: 2 elements, where at most 1",
        ),
        (
            "wstring x",
            &[255, 255, 255, 255, 0],
            "x: 17179869180 bytes are needed",
        ),
        (
            "wstring x",
            &[1, 0, 0, 0, 0, 0, 1, 0],
            "x: a string that is not UTF-16",
        ),
        (
            "wstring x",
            &[1, 0, 0, 0, 0, 0xD8, 0, 0],
            "x: a string that is not UTF-16",
        ),
    ] {
        let error = Cdr::default()
            .decode(&shape(text), bytes, Order::Little)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    let bytes = Cdr::default().decode(&shape("string x"), &string, Order::Little);
    assert_eq!(bytes.unwrap(), json!({"x": "ab"}));
}

#[test]
fn a_message_with_too_many_values_is_neither_read_nor_written() {
    let cdr = Cdr {
        values: 100,
        ..Cdr::default()
    };
    let shape = shape("int8[] x");
    let mut bytes = vec![101, 0, 0, 0];
    bytes.extend([0; 101]);
    let error = cdr.decode(&shape, &bytes, Order::Little).unwrap_err().to_string();
    assert_eq!(
        error,
        "this a_msgs/msg/A has more than 100 values, too many to read"
    );
    assert!(cdr.encode(&shape, &json!({"x": vec![0; 101]})).is_err());
    assert!(cdr.encode(&shape, &json!({"x": vec![0; 100]})).is_ok());
}

/// Every prefix of a message, and every message with one byte changed, is read or refused, never more.
#[test]
fn damaged_bytes_never_do_more_than_fail() {
    let shape = shape(EVERYTHING);
    let cdr = Cdr::default();
    let bytes = cdr.encode(&shape, &full()).unwrap();
    let mut refused = 0;
    for length in 0..bytes.len() {
        refused += usize::from(cdr.decode(&shape, &bytes[..length], Order::Little).is_err());
    }
    assert_eq!(refused, bytes.len(), "a message without its end was read");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let _ = cdr.decode(&shape, &changed, Order::Little);
            let _ = cdr.decode(&shape, &changed, Order::Big);
        }
    }
}
