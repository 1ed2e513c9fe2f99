//! The variables of the service's environment that the keys of a mount name as `${NAME}`. Read [`filled`].

use std::fmt;

use serde_json::{Map, Value};

use crate::paths::Environment;

/// The keys in whose texts variables are named.
const KEYS: [&str; 4] = ["env", "headers", "args", "url"];

/// A variable that cannot be filled in.
pub(super) struct Missing {
    /// The key, followed by the name inside the key if its value is an object.
    pub(super) at: Vec<String>,
    /// The variable as it is written.
    pub(super) written: String,
    /// The name of the variable, if it has the form of a name.
    name: Option<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(
                out,
                "the variable `{name}` in the environment of the service; set it where the service is started"
            ),
            None => out.write_str(
                "${NAME}, ${env:NAME} or ${NAME:-text}, with the name of a variable of the service's environment",
            ),
        }
    }
}

/// Fills in the variables. Returns their values, which may be secret, and all variables that cannot be filled in. A key with such
/// a variable is removed.
pub(super) fn filled(written: &mut Map<String, Value>, env: &dyn Environment) -> (Vec<String>, Vec<Missing>) {
    let (mut values, mut missing) = (Vec::new(), Vec::new());
    for key in KEYS {
        let before = missing.len();
        let mut fill = |at: &[&str], value: &mut Value| {
            let Value::String(text) = value else { return };
            match filled_text(text, env, &mut values) {
                Ok(whole) => *text = whole,
                Err((written, name)) => missing.push(Missing {
                    at: at.iter().map(|part| (*part).to_owned()).collect(),
                    written,
                    name,
                }),
            }
        };
        match written.get_mut(key) {
            Some(Value::Object(texts)) if matches!(key, "env" | "headers") => {
                for (name, text) in texts {
                    fill(&[key, name], text);
                }
            }
            Some(Value::Array(texts)) if key == "args" => {
                for text in texts {
                    fill(&[key], text);
                }
            }
            Some(text) if key == "url" => fill(&[key], text),
            _ => {}
        }
        if missing.len() > before {
            written.shift_remove(key);
        }
    }
    (values, missing)
}

/// Returns a text with its variables filled in. The error is the first variable that cannot be filled in, as it is written, and
/// its name.
fn filled_text(
    text: &str,
    env: &dyn Environment,
    values: &mut Vec<String>,
) -> Result<String, (String, Option<String>)> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else {
            break;
        };
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let written = || format!("${{{inside}}}");
        let good = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !good || name.is_empty() {
            return Err((written(), None));
        }
        whole.push_str(before);
        match (env.var(name), otherwise) {
            (Some(value), _) => {
                whole.push_str(&value);
                values.push(value);
            }
            (None, Some(otherwise)) => whole.push_str(otherwise),
            (None, None) => return Err((written(), Some(name.to_owned()))),
        }
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}
