//! The registers of an STS3215 that we use, and how a number stands in them.
//!
//! From the vendor's memory table of the STS series: little-endian, and a signed number is a magnitude with a sign bit.

/// One register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) address: u8,
    /// Bytes: 1 or 2.
    pub(crate) width: u8,
    /// The bit of the sign, where the number has one.
    sign: Option<u8>,
    /// As errors name it.
    pub(crate) name: &'static str,
}

/// The addresses after the last register that a servo measures into. Nothing beyond is read.
pub(crate) const END: u8 = 71;

impl Register {
    pub(crate) const MODEL: Self = Self::word(3, "model_number");
    pub(crate) const ID: Self = Self::byte(5, "id");
    pub(crate) const MIN_POSITION: Self = Self::word(9, "min_position_limit");
    pub(crate) const MAX_POSITION: Self = Self::word(11, "max_position_limit");
    pub(crate) const MAX_TORQUE: Self = Self::word(16, "max_torque_limit");
    pub(crate) const HOMING_OFFSET: Self = Self::signed(31, 11, "homing_offset");
    pub(crate) const MODE: Self = Self::byte(33, "operating_mode");
    pub(crate) const TORQUE: Self = Self::byte(40, "torque_enable");
    pub(crate) const GOAL_POSITION: Self = Self::signed(42, 15, "goal_position");
    pub(crate) const GOAL_SPEED: Self = Self::signed(46, 15, "goal_speed");
    pub(crate) const TORQUE_LIMIT: Self = Self::word(48, "torque_limit");
    pub(crate) const LOCK: Self = Self::byte(55, "lock");
    pub(crate) const POSITION: Self = Self::signed(56, 15, "present_position");
    pub(crate) const SPEED: Self = Self::signed(58, 15, "present_speed");
    pub(crate) const LOAD: Self = Self::signed(60, 10, "present_load");
    pub(crate) const VOLTAGE: Self = Self::byte(62, "present_voltage");
    pub(crate) const TEMPERATURE: Self = Self::byte(63, "present_temperature");
    pub(crate) const STATUS: Self = Self::byte(65, "status");
    pub(crate) const MOVING: Self = Self::byte(66, "moving");
    pub(crate) const CURRENT: Self = Self::word(69, "present_current");

    const fn byte(address: u8, name: &'static str) -> Self {
        Self {
            address,
            width: 1,
            sign: None,
            name,
        }
    }

    const fn word(address: u8, name: &'static str) -> Self {
        Self {
            width: 2,
            ..Self::byte(address, name)
        }
    }

    const fn signed(address: u8, bit: u8, name: &'static str) -> Self {
        Self {
            sign: Some(bit),
            ..Self::word(address, name)
        }
    }

    /// The bytes of a number; `None` where it does not fit.
    pub(crate) fn encode(self, value: i64) -> Option<Vec<u8>> {
        let largest = match (self.sign, self.width) {
            (Some(bit), _) => (1 << bit) - 1,
            (None, 1) => 0xFF,
            (None, _) => 0xFFFF,
        };
        let magnitude = u16::try_from(value.unsigned_abs()).ok()?;
        if magnitude > largest || (value < 0 && self.sign.is_none()) {
            return None;
        }
        let sign = self.sign.filter(|_| value < 0).map_or(0, |bit| 1 << bit);
        let [low, high] = (magnitude | sign).to_le_bytes();
        Some(if self.width == 1 {
            vec![low]
        } else {
            vec![low, high]
        })
    }

    /// The number in a block of registers that begins at the address `first`; `None` where the block is too short.
    pub(crate) fn decode(self, first: u8, block: &[u8]) -> Option<i64> {
        let at = usize::from(self.address.checked_sub(first)?);
        let bytes = block.get(at..at + usize::from(self.width))?;
        let word = match bytes {
            [low] => u16::from(*low),
            [low, high] => u16::from_le_bytes([*low, *high]),
            _ => return None,
        };
        Some(match self.sign {
            None => i64::from(word),
            Some(bit) => {
                let magnitude = i64::from(word & ((1 << bit) - 1));
                if word & (1 << bit) == 0 {
                    magnitude
                } else {
                    -magnitude
                }
            }
        })
    }
}

/// Registers side by side that are read in one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u8,
    pub(crate) length: u8,
}

impl Span {
    /// From one register to another, both included.
    pub(crate) const fn of(from: Register, to: Register) -> Self {
        Self {
            first: from.address,
            length: to.address + to.width - from.address,
        }
    }

    /// This span with `more` registers beside it: before it, and behind it where there are too few before.
    pub(crate) fn wider(self, more: u8) -> Option<Self> {
        let before = more.min(self.first);
        let wider = Self {
            first: self.first - before,
            length: self.length + more,
        };
        (wider.first + wider.length <= END).then_some(wider)
    }

    /// The part of `block`, read as the span `whole`, that is this span.
    pub(crate) fn within(self, whole: Self, block: &[u8]) -> Option<Vec<u8>> {
        let at = usize::from(self.first.checked_sub(whole.first)?);
        Some(block.get(at..at + usize::from(self.length))?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_registers_as_the_vendor_has_them() {
        for (register, value, bytes) in [
            (Register::TORQUE, 1, Some(&[1][..])),
            (Register::TORQUE, 256, None),
            (Register::TORQUE, -1, None),
            (Register::TORQUE_LIMIT, 1000, Some(&[0xE8, 0x03])),
            (Register::TORQUE_LIMIT, 70_000, None),
            (Register::HOMING_OFFSET, -709, Some(&[0xC5, 0x0A])),
            (Register::HOMING_OFFSET, 2048, None),
            (Register::GOAL_POSITION, -100, Some(&[0x64, 0x80])),
            (Register::GOAL_POSITION, 32_768, None),
        ] {
            let encoded = register.encode(value);
            assert_eq!(encoded.as_deref(), bytes, "{} {value}", register.name);
            if let Some(bytes) = bytes {
                assert_eq!(
                    register.decode(register.address, bytes),
                    Some(value),
                    "{}",
                    register.name
                );
            }
        }
        assert_eq!(Register::SPEED.decode(56, &[0, 0, 1]), None, "half of it");
    }

    #[test]
    fn a_wider_span_has_the_same_registers_in_it() {
        let block: Vec<u8> = (0..END).collect();
        for span in [
            Span::of(Register::MODEL, Register::MODEL),
            Span::of(Register::MIN_POSITION, Register::HOMING_OFFSET),
            Span::of(Register::POSITION, Register::CURRENT),
        ] {
            for more in 0..32 {
                let Some(wider) = span.wider(more) else { continue };
                assert_eq!(wider.length, span.length + more);
                let (from, length) = (usize::from(wider.first), usize::from(wider.length));
                let found = span.within(wider, &block[from..from + length]).unwrap();
                let first = usize::from(span.first);
                assert_eq!(
                    found,
                    block[first..first + usize::from(span.length)],
                    "{span:?} {more}"
                );
            }
        }
    }
}
