//! What an interface is made of: fields, constants and defaults, as they are written. Read [`Definition`].

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::error::TypeError;

/// The full name of a type: `geometry_msgs/msg/Twist`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeName {
    /// The package.
    pub package: String,
    /// Message, service or action; the parts of services and actions have the kind of their whole.
    pub kind: Kind,
    /// The name inside the package.
    pub name: String,
}

/// What an interface is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A message of a topic.
    Message,
    /// A request and its answer.
    Service,
    /// A goal, its feedback and its result.
    Action,
}

/// One message: what is read and written as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its full name.
    pub name: TypeName,
    /// The fields in the order of the wire.
    pub fields: Vec<Field>,
    /// The constants.
    pub constants: Vec<Constant>,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: FieldType,
    /// The value where a sender gives none; zero without it.
    pub default: Option<Value>,
    /// The comment beside or above it, which has units.
    pub comment: String,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: Primitive,
    /// Its value.
    pub value: Value,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// The type of one element.
    pub base: Base,
    /// How many there are.
    pub count: Count,
}

/// The type of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A number or a truth value.
    Primitive(Primitive),
    /// A text of UTF-8, of at most so many bytes.
    Text(Option<usize>),
    /// A text of UTF-16, of at most so many units.
    WideText(Option<usize>),
    /// Another message.
    Message(TypeName),
}

/// The primitive types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Primitive {
    Bool,
    /// An opaque byte, `uint8` on the wire.
    Byte,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float32,
    Float64,
    /// A text as the type of a constant.
    Text,
}

/// How many elements a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// Always so many.
    Array(usize),
    /// Any number, or at most so many.
    Sequence(Option<usize>),
}

impl Kind {
    /// The folder of such files, and their suffix: `msg`.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Service => "srv",
            Self::Action => "action",
        }
    }

    /// The kind whose folder it is.
    #[must_use]
    pub fn of_folder(folder: &str) -> Option<Self> {
        [Self::Message, Self::Service, Self::Action]
            .into_iter()
            .find(|kind| kind.folder() == folder)
    }
}

impl TypeName {
    /// A type of this kind.
    #[must_use]
    pub fn new(package: &str, kind: Kind, name: &str) -> Self {
        Self {
            package: package.to_owned(),
            kind,
            name: name.to_owned(),
        }
    }

    /// A part of the type: `_Request`, `_Goal`.
    #[must_use]
    pub fn part(&self, suffix: &str) -> Self {
        Self::new(&self.package, self.kind, &format!("{}{suffix}", self.name))
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.package, self.kind.folder(), self.name)
    }
}

impl FromStr for TypeName {
    type Err = TypeError;

    /// Reads `geometry_msgs/msg/Twist`; `geometry_msgs/Twist` is a message.
    fn from_str(text: &str) -> Result<Self, TypeError> {
        let wrong = || TypeError::Name(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        let (package, kind, name) = match parts[..] {
            [package, name] => (package, Kind::Message, name),
            [package, kind, name] => (package, Kind::of_folder(kind).ok_or_else(wrong)?, name),
            _ => return Err(wrong()),
        };
        match is_word(package) && is_word(name) {
            true => Ok(Self::new(package, kind, name)),
            false => Err(wrong()),
        }
    }
}

/// Letters, digits and underscores, a letter or an underscore first.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

impl Primitive {
    /// The least and the greatest value of an integer type.
    #[must_use]
    pub fn range(self) -> (i128, i128) {
        match self {
            Self::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Self::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Self::Uint16 => (0, u16::MAX.into()),
            Self::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Uint32 => (0, u32::MAX.into()),
            Self::Int64 => (i64::MIN.into(), i64::MAX.into()),
            Self::Uint64 => (0, u64::MAX.into()),
            _ => (0, u8::MAX.into()),
        }
    }

    /// The name in a definition.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte => "byte",
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Int16 => "int16",
            Self::Uint16 => "uint16",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Text => "string",
        }
    }
}

impl fmt::Display for Definition {
    /// The definition in the language of `.msg` files, its name first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.name)?;
        for constant in &self.constants {
            writeln!(f, "{} {}={}", constant.of.word(), constant.name, constant.value)?;
        }
        for field in &self.fields {
            write!(f, "{} {}", field.of, field.name)?;
            if let Some(default) = &field.default {
                write!(f, " {default}")?;
            }
            match field.comment.lines().next().map(str::trim) {
                Some(comment) if !comment.is_empty() => writeln!(f, "  # {comment}")?,
                _ => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base {
            Base::Primitive(primitive) => f.write_str(primitive.word())?,
            Base::Text(None) => f.write_str("string")?,
            Base::Text(Some(limit)) => write!(f, "string<={limit}")?,
            Base::WideText(None) => f.write_str("wstring")?,
            Base::WideText(Some(limit)) => write!(f, "wstring<={limit}")?,
            Base::Message(name) => write!(f, "{name}")?,
        }
        match self.count {
            Count::One => Ok(()),
            Count::Array(length) => write!(f, "[{length}]"),
            Count::Sequence(None) => f.write_str("[]"),
            Count::Sequence(Some(limit)) => write!(f, "[<={limit}]"),
        }
    }
}
