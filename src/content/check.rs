//! The rules for an item of content that can be checked without a file. Pure.

use ovos_toolbox_wire::{Content, ContentKind};
use serde::Deserialize;
use serde_json::Value;

const LONGEST_MIME_TYPE: usize = 100;
const LONGEST_PATH: usize = 255;
const LONGEST_TITLE: usize = 200;
const LONGEST_URI: usize = 2048;

/// The place of an item's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In the file of this name in the toolbox's folder.
    File(String),
    /// In the item itself: text for the kind `text`, else base64 that is not decoded yet.
    Data(String),
    /// At a URI. Nothing here fetches it.
    Uri(String),
}

/// An item that has passed the rules that need no file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: ContentKind,
    pub(super) mime_type: String,
    pub(super) title: Option<String>,
    pub(super) source: Source,
}

/// Parses and checks an item that a toolbox returned.
///
/// # Errors
/// The rule that the item breaks.
pub(super) fn item(value: &Value) -> Result<Item, String> {
    let Content {
        kind,
        mime_type,
        path,
        data,
        uri,
        title,
    } = Content::deserialize(value)
        .map_err(|error| format!("it is not an item of content: {}", short(&error.to_string())))?;
    check_mime_type(kind, &mime_type)?;
    if title.as_ref().is_some_and(|title| !is_line(title, LONGEST_TITLE)) {
        return Err(format!(
            "its title is not one line of at most {LONGEST_TITLE} bytes"
        ));
    }
    let source = match (path, data, uri) {
        (Some(path), None, None) => Source::File(file(path)?),
        (None, Some(data), None) => Source::Data(data),
        (None, None, Some(uri)) => {
            check_uri(&uri)?;
            Source::Uri(uri)
        }
        _ => return Err("it needs exactly one of `path`, `data` and `uri`".to_owned()),
    };
    Ok(Item {
        kind,
        mime_type,
        title,
        source,
    })
}

/// Names the item in an error: its number and the place of its bytes.
pub(super) fn name(number: usize, value: &Value) -> String {
    let place = ["path", "uri"]
        .iter()
        .find_map(|key| Some((key, value.get(key)?.as_str()?)));
    match place {
        Some((key, place)) => format!("item {number} ({key} {:?})", short(place)),
        None => format!("item {number}"),
    }
}

fn check_mime_type(kind: ContentKind, mime_type: &str) -> Result<(), String> {
    let wanted = match kind {
        ContentKind::Image => "image/",
        ContentKind::Audio => "audio/",
        ContentKind::Text => "text/",
        ContentKind::Resource => "",
    };
    let legal = |part: &str| {
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b);
        !part.is_empty() && part.bytes().all(legal)
    };
    // Parameters, such as a character set, may follow.
    let essence = mime_type.split(';').next().unwrap_or_default();
    let is_one = essence
        .split_once('/')
        .is_some_and(|(whole, part)| legal(whole) && legal(part));
    if !is_one || !is_line(mime_type, LONGEST_MIME_TYPE) || !essence.starts_with(wanted) {
        let (found, example) = (
            short(mime_type),
            match kind {
                ContentKind::Image => "image/png",
                ContentKind::Audio => "audio/wav",
                ContentKind::Text => "text/plain",
                ContentKind::Resource => "application/pdf",
            },
        );
        return Err(format!(
            "its mime_type is {found:?}; expected one such as {example:?}"
        ));
    }
    Ok(())
}

/// Checks that the text is the name of a file in the folder itself, and not a path to another folder.
fn file(name: String) -> Result<String, String> {
    let legal = !["", ".", ".."].contains(&&*name) && !name.contains(['/', '\0']);
    if name.len() > LONGEST_PATH || !legal {
        return Err(format!(
            "its path is not the name of a file in the toolbox's content folder; expected one without `/`, of at most \
             {LONGEST_PATH} bytes"
        ));
    }
    Ok(name)
}

/// Checks a link for people and clients. A `file:` link could name any file on the client's own machine. A `data:` link has to be
/// in `data` instead, where its size is limited.
fn check_uri(uri: &str) -> Result<(), String> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    let is_scheme = scheme.bytes().all(legal) && scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let printable = uri.bytes().all(|b| b.is_ascii_graphic());
    if !is_scheme || !printable || uri.len() > LONGEST_URI {
        return Err(format!(
            "its uri is not one of at most {LONGEST_URI} printable ASCII characters, such as `https://...`"
        ));
    }
    match scheme.to_ascii_lowercase().as_str() {
        "file" => Err("its uri names a file; return a file as `path`".to_owned()),
        "data" => Err("its uri holds the data; return it as `data`".to_owned()),
        "javascript" => Err("its uri is a program".to_owned()),
        _ => Ok(()),
    }
}

fn is_line(text: &str, longest: usize) -> bool {
    text.len() <= longest && !text.contains(char::is_control)
}

/// Returns the beginning of a text that a toolbox wrote.
fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_keeps_the_rules_or_the_rule_that_it_breaks_is_named() {
        let long = "x".repeat(3000);
        let png = |more: Value| {
            let mut item = json!({"type": "image", "mime_type": "image/png"});
            item.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            item
        };
        let typed = |kind: &str, mime_type: &str| json!({"type": kind, "mime_type": mime_type, "data": ""});
        for (value, expected) in [
            (png(json!({"path": "a.png"})), ""),
            (png(json!({"path": "a.png", "title": "The front"})), ""),
            (png(json!({"path": "frames/a.png"})), "not the name of a file"),
            (png(json!({"path": "./a.png"})), "not the name of a file"),
            (png(json!({"path": "...", "later": 1})), ""),
            (png(json!({"path": "."})), "not the name of a file"),
            (png(json!({"data": "AA=="})), ""),
            (png(json!({"uri": "https://example.org/a.png"})), ""),
            (typed("audio", "audio/wav"), ""),
            (typed("text", "text/plain; charset=utf-8"), ""),
            (typed("resource", "application/vnd.map+json"), ""),
            (png(json!({"path": ""})), "not the name of a file"),
            (png(json!({"path": "/etc/passwd"})), "not the name of a file"),
            (png(json!({"path": "../other/a.png"})), "not the name of a file"),
            (png(json!({"path": "a/../../b"})), "not the name of a file"),
            (png(json!({"path": ".."})), "not the name of a file"),
            (png(json!({"path": "a\u{0}b"})), "not the name of a file"),
            (png(json!({ "path": long })), "not the name of a file"),
            (png(json!({})), "exactly one of"),
            (png(json!({"path": "a", "data": ""})), "exactly one of"),
            (png(json!({"path": "a", "uri": "https://a"})), "exactly one of"),
            (png(json!({"uri": "file:///etc/passwd"})), "names a file"),
            (png(json!({"uri": "FILE:/etc/passwd"})), "names a file"),
            (
                png(json!({"uri": "data:image/png;base64,AA=="})),
                "holds the data",
            ),
            (png(json!({"uri": "javascript:alert(1)"})), "is a program"),
            (png(json!({"uri": "a.png"})), "its uri is not one"),
            (png(json!({"uri": "https://a b"})), "its uri is not one"),
            (
                png(json!({"uri": format!("https://{long}")})),
                "its uri is not one",
            ),
            (png(json!({"path": "a", "title": "two\nlines"})), "its title"),
            (png(json!({"path": "a", "title": long})), "its title"),
            (typed("image", "text/html"), "its mime_type"),
            (typed("image", "png"), "its mime_type"),
            (typed("audio", "image/png"), "its mime_type"),
            (typed("text", "text/"), "its mime_type"),
            (typed("resource", "a/b\n"), "its mime_type"),
            (typed("resource", ""), "its mime_type"),
            (typed("video", "video/mp4"), "not an item of content"),
            (json!({"type": "image", "path": "a"}), "not an item of content"),
            (png(json!({"path": 7})), "not an item of content"),
            (json!("a.png"), "not an item of content"),
            (json!(null), "not an item of content"),
        ] {
            match item(&value) {
                Ok(_) => assert_eq!("", expected, "{value} is taken"),
                Err(error) => assert!(
                    !expected.is_empty() && error.contains(expected),
                    "{value}: {error}"
                ),
            }
        }
    }

    #[test]
    fn an_error_names_the_item_and_repeats_little_of_it() {
        let long = json!({"path": "x".repeat(3000)});
        assert!(name(1, &long).len() < 200);
        assert_eq!(name(2, &json!({"path": "../a"})), "item 2 (path \"../a\")");
        assert_eq!(name(3, &json!(7)), "item 3");
    }
}
