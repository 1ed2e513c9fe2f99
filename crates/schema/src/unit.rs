//! The unit of a number, as the name and the description of an argument state it.
//!
//! A text such as "10 cm" is refused: which unit was meant cannot be guessed for a machine that moves. The refusal names the
//! unit that is meant.

use serde_json::Value;

/// Ends of names, or whole names, and their units.
const NAMES: [(&str, &str); 17] = [
    ("ms", "milliseconds"),
    ("s", "seconds"),
    ("seconds", "seconds"),
    ("mm", "millimetres"),
    ("cm", "centimetres"),
    ("m", "metres"),
    ("km", "kilometres"),
    ("mps", "metres per second"),
    ("deg", "degrees"),
    ("degrees", "degrees"),
    ("dps", "degrees per second"),
    ("rad", "radians"),
    ("pct", "percent"),
    ("percent", "percent"),
    ("hz", "hertz"),
    ("kbps", "kilobits per second"),
    ("mb", "megabytes"),
];

/// Words of descriptions and their units; a longer one stands before those that it begins with.
const WORDS: [(&str, &str); 19] = [
    ("milliseconds", "milliseconds"),
    ("millimetres", "millimetres"),
    ("millimeters", "millimetres"),
    ("centimetres", "centimetres"),
    ("centimeters", "centimetres"),
    ("kilometres", "kilometres"),
    ("kilometers", "kilometres"),
    ("metres per second", "metres per second"),
    ("meters per second", "metres per second"),
    ("m/s", "metres per second"),
    ("metres", "metres"),
    ("meters", "metres"),
    ("degrees per second", "degrees per second"),
    ("degrees", "degrees"),
    ("radians", "radians"),
    ("seconds", "seconds"),
    ("minutes", "minutes"),
    ("percent", "percent"),
    ("hertz", "hertz"),
];

/// What to write instead of a number with a unit; `None` if the value is no such text.
pub(super) fn advice(value: &Value, name: &str, description: &str) -> Option<String> {
    let text = value.as_str()?.trim();
    let number = text.trim_start_matches(['+', '-']);
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | ' '));
    let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && !rest.is_empty();
    // 1e3 is a number, and 0x10 is not written by those who think of units.
    let is_unit = rest
        .chars()
        .all(|c| c.is_alphabetic() || matches!(c, '/' | '%' | '\'' | '"' | '°' | '²' | ' '));
    (is_number && is_unit).then(|| match unit(name, description) {
        Some(unit) => format!("write the number alone, in {unit}"),
        None => "write the number alone, without a unit".to_owned(),
    })
}

fn unit(name: &str, description: &str) -> Option<&'static str> {
    let end = name.rsplit('_').next().unwrap_or(name);
    let named = NAMES.iter().find(|(known, _)| *known == end);
    if let Some((_, unit)) = named {
        return Some(unit);
    }
    // "How far, in metres" and "Seconds." state the unit of the number; "1 is 90 degrees per second" does not.
    let description = description.to_lowercase();
    let stated = description
        .match_indices(" in ")
        .map(|(at, _)| &description[at + 4..]);
    std::iter::once(description.as_str())
        .chain(stated)
        .find_map(|text| {
            let (_, unit) = WORDS.iter().find(|(word, _)| text.starts_with(word))?;
            Some(*unit)
        })
}
