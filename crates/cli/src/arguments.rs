//! The arguments of a tool on the command line: one JSON object, or `key=value` pairs. Pure.

use std::io::Read;

use ovos_toolbox_wire::Object;
use serde_json::Value;

use super::error::CliError;
use client::read_arguments;

/// The explanation in the help of `invoke` and `plan`.
pub(super) const HELP: &str = "\
Arguments of the tool:
  '{\"a\": 1}'       one JSON object, or - to read it from stdin
  key=value        one argument each; the value is JSON if it is valid JSON, else a text:
                   n=5  on=true  list=[1,2]  name=Ana  pose='{\"x\": 1}'
                   quote a text that looks like JSON: code='\"5\"'";

/// Parses the arguments.
pub(super) fn parse(written: &[String]) -> Result<Object, CliError> {
    let usage = |text: String| Err(CliError::Usage(text));
    if let [only] = written {
        if only == "-" {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|cause| CliError::Machine {
                what: "read the arguments from stdin".to_owned(),
                cause,
            })?;
            return object(&text);
        }
        // A pair has a name before its `=`; what models write for no arguments has none.
        if only.trim_start().starts_with(['{', '[', '"']) || only.trim().is_empty() || only == "null" {
            return object(only);
        }
    }
    let mut arguments = Object::new();
    for pair in written {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return usage(format!(
                "argument {pair:?}: expected key=value, or one JSON object for all arguments"
            ));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if arguments.insert(key.to_owned(), value).is_some() {
            return usage(format!("argument {key:?} is given twice"));
        }
    }
    Ok(arguments)
}

fn object(text: &str) -> Result<Object, CliError> {
    let read = read_arguments(Some(&Value::from(text)));
    read.map_err(|error| {
        CliError::Usage(format!(
            "the arguments are not a valid JSON object such as {{\"a\": 1}}: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &[&str], expected: Result<&str, &str>) {
        let written: Vec<String> = written.iter().map(|&word| word.to_owned()).collect();
        match (parse(&written), expected) {
            (Ok(arguments), Ok(json)) => {
                assert_eq!(Value::Object(arguments).to_string(), json, "{written:?}");
            }
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{written:?}: {error}");
                assert_eq!(error.exit_code(), 2, "{written:?}");
            }
            (found, expected) => panic!("{written:?}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn pairs_and_objects_are_read() {
        check(&[], Ok("{}"));
        check(&["a=1", "b=-2.50"], Ok(r#"{"a":1,"b":-2.50}"#));
        check(
            &["n=123456789012345678901234567890"],
            Ok(r#"{"n":123456789012345678901234567890}"#),
        );
        check(&["on=true", "off=null"], Ok(r#"{"on":true,"off":null}"#));
        check(
            &["name=Ana Kowalska", "code=007"],
            Ok(r#"{"name":"Ana Kowalska","code":"007"}"#),
        );
        check(&[r#"code="5""#, "empty="], Ok(r#"{"code":"5","empty":""}"#));
        check(&["expr=x=1", "list=[1,2]"], Ok(r#"{"expr":"x=1","list":[1,2]}"#));
        check(
            &[r#"pose={"x": 1}"#, "nan=NaN"],
            Ok(r#"{"pose":{"x":1},"nan":"NaN"}"#),
        );
        check(&[r#"{"a": 1, "b": "x"}"#], Ok(r#"{"a":1,"b":"x"}"#));
        check(&[" {} "], Ok("{}"));
        for none in ["", "[]", "null", "\"\"", "\"{}\""] {
            check(&[none], Ok("{}"));
        }
    }

    #[test]
    fn what_is_neither_is_explained() {
        check(&["5"], Err(r#"argument "5": expected key=value"#));
        check(&["=5"], Err("expected key=value"));
        check(&["a=1", "a=2"], Err(r#"argument "a" is given twice"#));
        check(&["{a: 1}"], Err("the text is not JSON: key must be a string"));
        check(&[r#"{"a": 1}"#, "b=2"], Err("expected key=value"));
        check(
            &["[1]"],
            Err(
                "the arguments are not a valid JSON object such as {\"a\": 1}: expected a JSON object; found the text [1]",
            ),
        );
    }
}
