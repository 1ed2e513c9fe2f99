//! Reads JSON from a toolbox, which may be hostile.
//!
//! `serde_json` limits the depth of a text. But if the first key of an object is the one that it reserves for raw
//! text, it parses the value as a text of its own, whose depth counts from zero again: enough such layers overflow
//! the stack. No honest toolbox sends that key. Read [`read`].

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

const RAW: &str = "$serde_json::private::RawValue";

/// As `serde_json::from_str`, for text that may be hostile.
///
/// # Errors
/// The error of `serde_json`, or that the text has the reserved key.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    // Nearly every text needs only this test. An escaped key contains `\u00`, because it consists of ASCII letters.
    if text.contains("RawValue") || text.contains("\\u00") {
        serde_json::from_str::<Plain>(text)?;
    }
    serde_json::from_str(text)
}

/// Any value without the reserved key.
struct Plain;

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Plain;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Plain, A::Error> {
        while items.next_element::<Plain>()?.is_some() {}
        Ok(Plain)
    }

    /// Numbers arrive here, too, under a reserved key of their own.
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Plain, A::Error> {
        while let Some(key) = entries.next_key::<String>()? {
            if key == RAW {
                return Err(Error::custom(format_args!("the key `{RAW}` is not accepted")));
            }
            entries.next_value::<Plain>()?;
        }
        Ok(Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn raw_text_is_refused_wherever_it_stands_and_everything_else_is_read() {
        let escaped = r#"[{"a":{"\u0024serde_json::private::RawValue":"1"}}]"#;
        for (text, expected) in [
            (r#"{"$serde_json::private::RawValue":"1"}"#, None),
            (r#"{"a":1,"$serde_json::private::RawValue":"1"}"#, None),
            (escaped, None),
            (
                r#"{"a":"$serde_json::private::RawValue"}"#,
                Some(json!({"a": RAW})),
            ),
            (
                r#"["RawValue",1,-2,1.5,null,true,"\u0000"]"#,
                Some(json!(["RawValue", 1, -2, 1.5, null, true, "\0"])),
            ),
            (
                r#"{"RawValue":123456789012345678901234567890}"#,
                Some(serde_json::from_str(r#"{"RawValue":123456789012345678901234567890}"#).unwrap()),
            ),
        ] {
            assert_eq!(read::<Value>(text).ok(), expected, "{text}");
        }
    }

    /// Each layer has a new depth count, and only the number of quotes grows with the layers.
    #[test]
    fn layers_of_raw_text_cost_no_stack() {
        let mut text = "1".to_owned();
        for _ in 0..18 {
            let inner = format!("{}{text}{}", "[".repeat(120), "]".repeat(120));
            text = format!("{{\"{RAW}\":{}}}", Value::from(inner));
        }
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let read = small.spawn(move || read::<Value>(&text).is_err()).unwrap();
        assert!(read.join().unwrap());
    }
}
