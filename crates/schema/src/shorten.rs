//! Shortens values and texts for messages; no other module does so.

use std::io;

use serde_json::Value;

/// The longest text of a value in an error, in bytes.
const LIMIT: usize = 60;

/// The JSON text of a value, cut after about 60 bytes. The cost does not grow with the size of the value.
#[must_use]
pub fn shorten(value: &Value) -> String {
    let mut sink = Sink(Vec::with_capacity(LIMIT + 4));
    // The only possible error is that the sink is full, which ends the serializer early.
    let full = serde_json::to_writer(&mut sink, value).is_err();
    cut(sink.0, full)
}

/// Cuts a text as [`shorten`] does, at a limit in bytes.
#[must_use]
pub fn shorten_text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        text.to_owned()
    } else {
        cut(text.as_bytes()[..limit].to_vec(), true)
    }
}

fn cut(mut bytes: Vec<u8>, more: bool) -> String {
    if let Err(error) = std::str::from_utf8(&bytes) {
        bytes.truncate(error.valid_up_to());
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if more {
        text.push_str("...");
    }
    text
}

struct Sink(Vec<u8>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LIMIT - self.0.len();
        if bytes.len() > room {
            self.0.extend_from_slice(&bytes[..room]);
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(shorten(&json!("abc")), "\"abc\"");
        let text = shorten(&json!("é".repeat(1000)));
        assert!(
            text.ends_with("...") && text.len() <= LIMIT + 3 && text.contains('é'),
            "{text}"
        );
        assert_eq!(shorten(&json!("x".repeat(58))).len(), 60);
        assert_eq!(shorten_text("ééé", 3), "é...");
    }
}
