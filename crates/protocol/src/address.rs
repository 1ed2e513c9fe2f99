//! Which toolbox an order or a notice is about, where a program has several. Read [`write`], then [`address`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The JSON of an order or a notice is added to `to`, as a frame has it. `toolbox` stands between its name and its body.
///
/// # Errors
/// It cannot be written, which orders and notices always can.
pub fn write<T: Serialize>(to: &mut Vec<u8>, said: &T, toolbox: Option<&str>) -> serde_json::Result<()> {
    let begin = to.len();
    serde_json::to_writer(&mut *to, said)?;
    let Some(toolbox) = toolbox else { return Ok(()) };
    // `{"order":"name"`: no name has a quote in it, so the fourth one ends it.
    let bytes = to[begin..].iter().enumerate();
    let mut quotes = bytes.filter(|(_, byte)| **byte == b'"').map(|(place, _)| place);
    if let Some(end) = quotes.nth(3) {
        let at = begin + end + 1;
        let key = format!(",\"toolbox\":{}", Value::from(toolbox));
        to.splice(at..at, key.into_bytes());
    }
    Ok(())
}

/// The toolbox that the JSON of a frame names. The other keys are read as in a frame without it.
///
/// # Errors
/// It is no object, or `toolbox` is no text.
pub fn address(frame: &[u8]) -> serde_json::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Addressed {
        toolbox: Option<String>,
    }
    serde_json::from_slice::<Addressed>(frame).map(|frame| frame.toolbox)
}
