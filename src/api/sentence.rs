//! The sentence that says what a call would do, for the person who has to confirm it: the toolbox's own, or one made from the tool
//! and its arguments. Read [`sentence`].

use std::collections::BTreeMap;

use ovos_toolbox_wire::Object;
use serde_json::Value;

use client::text::is_unseen;
use schema::shorten_text;

/// The longest sentence, in bytes.
const SENTENCE: usize = 400;

/// The longest argument in a sentence that is made here, in bytes.
const ARGUMENT: usize = 60;

/// How many arguments a sentence names that is made here.
const ARGUMENTS: usize = 8;

/// The language in which everything can be said.
const ENGLISH: &str = "en";

/// The ends of arguments' names that say a unit, and how it is said.
const UNITS: [(&str, &str); 22] = [
    ("_ms", "milliseconds"),
    ("_s", "seconds"),
    ("_sec", "seconds"),
    ("_seconds", "seconds"),
    ("_min", "minutes"),
    ("_minutes", "minutes"),
    ("_deg", "degrees"),
    ("_degrees", "degrees"),
    ("_rad", "radians"),
    ("_mm", "millimetres"),
    ("_cm", "centimetres"),
    ("_m", "metres"),
    ("_mps", "metres a second"),
    ("_percent", "percent"),
    ("_pct", "percent"),
    ("_hz", "hertz"),
    ("_khz", "kilohertz"),
    ("_c", "degrees Celsius"),
    ("_kg", "kilograms"),
    ("_g", "grams"),
    ("_v", "volts"),
    ("_px", "pixels"),
];

/// What a call would do, and the language in which that is said: that of the one who asks where the toolbox has a sentence in it, and
/// English otherwise. What a model wrote into the arguments stands in quotes.
pub(super) fn sentence(
    sentences: &BTreeMap<String, String>,
    lang: Option<&str>,
    (tool, toolbox_id): (&str, &str),
    args: &Object,
) -> (String, String) {
    let own = lang
        .and_then(|lang| in_language(sentences, lang))
        .or_else(|| in_language(sentences, ENGLISH));
    own.map(|(language, text)| (visible(text, SENTENCE), language.to_owned()))
        .filter(|(text, _)| !text.trim().is_empty())
        .unwrap_or_else(|| (made(tool, toolbox_id, args), ENGLISH.to_owned()))
}

/// The sentence in a language, such as `de-AT`, or in the same language of another country; and its language.
fn in_language<'a>(sentences: &'a BTreeMap<String, String>, lang: &str) -> Option<(&'a str, &'a str)> {
    let base = |lang: &str| {
        let base = lang.split(['-', '_']).next().unwrap_or_default();
        base.to_ascii_lowercase()
    };
    let exact = sentences
        .iter()
        .find(|(language, _)| language.eq_ignore_ascii_case(lang));
    let same = || {
        let wanted = base(lang);
        let plain = sentences
            .iter()
            .find(|(language, _)| language.eq_ignore_ascii_case(&wanted));
        plain.or_else(|| sentences.iter().find(|(language, _)| base(language) == wanted))
    };
    exact
        .or_else(same)
        .map(|(language, text)| (language.as_str(), text.as_str()))
}

/// A sentence from the tool and its arguments with their units.
fn made(tool: &str, toolbox_id: &str, args: &Object) -> String {
    let given = args.iter().filter(|(_, value)| !value.is_null());
    let arguments: Vec<String> = given
        .clone()
        .take(ARGUMENTS)
        .map(|(key, value)| argument(key, value))
        .collect();
    let mut text = format!("{} of {toolbox_id}", words(tool));
    if !arguments.is_empty() {
        text += &format!(": {}", arguments.join(", "));
    }
    match given.count().saturating_sub(ARGUMENTS) {
        0 => {}
        1 => text += " and one more argument",
        more => text += &format!(" and {more} more arguments"),
    }
    visible(&text, SENTENCE)
}

/// `distance 3 metres` for `distance_m: 3`.
fn argument(key: &str, value: &Value) -> String {
    let unit = UNITS
        .iter()
        .find(|(end, _)| key.len() > end.len() && key.ends_with(end));
    match (value, unit) {
        (Value::Number(_), Some((end, unit))) => {
            let name = words(key.strip_suffix(end).unwrap_or(key));
            format!("{name} {} {unit}", plain(value))
        }
        _ => format!("{} {}", words(key), plain(value)),
    }
}

fn plain(value: &Value) -> String {
    let text = match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) if items.iter().all(|item| item.is_string() || item.is_number()) => {
            let items = items.iter().map(Value::to_string);
            items.collect::<Vec<_>>().join(" and ")
        }
        Value::Number(_) => value
            .as_f64()
            .map_or_else(|| value.to_string(), |_| number(value)),
        // JSON keeps quotes around text, so that it cannot pass for a part of the sentence.
        other => other.to_string(),
    };
    shorten_text(&text, ARGUMENT)
}

/// A number as it was given, without an empty fraction.
fn number(value: &Value) -> String {
    let text = value.to_string();
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn visible(text: &str, limit: usize) -> String {
    let text: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    shorten_text(&text, limit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sentence_text(sentences: &Value, lang: Option<&str>, args: &Value) -> String {
        rendered(sentences, lang, args).0
    }

    fn rendered(sentences: &Value, lang: Option<&str>, args: &Value) -> (String, String) {
        let sentences = serde_json::from_value(sentences.clone()).unwrap();
        let args = args.as_object().unwrap();
        sentence(&sentences, lang, ("drive_to", "cart"), args)
    }

    #[test]
    fn the_language_of_the_session_comes_first_and_english_second() {
        let both = json!({"en": "drive", "de-DE": "fahren", "pt-BR": "andar"});
        for (sentences, lang, expected, language) in [
            (&both, Some("de-DE"), "fahren", "de-DE"),
            (&both, Some("de-at"), "fahren", "de-DE"),
            (&both, Some("de"), "fahren", "de-DE"),
            (&both, Some("pt"), "andar", "pt-BR"),
            (&both, Some("en-US"), "drive", "en"),
            (&both, Some("fr-FR"), "drive", "en"),
            (&both, None, "drive", "en"),
            (&json!({"de": "fahren"}), Some("fr"), "drive to of cart", "en"),
            (&json!({"de": " \u{200b}"}), Some("de"), "drive to of cart", "en"),
            (&json!({"en": " \u{200b}"}), None, "drive to of cart", "en"),
            (&json!({"en": "dri\u{202e}ve"}), None, "drive", "en"),
        ] {
            assert_eq!(
                rendered(sentences, lang, &json!({})),
                (expected.to_owned(), language.to_owned()),
                "{lang:?} {sentences}"
            );
        }
        let long = sentence_text(&json!({"en": "x".repeat(1000)}), None, &json!({}));
        assert!(long.len() <= SENTENCE + 3, "{}", long.len());
    }

    #[test]
    fn without_a_sentence_the_arguments_make_one() {
        for (args, expected) in [
            (json!({}), "drive to of cart"),
            (json!({"distance_m": 3.0}), "drive to of cart: distance 3 metres"),
            (
                json!({"after_ms": 250, "angle_deg": -30.5}),
                "drive to of cart: after 250 milliseconds, angle -30.5 degrees",
            ),
            (
                json!({"place": "kitchen", "slow": true}),
                r#"drive to of cart: place "kitchen", slow yes"#,
            ),
            (
                json!({"place": "door\" and back"}),
                r#"drive to of cart: place "door\" and back""#,
            ),
            (
                json!({"via": ["hall", "door"], "who": null}),
                r#"drive to of cart: via "hall" and "door""#,
            ),
            (json!({"at": {"x": 1}}), r#"drive to of cart: at {"x":1}"#),
            (json!({"m": 1}), "drive to of cart: m 1"),
        ] {
            assert_eq!(sentence_text(&json!({}), Some("de"), &args), expected);
        }
        let many: Object = (0..10).map(|n| (format!("a{n}"), Value::from(n))).collect();
        let text = sentence_text(&json!({}), None, &Value::Object(many));
        assert!(text.ends_with("a7 7 and 2 more arguments"), "{text}");
    }
}
