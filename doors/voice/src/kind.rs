//! Finds the type of a frame without parsing the frame: most frames are audio.

/// Returns the value of the key `type` of the JSON object in `text`, if it is a text without escapes. Reads only up to that value,
/// decodes nothing and allocates nothing. The result for broken JSON does not matter, because the parser rejects it later.
pub(crate) fn kind_of(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = end_of(bytes, at)?;
                let after = skip_blanks(bytes, end);
                let is_key = depth == 1 && bytes.get(after) == Some(&b':');
                if is_key && &bytes[at..end] == b"\"type\"" {
                    let value = skip_blanks(bytes, after + 1);
                    if bytes.get(value) != Some(&b'"') {
                        return None;
                    }
                    let end = end_of(bytes, value)?;
                    let kind = text.get(value + 1..end - 1)?;
                    return (!kind.contains('\\')).then_some(kind);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the position right after the string that begins at `start`.
fn end_of(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let blanks = bytes.get(from..).unwrap_or_default();
    from + blanks
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_found_wherever_it_stands() {
        for (text, kind) in [
            (r#"{"type":"tool_call","id":1}"#, Some("tool_call")),
            (
                r#" { "data" : "AAAA" , "type" : "audio_output" }"#,
                Some("audio_output"),
            ),
            (
                r#"{"a":{"type":"inner"},"b":["type"],"type":"outer"}"#,
                Some("outer"),
            ),
            (r#"{"a":"\"type\":\"no\"","type":"yes"}"#, Some("yes")),
            (r#"{"x":"type","type":"yes"}"#, Some("yes")),
            (r#"{"a":"\\","type":"größe"}"#, Some("größe")),
            (r#"{"type":"a\u0062"}"#, None),
            (r#"{"type":1}"#, None),
            (r#"{"type":"open"#, None),
            (r#"["type"]"#, None),
            (r#"[{"type":"in a list"}]"#, None),
            ("}}{", None),
            ("\"\\", None),
            ("", None),
        ] {
            assert_eq!(kind_of(text), kind, "{text}");
        }
    }
}
