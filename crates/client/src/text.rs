//! Makes texts of models, plugins and other programs safe to show to a person.

use std::borrow::Cow;

/// Whether a character is of Unicode's categories Cc, Cf, Zl or Zp: it shows nothing itself, and can hide or reorder what
/// stands beside it.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns the text with the characters of [`is_unseen`] written as escapes, except line ends and tabs: terminals obey some of
/// them.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| is_unseen(c) && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if harmful(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// The meaning of a piece of text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Good.
    Good,
    /// Broken or dangerous.
    Bad,
    /// It is limited.
    Warning,
    /// Secondary.
    Dim,
    /// It is what the line is about.
    Strong,
}

impl Tone {
    /// The text in its colour, for a terminal. It is not made safe here.
    #[must_use]
    pub fn coloured(self, text: &str) -> String {
        let code = match self {
            Self::Good => 32,
            Self::Bad => 31,
            Self::Warning => 33,
            Self::Dim => 2,
            Self::Strong => 1,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_of_what_others_write() {
        for (text, shown) in [
            ("a\u{1b}[2Jb\r\n", "a\\u{1b}[2Jb\\u{d}\n"),
            ("x\u{202e}y", "x\\u{202e}y"),
            ("\u{61c}\u{e0041}", "\\u{61c}\\u{e0041}"),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }
}
