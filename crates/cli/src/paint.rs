//! The look of text: colour, tables, durations. Pure. Text from the bus is made safe for a terminal here.

use comfy_table::{Attribute, Color, ContentArrangement, Table, presets};
use serde_json::Value;

pub use client::text::{Tone, plain};

/// Whether there is colour, and how wide a table may be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paint {
    /// Colour and bold.
    pub colour: bool,
    /// Columns of the terminal; `None`: lines are never broken.
    pub width: Option<u16>,
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// A cell in a tone.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tone: Some(tone),
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            tone: None,
        }
    }
}

impl Paint {
    /// Returns the text in its tone, made safe for a terminal.
    #[must_use]
    pub fn tone(self, tone: Tone, text: &str) -> String {
        let text = plain(text);
        match self.colour {
            true => tone.coloured(&text),
            false => text.into_owned(),
        }
    }

    /// Returns a table without lines, which ends with a newline.
    pub fn table(self, header: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        match self.width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        // The output knows whether there is a terminal, so the table must not check for one.
        table.force_no_tty();
        if self.colour {
            table.enforce_styling();
        }
        table.set_header(header.iter().map(|name| styled(&Cell::toned(Tone::Dim, *name))));
        for row in rows {
            table.add_row(row.iter().map(styled));
        }
        table.trim_fmt() + "\n"
    }
}

fn styled(cell: &Cell) -> comfy_table::Cell {
    let painted = comfy_table::Cell::new(plain(&cell.text));
    match cell.tone {
        None => painted,
        Some(Tone::Good) => painted.fg(Color::Green),
        Some(Tone::Bad) => painted.fg(Color::Red),
        Some(Tone::Warning) => painted.fg(Color::Yellow),
        Some(Tone::Dim) => painted.add_attribute(Attribute::Dim),
        Some(Tone::Strong) => painted.add_attribute(Attribute::Bold),
    }
}

/// The first line of a description.
pub(super) fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or("").trim_end()
}

/// `250 ms`, `1.5 s`, `2 min`, `1 h 5 min`.
pub(super) fn milliseconds(ms: u64) -> String {
    let tenths = ms / 100;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 if tenths.is_multiple_of(10) => format!("{} s", tenths / 10),
        1_000..120_000 => format!("{}.{} s", tenths / 10, tenths % 10),
        120_000..3_600_000 => match ms / 1_000 % 60 {
            0 => format!("{} min", ms / 60_000),
            seconds => format!("{} min {seconds} s", ms / 60_000),
        },
        _ => match ms / 60_000 % 60 {
            0 => format!("{} h", ms / 3_600_000),
            minutes => format!("{} h {minutes} min", ms / 3_600_000),
        },
    }
}

/// `1 tool`, `2 tools`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The names, or a dash when there are none.
pub(super) fn joined(names: &[String]) -> String {
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    }
}

/// A value for people: a text without quotes, anything else as JSON.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_naturally() {
        for (ms, text) in [
            (0, "0 ms"),
            (250, "250 ms"),
            (1_000, "1 s"),
            (1_549, "1.5 s"),
            (15_000, "15 s"),
            (119_999, "119.9 s"),
            (120_000, "2 min"),
            (125_400, "2 min 5 s"),
            (3_600_000, "1 h"),
            (3_900_000, "1 h 5 min"),
        ] {
            assert_eq!(milliseconds(ms), text, "{ms}");
        }
    }

    #[test]
    fn no_control_characters_reach_a_terminal() {
        for (text, shown) in [
            ("zażółć 🤖\n\tx", "zażółć 🤖\n\tx"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\rb\u{7}", "a\\u{d}b\\u{7}"),
            ("\u{202e}txt.so", "\\u{202e}txt.so"),
            ("wa\u{200b}ve", "wa\\u{200b}ve"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(plain(text), shown);
            assert_eq!(Paint::default().tone(Tone::Bad, text), shown);
            let table = Paint::default().table(&["A"], [vec![text.into()]]);
            assert!(!table.contains('\u{1b}'), "{text:?}");
        }
    }

    #[test]
    fn tables_are_aligned_and_carry_no_trailing_blanks() {
        let rows = [
            vec!["add".into(), Cell::toned(Tone::Good, "read")],
            vec!["pick_object".into(), "motion".into()],
        ];
        let text = Paint::default().table(&["NAME", "EFFECT"], rows.clone());
        assert_eq!(
            text,
            " NAME         EFFECT\n add          read\n pick_object  motion\n"
        );
        let colour = Paint {
            colour: true,
            width: Some(80),
        };
        let text = colour.table(&["NAME", "EFFECT"], rows);
        assert!(text.contains("\u{1b}[38;5;10m read"), "{text:?}");
    }
}
