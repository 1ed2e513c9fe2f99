//! Sentences that say what a call would do, for the person who confirms it.
//!
//! A toolbox keeps them in a table, one row for a tool, with templates that the arguments fill. Read [`fill`].

use std::collections::BTreeMap;

use ovos_toolbox_wire::Object;
use serde_json::Value;

/// The longest text of an argument in a sentence, in characters.
const LONGEST: usize = 60;

/// A tool and its templates, each with its language: `("spin", &[("en", "turn {degrees} degrees")])`.
pub type Row = (&'static str, &'static [(&'static str, &'static str)]);

/// The sentences of a table for a call, by language. Where a tool has several templates in a language, the first one that the
/// arguments fill counts.
#[must_use]
pub fn sentences(table: &[Row], tool: &str, args: &Object) -> BTreeMap<String, String> {
    let row = table.iter().find(|(name, _)| *name == tool);
    let templates = row.iter().flat_map(|(_, templates)| templates.iter());
    let mut sentences = BTreeMap::new();
    for (language, template) in templates {
        if !sentences.contains_key(*language)
            && let Some(sentence) = fill(language, template, args)
        {
            sentences.insert((*language).to_owned(), sentence);
        }
    }
    sentences
}

/// Fills a template with arguments; `None` if an argument that it needs is missing, null, of a type that has no place there, or a
/// value that none of the choices means.
///
/// | in the template | in the sentence |
/// |---|---|
/// | `{key}` | the value: a number as the language writes it, a text in quotes, a list with commas |
/// | `{key.word}` | a text without quotes, with spaces for underscores; for words that the schema lists |
/// | `{key.abs}` | a number without its sign |
/// | `{key:left=nach links,right=nach rechts,*=}` | the text behind the value; that behind `*` for every other one. `+` and `-` stand for numbers of that sign |
/// | `[ at {speed} metres a second]` | nothing, if an argument in it is missing |
///
/// ```
/// use ovos_toolbox_sdk::sentence::fill;
/// # use serde_json::json;
/// # let args = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
/// let template = "turn {degrees.abs} degrees to the {degrees:+=left,-=right}[ at {speed} metres a second]";
/// let sentence = fill("en", template, &args(json!({"degrees": -30.0})));
/// assert_eq!(sentence.as_deref(), Some("turn 30 degrees to the right"));
/// ```
#[must_use]
pub fn fill(language: &str, template: &str, args: &Object) -> Option<String> {
    let mut sentence = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '[']) {
        sentence.push_str(&rest[..at]);
        let optional = rest[at..].starts_with('[');
        let inner = &rest[at + 1..];
        let end = inner.find(if optional { ']' } else { '}' })?;
        if optional {
            sentence.push_str(&fill(language, &inner[..end], args).unwrap_or_default());
        } else {
            sentence.push_str(&placed(language, &inner[..end], args)?);
        }
        rest = &inner[end + 1..];
    }
    sentence.push_str(rest);
    Some(sentence)
}

/// What stands in the place of `{place}`.
fn placed(language: &str, place: &str, args: &Object) -> Option<String> {
    if let Some((key, choices)) = place.split_once(':') {
        return chosen(choices, args.get(key)?);
    }
    match place.split_once('.') {
        Some((key, "word")) => args
            .get(key)?
            .as_str()
            .map(|word| visible(&word.replace('_', " "))),
        Some((key, "abs")) => Some(number(language, args.get(key)?.as_f64()?.abs())),
        Some(_) => None,
        None => phrase(language, args.get(place)?),
    }
}

/// The text behind the choice that a value meets.
fn chosen(choices: &str, value: &Value) -> Option<String> {
    let word = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) => value.to_string(),
        Value::Number(_) => number("en", value.as_f64()?),
        _ => return None,
    };
    let sign = match value.as_f64() {
        Some(number) if number < 0.0 => "-",
        Some(_) => "+",
        None => "",
    };
    let choices = || choices.split(',').filter_map(|choice| choice.split_once('='));
    let behind = |wanted: &str| choices().find(|(name, _)| *name == wanted);
    let choice = behind(&word).or_else(|| behind(sign)).or_else(|| behind("*"));
    choice.map(|(_, text)| text.to_owned())
}

fn phrase(language: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(format!("\"{}\"", visible(&text.replace('"', "'")))),
        Value::Number(_) => Some(number(language, value.as_f64()?)),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Some(visible(&text.replace(['_', '"'], " "))),
                    Value::Number(_) => Some(number(language, item.as_f64()?)),
                    _ => None,
                })
                .collect();
            items
                .filter(|items| !items.is_empty())
                .map(|items| items.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

/// A number without superfluous digits, with the decimal sign of the language.
fn number(language: &str, number: f64) -> String {
    // Six digits tell places on the earth 10 cm apart.
    let text = format!("{number:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = if text == "-0" { "0" } else { text };
    if language.starts_with("en") {
        text.to_owned()
    } else {
        text.replace('.', ",")
    }
}

/// Text that a model may have written, without control characters, cut to a length.
fn visible(text: &str) -> String {
    let mut seen = text.chars().filter(|c| !c.is_control());
    let mut short: String = seen.by_ref().take(LONGEST).collect();
    if seen.next().is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_becomes_a_sentence_or_nothing() {
        let args = json!({
            "degrees": -30.0, "half": 0.5, "one": 1, "many": 3, "arm": "left", "name": "Ada\u{7}\" and go", "long": "x".repeat(100),
            "on": true, "steps": ["scan", "self_test"], "none": null, "at": {"x": 1}, "lat": 47.123_456_7,
        });
        let args = args.as_object().unwrap();
        let long = format!("\"{}...\"", "x".repeat(LONGEST));
        for (language, template, expected) in [
            ("en", "stop", Some("stop")),
            (
                "en",
                "turn {degrees.abs} to the {degrees:+=left,-=right}",
                Some("turn 30 to the right"),
            ),
            ("en", "{half} {one} {lat}", Some("0.5 1 47.123457")),
            ("de", "{half}", Some("0,5")),
            (
                "en",
                "{one:1=once,*=often} {many:1=once,*=often}",
                Some("once often"),
            ),
            (
                "en",
                "the {arm.word} arm, {arm:left=der linke,right=der rechte}",
                Some("the left arm, der linke"),
            ),
            ("en", "{arm:right=der rechte}", None),
            ("en", "{on:true=with light,false=}", Some("with light")),
            ("en", "{name}", Some("\"Ada' and go\"")),
            ("en", "{long}", Some(long.as_str())),
            ("en", "{steps}", Some("scan, self test")),
            (
                "en",
                "go[ at {speed}][ with {none}][ {arm.word}]",
                Some("go left"),
            ),
            ("en", "go {speed}", None),
            ("en", "go {none}", None),
            ("en", "go {at}", None),
            ("en", "go {arm.unknown}", None),
            ("en", "go {arm", None),
        ] {
            assert_eq!(fill(language, template, args).as_deref(), expected, "{template}");
        }
        let table: &[Row] = &[(
            "go",
            &[
                ("en", "go {speed}"),
                ("en", "go {many}"),
                ("en", "go"),
                ("de", "geh {speed}"),
            ],
        )];
        let result = sentences(table, "go", args);
        assert_eq!(result, BTreeMap::from([("en".to_owned(), "go 3".to_owned())]));
        assert!(sentences(table, "stay", args).is_empty());
    }
}
