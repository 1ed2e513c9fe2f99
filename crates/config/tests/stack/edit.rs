//! Values are set in the text of a file, and everything else in it stays.

use ovos_tools_config::set_in_text;
use serde_json::{Value, json};

const PATH: [&str; 4] = ["PHAL", "ovos-phal-plugin-tools", "robot", "enabled"];

#[track_caller]
fn set(text: &str, expected: &str) {
    assert_eq!(set_in_text(text, &PATH, &json!(true)).as_deref(), Ok(expected));
}

#[test]
fn a_value_is_added_or_replaced_and_nothing_else_changes() {
    let whole = "{\n  \"PHAL\": {\n    \"ovos-phal-plugin-tools\": {\n      \"robot\": {\n        \"enabled\": true\n      }\n    }\n  }\n}\n";
    set("", whole);
    set("// mine\n", &format!("// mine\n{whole}"));
    set(
        "{\n  // the language\n  \"lang\": \"de\" ,\n# {\"PHAL\": 1}\n  \"a\": {\"b\": [1, {}]}\n  // the end\n}\n",
        "{\n  // the language\n  \"lang\": \"de\" ,\n# {\"PHAL\": 1}\n  \"a\": {\"b\": [1, {}]},\n  \"PHAL\": {\n    \"ovos-phal-plugin-tools\": {\n      \"robot\": {\n        \"enabled\": true\n      }\n    }\n  }\n  // the end\n}\n",
    );
    set(
        r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": {"enabled": false, "x": 1e400}}}, "url": "http://a"}"#,
        r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": {"enabled": true, "x": 1e400}}}, "url": "http://a"}"#,
    );
    set(
        r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": {"port": 1}}}}"#,
        r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": {"port": 1, "enabled": true}}}}"#,
    );
    set(
        "{\r\n\t\"PHAL\": {\r\n\t\t// nothing yet\r\n\t}\r\n}",
        "{\r\n\t\"PHAL\": {\r\n\t\t// nothing yet\r\n\t  \"ovos-phal-plugin-tools\": {\r\n\t    \"robot\": {\r\n\t      \"enabled\": true\r\n\t    }\r\n\t  }\r\n\t}\r\n}",
    );
    set(
        r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": null}}}"#,
        "{\"PHAL\": {\"ovos-phal-plugin-tools\": {\"robot\": {\n  \"enabled\": true\n}}}}",
    );
    set(whole, whole);
}

#[test]
fn a_file_that_cannot_be_changed_is_refused() {
    for (text, expected) in [
        ("{", "line 1: EOF"),
        ("{} // x", "comments only on a line of their own"),
        ("[1]", "the file is not an object"),
        (r#"{"PHAL": 5}"#, "PHAL is not an object"),
        (
            r#"{"PHAL": {"ovos-phal-plugin-tools": {"robot": true}}}"#,
            "robot is not an object",
        ),
    ] {
        let error = set_in_text(text, &PATH, &Value::Bool(true)).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}
