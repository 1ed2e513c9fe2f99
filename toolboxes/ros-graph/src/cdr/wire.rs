//! How numbers and wide texts stand on the wire.

/// How a unit of UTF-16 stands on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wide {
    /// In four bytes: both middlewares of Humble, and Fast DDS of Kilted.
    #[default]
    Four,
    /// In two bytes, as the standard has it.
    Two,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least first, which is what is written.
    #[default]
    Little,
    /// The greatest first.
    Big,
}
