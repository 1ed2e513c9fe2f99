//! What a model or a voice writes as the arguments of a stop, and what it should not.

/// The value of the key of the arguments, as it is written; `None`: there is no such key.
pub(crate) const STOP_ARGUMENTS: [Option<&str>; 20] = [
    None,
    Some(r#""""#),
    Some(r#""{}""#),
    Some(r#""null""#),
    Some(r#""[]""#),
    Some(r#""[1, 2]""#),
    Some(r#""\"\"""#),
    Some(r#""\"{}\"""#),
    Some(r#""at once""#),
    Some(r#""{bad""#),
    Some(r#""0""#),
    Some(r#""1e999""#),
    Some(r#""{\"toolbox_id\": [], \"reason\": null}""#),
    Some(r#""{\"a\": \"\\ud800\"}""#),
    Some("null"),
    Some("{}"),
    Some("[]"),
    Some("5"),
    Some("false"),
    Some(r#"{"toolbox_id": {"a": []}}"#),
];
