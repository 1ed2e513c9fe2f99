//! Which toolbox an order or a notice is about, where a program has several. Read [`write`], then [`address`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Adds the JSON of an order or a notice to `to`, as a frame has it. `toolbox` is written between the name and the body.
///
/// # Errors
/// The value cannot be written. Orders and notices always can.
pub fn write<T: Serialize>(to: &mut Vec<u8>, message: &T, toolbox: Option<&str>) -> serde_json::Result<()> {
    let begin = to.len();
    serde_json::to_writer(&mut *to, message)?;
    let Some(toolbox) = toolbox else { return Ok(()) };
    // The text begins with `{"order":"name"`. A name has no quote in it, so the fourth quote ends the name.
    let bytes = to[begin..].iter().enumerate();
    let mut quotes = bytes.filter(|(_, byte)| **byte == b'"').map(|(place, _)| place);
    if let Some(end) = quotes.nth(3) {
        let at = begin + end + 1;
        let key = format!(",\"toolbox\":{}", Value::from(toolbox));
        to.splice(at..at, key.into_bytes());
    }
    Ok(())
}

/// Returns the toolbox that the JSON of a frame names. Its other keys are the same as
/// in a frame without `toolbox`.
///
/// # Errors
/// The frame is not an object, or `toolbox` is not a text.
pub fn address(frame: &[u8]) -> serde_json::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Addressed {
        toolbox: Option<String>,
    }
    serde_json::from_slice::<Addressed>(frame).map(|frame| frame.toolbox)
}
