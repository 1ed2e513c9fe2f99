//! Values of JSON as the bytes of DDS, and back (CDR, the first version of XCDR, which all of ROS 2 speaks).
//!
//! | ROS | JSON |
//! |---|---|
//! | integers | a number, checked against the type's range |
//! | `float32`, `float64` | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` for what JSON does not have |
//! | `uint8[]`, `byte[]` of any kind | a text of base64, as rosbridge has it; a list of numbers is read as well |
//! | `string`, `wstring` | a text |
//! | a message | an object; a field that is not given is the definition's default or zero, one that is not known is refused |
//!
//! Both directions check bounds of texts and sequences. Reading is strict: every length is held against the bytes that
//! are left before anything is allocated, a message has at most [`Cdr::values`] values, and after it at most three bytes
//! of padding follow. It is pure. Read [`Cdr`].

mod decode;
mod encode;
mod fault;
mod wire;

use serde_json::Value;

use crate::error::CodecError;
use crate::shape::Shape;
use decode::Reader;
use encode::Writer;
use fault::Fault;
pub use wire::{Order, Wide};

/// Reads and writes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cdr {
    /// How wide texts are written and read.
    pub wide: Wide,
    /// How many numbers, texts and messages one message may have. Bytes count as one for each sequence.
    pub values: usize,
}

impl Default for Cdr {
    fn default() -> Self {
        Self {
            wide: Wide::default(),
            values: 500_000,
        }
    }
}

impl Cdr {
    /// The bytes of a value, little-endian, without the four bytes of encapsulation.
    ///
    /// # Errors
    /// The value does not fit the type: the error names the field and what is accepted.
    pub fn encode(&self, shape: &Shape, value: &Value) -> Result<Vec<u8>, CodecError> {
        self.encode_as(shape, value, Order::Little)
    }

    /// The same in this order.
    ///
    /// # Errors
    /// The value does not fit the type.
    pub fn encode_as(&self, shape: &Shape, value: &Value, order: Order) -> Result<Vec<u8>, CodecError> {
        let mut writer = Writer::new(order, self.wide, self.values);
        match writer.message(shape, value) {
            Ok(()) => Ok(writer.bytes()),
            Err(Fault { reason: None, .. }) => Err(self.too_large(shape)),
            Err(Fault {
                path,
                reason: Some(reason),
            }) => Err(CodecError::Value {
                path: if path.is_empty() {
                    shape.name.to_string()
                } else {
                    path
                },
                reason,
            }),
        }
    }

    /// The value of the bytes, which come without their four bytes of encapsulation.
    ///
    /// # Errors
    /// The bytes are not of the type: too few, too many, a length past the end or past its bound, a text that is no
    /// UTF-8, a truth value that is neither 0 nor 1.
    pub fn decode(&self, shape: &Shape, bytes: &[u8], order: Order) -> Result<Value, CodecError> {
        let mut reader = Reader::new(bytes, order, self.wide, self.values);
        let value = reader
            .message(shape)
            .and_then(|value| reader.end().map(|()| value));
        value.map_err(|fault| match fault {
            Fault { reason: None, .. } => self.too_large(shape),
            Fault {
                path,
                reason: Some(reason),
            } => CodecError::Bytes {
                name: shape.name.to_string(),
                path: if path.is_empty() { "end".to_owned() } else { path },
                reason,
            },
        })
    }

    fn too_large(&self, shape: &Shape) -> CodecError {
        CodecError::Size {
            name: shape.name.to_string(),
            limit: self.values,
        }
    }
}

#[cfg(test)]
#[path = "cdr/tests.rs"]
mod tests;
