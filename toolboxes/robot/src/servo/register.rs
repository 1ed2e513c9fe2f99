//! The registers of the servos that we use, where each family has them, and how a number stands in them.
//!
//! From the memory table of Feetech's STS series (little-endian; a signed number is a magnitude with a sign bit) and from the control tables of
//! ROBOTIS's XL430-W250 and XL330-M288 in the e-Manual (little-endian; a signed number is its two's complement). Numbers have the units of the
//! STS series in both: steps, steps a second, thousandths of the torque. Read [`Register`].

/// Whose servos hang on a bus: how they speak, and where their registers stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// Feetech's STS3215.
    #[default]
    Sts,
    /// Dynamixel's XL430-W250 and XL330-M288.
    Xl,
}

impl Family {
    /// The addresses after the last register that a servo measures into. Nothing beyond is read.
    pub(super) const fn end(self) -> u8 {
        match self {
            Self::Sts => 71,
            Self::Xl => 148,
        }
    }

    /// The largest homing offset.
    pub(crate) const fn farthest(self) -> i64 {
        match self {
            Self::Sts => 2047,
            Self::Xl => 1_044_479,
        }
    }

    /// What a positive homing offset does to the position that is read.
    pub(crate) const fn offset_sign(self) -> i64 {
        match self {
            Self::Sts => -1,
            Self::Xl => 1,
        }
    }

    /// How errors name the registers with the limits of the position.
    pub(crate) const fn limits(self) -> &'static str {
        match self {
            Self::Sts => "registers 9 and 11",
            Self::Xl => "registers 52 and 48",
        }
    }
}

/// One register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    sts: Place,
    xl: Place,
    /// As errors name it.
    pub(crate) name: &'static str,
}

/// Where a number stands, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: u8,
    /// Bytes: 1, 2 or 4; 0 where the servo has no such register.
    pub(super) width: u8,
    form: Form,
    /// What one is in our units, as a fraction.
    unit: (i64, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unsigned,
    /// A magnitude; the bit is the sign.
    Magnitude(u8),
    Complement,
    /// The operating mode of an XL servo, as those of the STS series are numbered.
    Mode,
    /// The alarms of an XL servo, as those of the STS series are.
    Alarms,
}

const NONE: Place = Place {
    address: 0,
    width: 0,
    form: Form::Unsigned,
    unit: (1, 1),
};

const fn plain(address: u8, width: u8) -> Place {
    Place {
        address,
        width,
        ..NONE
    }
}

const fn signed(address: u8, bit: u8) -> Place {
    Place {
        form: Form::Magnitude(bit),
        ..plain(address, 2)
    }
}

const fn complement(address: u8, width: u8) -> Place {
    Place {
        form: Form::Complement,
        ..plain(address, width)
    }
}

const fn formed(address: u8, form: Form) -> Place {
    Place {
        form,
        ..plain(address, 1)
    }
}

impl Place {
    const fn of(self, unit: (i64, i64)) -> Self {
        Self { unit, ..self }
    }
}

/// Steps a second for one of an XL servo's velocity: 0.229 turns a minute of 4096 steps.
const VELOCITY: (i64, i64) = (156_331, 10_000);
/// Thousandths of the torque for one of an XL servo's PWM, of which it has 885.
const PWM: (i64, i64) = (1000, 885);

/// Registers of both families, of the STS series first.
macro_rules! registers {
    ($($name:ident $word:literal: $sts:expr, $xl:expr;)*) => {
        impl Register {
            $(pub(crate) const $name: Self = Self { sts: $sts, xl: $xl, name: $word };)*
        }
    };
}

registers! {
    MODEL "model_number": plain(3, 2), plain(0, 2);
    ID "id": plain(5, 1), plain(7, 1);
    DRIVE_MODE "drive_mode": NONE, plain(10, 1);
    MIN_POSITION "min_position_limit": plain(9, 2), plain(52, 4);
    MAX_POSITION "max_position_limit": plain(11, 2), plain(48, 4);
    MAX_TORQUE "max_torque_limit": plain(16, 2), plain(36, 2).of(PWM);
    HOMING_OFFSET "homing_offset": signed(31, 11), complement(20, 4);
    MODE "operating_mode": plain(33, 1), formed(11, Form::Mode);
    TORQUE "torque_enable": plain(40, 1), plain(64, 1);
    GOAL_POSITION "goal_position": signed(42, 15), complement(116, 4);
    // For a joint its greatest speed, which an XL servo has as the velocity of its profile.
    GOAL_SPEED "goal_speed": signed(46, 15), plain(112, 4).of(VELOCITY);
    TORQUE_LIMIT "torque_limit": plain(48, 2), plain(100, 2).of(PWM);
    LOCK "lock": plain(55, 1), NONE;
    POSITION "present_position": signed(56, 15), complement(132, 4);
    SPEED "present_speed": signed(58, 15), complement(128, 4).of(VELOCITY);
    LOAD "present_load": signed(60, 10), complement(124, 2).of(PWM);
    VOLTAGE "present_voltage": plain(62, 1), plain(144, 2);
    TEMPERATURE "present_temperature": plain(63, 1), plain(146, 1);
    STATUS "status": plain(65, 1), formed(70, Form::Alarms);
    MOVING "moving": plain(66, 1), plain(122, 1);
    // Only one of the two XL servos has it.
    CURRENT "present_current": plain(69, 2), NONE;
}

impl Register {
    /// Where a family has it.
    pub(super) const fn at(self, family: Family) -> Place {
        match family {
            Family::Sts => self.sts,
            Family::Xl => self.xl,
        }
    }

    /// The bytes of a number; `None` where it does not fit.
    pub(crate) fn encode(self, family: Family, value: i64) -> Option<Vec<u8>> {
        let place = self.at(family);
        let (one, of) = place.unit;
        let raw = match (place.form, rounded(value * of, one)) {
            // Joints count their turns: the end of a turn may be in the range of a joint.
            (Form::Mode, 0) => 4,
            // 0 is as fast as it can.
            (_, 0) => value.signum(),
            (_, raw) => raw,
        };
        let bits = u32::from(place.width) * 8;
        let fits = match place.form {
            Form::Unsigned | Form::Mode | Form::Alarms => (0..1 << bits).contains(&raw),
            Form::Magnitude(bit) => raw.abs() < 1 << bit,
            Form::Complement => (-(1 << (bits - 1))..1 << (bits - 1)).contains(&raw),
        };
        let raw = match place.form {
            Form::Magnitude(bit) if raw < 0 => -raw | 1 << bit,
            _ => raw,
        };
        let bytes = raw.to_le_bytes();
        (fits && place.width > 0).then(|| bytes[..usize::from(place.width)].to_vec())
    }

    /// The number in a block of registers that begins at the address `first`; `None` where the block is too short.
    pub(crate) fn decode(self, family: Family, first: u8, block: &[u8]) -> Option<i64> {
        let place = self.at(family);
        let at = usize::from(place.address.checked_sub(first)?);
        let bytes = block.get(at..at + usize::from(place.width))?;
        if bytes.is_empty() {
            return None;
        }
        let word = bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | i64::from(*byte));
        let value = match place.form {
            Form::Unsigned => word,
            Form::Magnitude(bit) => {
                let magnitude = word & ((1 << bit) - 1);
                if word & (1 << bit) == 0 {
                    magnitude
                } else {
                    -magnitude
                }
            }
            Form::Complement => {
                let sign = 1 << (bytes.len() * 8 - 1);
                (word ^ sign) - sign
            }
            Form::Mode => match word {
                3..=5 => 0,
                1 => 1,
                0 | 16 => 2,
                other => other,
            },
            // Voltage, overheating and overload have the same bits.
            Form::Alarms => {
                let sensor = if word & 0x08 == 0 { 0 } else { 0x02 };
                word & 0x35 | sensor
            }
        };
        Some(rounded(value * place.unit.0, place.unit.1))
    }
}

fn rounded(value: i64, of: i64) -> i64 {
    let half = of / 2;
    (value + if value < 0 { -half } else { half }) / of
}

/// Registers side by side that are read in one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u8,
    pub(crate) length: u8,
}

impl Span {
    /// All of these registers, with what stands between them.
    pub(crate) fn over(family: Family, registers: &[Register]) -> Self {
        let places = || {
            let places = registers.iter().map(|register| register.at(family));
            places.filter(|place| place.width > 0)
        };
        let first = places().map(|place| place.address).min().unwrap_or_default();
        let end = places().map(|place| place.address + place.width).max();
        Self {
            first,
            length: end.unwrap_or_default().saturating_sub(first),
        }
    }

    /// This span with `more` registers beside it: before it, and behind it where there are too few before.
    pub(crate) fn wider(self, more: u8, family: Family) -> Option<Self> {
        let before = more.min(self.first);
        let wider = Self {
            first: self.first - before,
            length: self.length + more,
        };
        (wider.first + wider.length <= family.end()).then_some(wider)
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
        use Family::{Sts, Xl};
        for (family, register, value, bytes) in [
            (Sts, Register::TORQUE, 1, Some(&[1][..])),
            (Sts, Register::TORQUE, 256, None),
            (Sts, Register::TORQUE, -1, None),
            (Sts, Register::TORQUE_LIMIT, 1000, Some(&[0xE8, 0x03])),
            (Sts, Register::TORQUE_LIMIT, 70_000, None),
            (Sts, Register::HOMING_OFFSET, -709, Some(&[0xC5, 0x0A])),
            (Sts, Register::HOMING_OFFSET, 2048, None),
            (Sts, Register::GOAL_POSITION, -100, Some(&[0x64, 0x80])),
            (Sts, Register::GOAL_POSITION, 32_768, None),
            (Sts, Register::DRIVE_MODE, 0, None),
            (Xl, Register::GOAL_POSITION, -100, Some(&[0x9C, 0xFF, 0xFF, 0xFF])),
            (Xl, Register::GOAL_POSITION, 1 << 31, None),
            (
                Xl,
                Register::HOMING_OFFSET,
                -1947,
                Some(&[0x65, 0xF8, 0xFF, 0xFF]),
            ),
            // 100 of 0.229 turns a minute.
            (Xl, Register::GOAL_SPEED, 1563, Some(&[100, 0, 0, 0])),
            (Xl, Register::GOAL_SPEED, 0, Some(&[0, 0, 0, 0])),
            (Xl, Register::TORQUE_LIMIT, 1000, Some(&[0x75, 0x03])),
            (Xl, Register::MODE, 0, Some(&[4])),
            (Xl, Register::MODE, 1, Some(&[1])),
            (Xl, Register::LOCK, 1, None),
        ] {
            let encoded = register.encode(family, value);
            assert_eq!(encoded.as_deref(), bytes, "{family:?} {} {value}", register.name);
            if let Some(bytes) = bytes {
                assert_eq!(
                    register.decode(family, register.at(family).address, bytes),
                    Some(value),
                    "{family:?} {}",
                    register.name
                );
            }
        }
        assert_eq!(Register::SPEED.decode(Sts, 56, &[0, 0, 1]), None, "half of it");
        // Slower than a servo can be told is as slow as it can, and never as fast.
        assert_eq!(Register::GOAL_SPEED.encode(Xl, 1), Some(vec![1, 0, 0, 0]));
        for (register, byte, value) in [
            (Register::MODE, 3, 0),
            (Register::MODE, 5, 0),
            (Register::MODE, 16, 2),
            (Register::STATUS, 0x20, 0x20),
            (Register::STATUS, 0x08, 0x02),
            (Register::STATUS, 0x11, 0x11),
        ] {
            let address = register.at(Xl).address;
            assert_eq!(
                register.decode(Xl, address, &[byte]),
                Some(value),
                "{} {byte}",
                register.name
            );
        }
    }

    #[test]
    fn a_wider_span_has_the_same_registers_in_it() {
        let family = Family::Sts;
        let block: Vec<u8> = (0..family.end()).collect();
        for span in [
            Span::over(family, &[Register::MODEL]),
            Span::over(family, &[Register::MIN_POSITION, Register::HOMING_OFFSET]),
            Span::over(family, &[Register::CURRENT, Register::POSITION]),
        ] {
            for more in 0..32 {
                let Some(wider) = span.wider(more, family) else {
                    continue;
                };
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
