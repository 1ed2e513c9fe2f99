//! Python's names of the JSON types, which are part of the published error texts.

use serde_json::Value;

/// The name of a JSON value's type in Python: `NoneType`, `bool`, `int`, `float`, `str`, `list` or `dict`.
///
/// As in `json.loads`, a number without fraction and exponent is an `int` of any size.
///
/// ```
/// assert_eq!(ovos_tools_schema::python_type_name(&serde_json::json!(1.0)), "float");
/// ```
#[must_use]
pub fn python_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if super::scalar::is_integer_text(number.as_str()) => "int",
        Value::Number(_) => "float",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use super::python_type_name;

    #[test]
    fn names_are_those_of_json_loads() {
        for (text, name) in [
            ("null", "NoneType"),
            ("true", "bool"),
            ("-0", "int"),
            ("123456789012345678901234567890", "int"),
            ("1.0", "float"),
            ("1e3", "float"),
            ("\"1\"", "str"),
            ("[]", "list"),
            ("{}", "dict"),
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(python_type_name(&value), name, "{text}");
        }
    }
}
