//! Checks of texts before they become elements, and of texts inside values.
//!
//! Checks a description before it is parsed, because some elements open a file as soon as a property is set, and finds
//! paths, addresses and descriptions in values for other components. Creates nothing. Read [`Policy::check_text`].

use gst::glib;
use gst::prelude::*;

use super::kind::{self, Access, Kind, Role};
use super::property::not_understood;
use super::{MOST_NESTED, Policy, Refusal, Uses, Wrong, address};
use crate::description::{Description, ElementText};

impl Policy {
    /// Checks the text of a description.
    pub(super) fn check_text(&self, text: &str, depth: usize) -> Result<(), Refusal> {
        if depth > MOST_NESTED {
            let why = format!("descriptions are nested more than {MOST_NESTED} deep");
            return Err(Wrong::new(why, "max_pipeline_length").on("pipeline", None));
        }
        for element in &Description::read(text).elements {
            self.check_element_text(element, depth)?;
        }
        Ok(())
    }

    fn check_element_text(&self, element: &ElementText, depth: usize) -> Result<(), Refusal> {
        let name = element.factory.as_str();
        if element.is_address {
            let mut uses = Uses::default();
            let checked = if address::is_address(name) {
                self.check_address(name, Access::Either, depth, &mut uses)
            } else {
                self.check_words(
                    Kind::Path(Access::Either),
                    Role::Other,
                    name,
                    None,
                    depth,
                    &mut uses,
                )
            };
            return checked.map_err(|wrong| wrong.on(name, None));
        }
        let factory = gst::ElementFactory::find(name).and_then(|factory| factory.load().ok());
        if let Some(factory) = &factory {
            self.check_factory_and_kind(factory)
                .map_err(|wrong| wrong.on(name, None))?;
        }
        let class = factory
            .as_ref()
            .and_then(|factory| glib::Class::<glib::Object>::from_type(factory.element_type()));
        let role = factory.as_ref().map_or(Role::Other, |factory| {
            self.reaches.of(factory, factory.element_type()).role
        });
        for property in &element.properties {
            let known = class
                .as_ref()
                .and_then(|class| class.find_property(&property.name));
            // `child::property` is set on an element that is not known yet.
            let last = property.name.rsplit("::").next().unwrap_or_default();
            let kind = known.map_or_else(
                || kind::of_name(last, Role::Other),
                |known| kind::of_property(&known, role),
            );
            if self.trusts(name, kind) {
                continue;
            }
            let kind = match kind {
                Kind::DeviceNumber => Kind::Harmless,
                kind => kind,
            };
            self.check_words(kind, role, &property.value, None, depth, &mut Uses::default())
                .map_err(|wrong| wrong.on(name, Some(&property.name)))?;
        }
        Ok(())
    }

    /// Checks `key=value` pairs for another component, such as an encoding profile or the options of a library.
    pub(super) fn check_composite(
        &self,
        text: &str,
        role: Role,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        if depth > MOST_NESTED {
            return Err(Wrong::new("values are nested too deep", "max_pipeline_length"));
        }
        for (key, value) in pairs(text) {
            let kind = match kind::of_name(&key, role) {
                // A codec's profile is a word; a file name has a dot or a slash.
                Kind::Path(_) if key.contains("profile") => Kind::Text,
                Kind::Harmless | Kind::DeviceNumber => Kind::Text,
                kind => kind,
            };
            self.check_words(kind, role, &value, None, depth, uses)
                .map_err(|wrong| Wrong {
                    reason: format!("`{key}`: {}", wrong.reason),
                    ..wrong
                })?;
        }
        for word in text.split(|c: char| c.is_whitespace() || ",;|\"'=(){}[]<>".contains(c)) {
            self.check_free(word, depth, uses)?;
        }
        Ok(())
    }

    /// Checks a text of unknown kind: every possible interpretation must be allowed.
    pub(super) fn check_free(&self, text: &str, depth: usize, uses: &mut Uses) -> Result<(), Wrong> {
        let text = text.trim().trim_matches(['"', '\'']);
        if address::is_address(text) {
            return self.check_address(text, Access::Both, depth, uses);
        }
        for at in address::find(text) {
            let rest = &text[at..];
            let end = rest
                .find(|c: char| c.is_whitespace() || "\"'<>,".contains(c))
                .unwrap_or(rest.len());
            self.check_address(&rest[..end], Access::Both, depth, uses)?;
        }
        let like_path =
            text.starts_with(['/', '~']) || text.split('/').any(|part| part == ".." || part == ".");
        if like_path && !self.sealed {
            self.roots.check(text, Access::Both)?;
        }
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        if words.next().is_some() && gst::ElementFactory::find(first).is_some() {
            return self.check_text(text, depth + 1).map_err(Wrong::from);
        }
        Ok(())
    }

    /// Checks options of a library: numbers and switches are harmless, except as file names; any word could be a file
    /// name.
    pub(super) fn check_options(&self, text: &str) -> Result<(), Wrong> {
        let simple = |value: &str| {
            value
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b".,-+/".contains(&byte))
                && !value.starts_with('/')
                && !value.contains("..")
        };
        for option in text.split([':', ' ', '\t', '\n', ';', '&']) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            if !simple(value) || kind::is_file_option(key) {
                let mut wrong = not_understood();
                wrong.reason = format!("the option {key} has {value:?}, which could be the name of a file");
                return Err(wrong);
            }
        }
        Ok(())
    }
}

/// The `key=value` pairs in a text: quotes removed, types in parentheses ignored.
fn pairs(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let key: String = rest[..at]
            .trim_end()
            .chars()
            .rev()
            .take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
            .collect();
        let key: String = key.chars().rev().collect();
        let mut value = rest[at + 1..].trim_start();
        if let Some(typed) = value.strip_prefix('(')
            && let Some((_, after)) = typed.split_once(')')
        {
            value = after.trim_start();
        }
        let (read, after) = value_of(value);
        // A quoted value may contain further pairs.
        if read.contains('=') {
            found.extend(pairs(&read));
        }
        if !key.is_empty() {
            found.push((key, read));
        }
        rest = after;
    }
    found
}

/// The value at the start of a text, and the rest.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text
            .find(|c: char| c.is_whitespace() || ",;|)}]>".contains(c))
            .unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            '"' => return (value, &quoted[index + 1..]),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn pairs_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("properties,location=/x", vec![("location", "/x")]),
            (
                "p, location=(string)\"/a b\", n=1",
                vec![("location", "/a b"), ("n", "1")],
            ),
            (
                "p, inner=(structure)\"q\\,location=/x\"",
                vec![("location", "/x"), ("inner", "q,location=/x")],
            ),
            (
                "video/x-h264|element-properties,file=x.log",
                vec![("file", "x.log")],
            ),
        ] {
            let found = pairs(text);
            let found: Vec<(&str, &str)> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
