//! The parts of a description, with their places in the text. Read [`Description`].

/// A parsed pipeline description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// In the order of the text.
    pub(crate) elements: Vec<ElementText>,
    /// In the order of the text.
    pub(crate) links: Vec<LinkText>,
    /// The first syntax error.
    pub(crate) problem: Option<Problem>,
}

/// An element and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ElementText {
    /// The factory, or the address of an element given as an address (`file:///x`).
    pub(crate) factory: String,
    /// Whether `factory` is an address.
    pub(crate) is_address: bool,
    /// Its start in the text, in bytes.
    pub(crate) at: usize,
    /// In the order of the text.
    pub(crate) properties: Vec<PropertyText>,
}

/// `name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyText {
    /// The text before the `=`.
    pub(crate) name: String,
    /// The text after it, without quotes and escapes.
    pub(crate) value: String,
    /// Start of the name, in bytes.
    pub(crate) at: usize,
    /// Start of the value, in bytes.
    pub(crate) value_at: usize,
}

/// `a ! b`, or `a ! caps ! b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkText {
    /// The upstream end.
    pub(crate) from: Endpoint,
    /// The downstream end.
    pub(crate) to: Endpoint,
    /// The filter caps.
    pub(crate) caps: Option<String>,
    /// Position of the `!`, in bytes.
    pub(crate) at: usize,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An index into [`Description::elements`], and the pad if named.
    Element(usize, Option<String>),
    /// `name.` or `name.pad`.
    Reference(String, Option<String>),
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Its position, in bytes.
    pub(crate) at: usize,
    /// The message.
    pub(crate) what: &'static str,
}

impl Description {
    /// The name that `name=` gives an element.
    pub(crate) fn given_name(&self, index: usize) -> Option<&str> {
        let element = self.elements.get(index)?;
        let property = element
            .properties
            .iter()
            .rfind(|property| property.name == "name")?;
        Some(&property.value)
    }

    /// The element named `name` by `name=`.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        (0..self.elements.len()).find(|index| self.given_name(*index) == Some(name))
    }
}
