//! Descriptions in shell syntax.
//!
//! Users and models copy command lines: `gst-launch-1.0 -e videotestsrc ! "video/x-raw, width=320" ! fakesink`. There
//! the quotes are for the shell, and gst-launch-1.0 escapes the spaces of its arguments before it parses them.

use std::borrow::Cow;

/// Converts a text to the parser's syntax.
///
/// A text that starts with `gst-launch-1.0`, or that has a quote at the start of a word (which the parser allows only
/// after a `=`) or a single one after a `=`, is read as a command line; any other text is unchanged.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let command = text
        .strip_prefix("gst-launch-1.0")
        .filter(|rest| rest.starts_with(char::is_whitespace));
    match command {
        Some(rest) => Cow::Owned(join(words(rest).into_iter().skip_while(|word| is_option(word)))),
        None if has_quoted_word(text) => Cow::Owned(join(words(text))),
        None => Cow::Borrowed(text),
    }
}

/// `-e`, `-v`, `--eos-on-shutdown`: options of the program, not part of the pipeline.
fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

fn has_quoted_word(text: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match quote {
            _ if letter == '\\' => {
                letters.next();
            }
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => {
                // The parser leaves single quotes in a value.
                if before.is_whitespace() || (letter == '\'' && before == '=') {
                    return true;
                }
                quote = Some(letter);
            }
            None => {}
        }
        before = letter;
    }
    false
}

/// Splits a command line into words, with the quotes and backslashes of sh but no other shell syntax.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some('"') if letter == '\\' && letters.peek().is_some_and(|next| "\"\\$`".contains(*next)) => {
                word.get_or_insert_default().extend(letters.next());
            }
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter.is_whitespace() => found.extend(word.take()),
            None if letter == '"' || letter == '\'' => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            None if letter == '\\' => word
                .get_or_insert_default()
                .extend(letters.next().filter(|next| *next != '\n')),
            None => word.get_or_insert_default().push(letter),
        }
    }
    found.extend(word);
    found
}

/// Joins the words like gst-launch-1.0: spaces outside double quotes are escaped.
fn join(words: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        let mut quoted = false;
        let mut before = ' ';
        for letter in word.chars() {
            if letter == '"' && (!quoted || before != '\\') {
                quoted = !quoted;
            }
            if letter == ' ' && !quoted {
                text.push('\\');
            }
            text.push(letter);
            before = letter;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn command_lines_become_what_the_parser_is_given() {
        for (text, expected) in [
            ("videotestsrc ! fakesink", "videotestsrc ! fakesink"),
            (
                " gst-launch-1.0 -v -e videotestsrc ! fakesink",
                "videotestsrc ! fakesink",
            ),
            (
                "videotestsrc ! \"video/x-raw, width=320\" ! fakesink",
                "videotestsrc ! video/x-raw,\\ width=320 ! fakesink",
            ),
            (
                "videotestsrc ! 'video/x-raw(memory:SystemMemory), width=320' ! fakesink",
                "videotestsrc ! video/x-raw(memory:SystemMemory),\\ width=320 ! fakesink",
            ),
            (
                "filesrc location=\"/tmp/a b\" ! fakesink",
                "filesrc location=\"/tmp/a b\" ! fakesink",
            ),
            (
                "gst-launch-1.0 filesrc location=\"/tmp/a b\" \\! fakesink",
                "filesrc location=/tmp/a\\ b ! fakesink",
            ),
            (
                "gst-launch-1.0 srtsink uri='srt://:5000?mode=listener'",
                "srtsink uri=srt://:5000?mode=listener",
            ),
            (
                "filesrc location='/tmp/a b' ! fakesink name=\"c d\"",
                "filesrc location=/tmp/a\\ b ! fakesink name=c\\ d",
            ),
            ("gst-launch-1.0x", "gst-launch-1.0x"),
        ] {
            assert_eq!(normalize(text), expected, "{text}");
        }
    }
}
