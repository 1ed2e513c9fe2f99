//! The ioctls of Video4Linux. Contains all unsafe code of this toolbox.
//!
//! The existing crates do not fit: `v4l` and `v4l2r` need libclang at build time; `linuxvideo` asks for write access,
//! panics on names that vendors' drivers do not terminate with a NUL, and has no DV timings. Each request number
//! contains the size of its structure; a test compares the numbers with <linux/videodev2.h>.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use super::probe::{Answer, Format, Incoming, Probe, Signal, Size, SizeRange};

/// The largest number of formats, sizes or rates that are asked for, because some drivers repeat the last one forever.
const MAX_ANSWERS: u32 = 128;

const CAN_CAPTURE: u32 = 0x0000_0001;
const CAN_CAPTURE_PLANES: u32 = 0x0000_1000;
const IS_CODEC: u32 = 0x0000_8000 | 0x0000_4000;
const HAS_DEVICE_CAPABILITIES: u32 = 0x8000_0000;
const CAPTURE: u32 = 1;
const CAPTURE_PLANES: u32 = 9;
const COMPRESSED: u32 = 1;
const DISCRETE: u32 = 1;
/// `V4L2_IN_CAP_DV_TIMINGS`.
const HAS_TIMINGS: u32 = 2;
/// `V4L2_DV_FL_REDUCED_FPS`: 59.94 although the pixel clock gives 60.
const REDUCED: u32 = 2;

const QUERYCAP: Opcode = opcode::read::<Capability>(b'V', 0);
const ENUM_FMT: Opcode = opcode::read_write::<FormatDescription>(b'V', 2);
const ENUMINPUT: Opcode = opcode::read_write::<Input>(b'V', 26);
const G_INPUT: Opcode = opcode::read::<u32>(b'V', 38);
const ENUM_FRAMESIZES: Opcode = opcode::read_write::<FrameSize>(b'V', 74);
const ENUM_FRAMEINTERVALS: Opcode = opcode::read_write::<FrameInterval>(b'V', 75);
const QUERY_DV_TIMINGS: Opcode = opcode::read::<Timings>(b'V', 99);

#[repr(C)]
#[derive(Clone, Copy)]
struct Capability {
    driver: [u8; 16],
    card: [u8; 32],
    bus: [u8; 32],
    version: u32,
    capabilities: u32,
    device_capabilities: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct FormatDescription {
    index: u32,
    kind: u32,
    flags: u32,
    description: [u8; 32],
    fourcc: [u8; 4],
    mbus_code: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Input {
    index: u32,
    name: [u8; 32],
    kind: u32,
    audioset: u32,
    tuner: u32,
    standards: u64,
    status: u32,
    capabilities: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct FrameSize {
    index: u32,
    fourcc: [u8; 4],
    kind: u32,
    /// Discrete: width, height. Otherwise: minimum, maximum and step of the width, then of the height.
    sizes: [u32; 6],
    reserved: [u32; 2],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct FrameInterval {
    index: u32,
    fourcc: [u8; 4],
    width: u32,
    height: u32,
    kind: u32,
    /// Discrete: numerator and denominator. Otherwise: those of the minimum, the maximum and the step.
    intervals: [u32; 6],
    reserved: [u32; 2],
}

/// Packed in the kernel, too; every field is read by value.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Timings {
    kind: u32,
    width: u32,
    height: u32,
    interlaced: u32,
    polarities: u32,
    pixelclock: u64,
    /// Front porch, sync and back porch: horizontal, vertical, and of the second field.
    blanking: [u32; 9],
    standards: u32,
    flags: u32,
    rest: [u8; 60],
}

/// Plain integers: every bit pattern is valid, and none is a pointer.
///
/// # Safety
/// The type has no padding, no references and no invalid values.
unsafe trait Plain: Copy {
    /// A value with all bytes zero.
    fn zero() -> Self {
        // SAFETY: by the contract of the trait every pattern of bits is valid.
        unsafe { std::mem::zeroed() }
    }
}
// SAFETY: integers, and arrays of them; the sizes are compared in the test below.
unsafe impl Plain for Capability {}
// SAFETY: as above.
unsafe impl Plain for FormatDescription {}
// SAFETY: as above.
unsafe impl Plain for Input {}
// SAFETY: as above.
unsafe impl Plain for FrameSize {}
// SAFETY: as above.
unsafe impl Plain for FrameInterval {}
// SAFETY: as above.
unsafe impl Plain for Timings {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}

/// Sends a request that only reads from the device; the kernel fills in the value.
fn ask<const REQUEST: Opcode, T: Plain>(device: &File, mut value: T) -> Result<T, Errno> {
    // SAFETY: REQUEST is made of the size of T, so the kernel writes no more than T holds, and T takes any bits.
    let question = unsafe { Updater::<REQUEST, T>::new(&mut value) };
    // SAFETY: all requests of this file are those of Video4Linux that take a pointer to T; a device of another kind
    // answers ENOTTY without looking at it.
    unsafe { ioctl(device, question) }?;
    Ok(value)
}

/// Queries the real kernel.
pub(crate) struct Kernel;

impl Probe for Kernel {
    fn ask(&self, path: &Path) -> io::Result<Answer> {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let device = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let capability = ask::<QUERYCAP, _>(&device, Capability::zero())?;
        let can = if capability.capabilities & HAS_DEVICE_CAPABILITIES == 0 {
            capability.capabilities
        } else {
            capability.device_capabilities
        };
        let captures = can & (CAN_CAPTURE | CAN_CAPTURE_PLANES) != 0 && can & IS_CODEC == 0;
        let kind = if can & CAN_CAPTURE_PLANES == 0 {
            CAPTURE
        } else {
            CAPTURE_PLANES
        };
        Ok(Answer {
            driver: text(&capability.driver),
            card: text(&capability.card),
            bus: text(&capability.bus),
            captures,
            formats: if captures {
                formats(&device, kind)
            } else {
                Vec::new()
            },
            signal: if captures { signal(&device) } else { None },
        })
    }
}

/// The text up to the NUL, or all of it if the driver omits the NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

fn formats(device: &File, kind: u32) -> Vec<Format> {
    (0..MAX_ANSWERS)
        .map_while(|index| {
            let question = FormatDescription {
                index,
                kind,
                ..FormatDescription::zero()
            };
            ask::<ENUM_FMT, _>(device, question).ok()
        })
        .map(|format| {
            let (sizes, size_range) = sizes(device, format.fourcc);
            Format {
                fourcc: text(&format.fourcc),
                description: text(&format.description),
                compressed: format.flags & COMPRESSED != 0,
                sizes,
                size_range,
            }
        })
        .collect()
}

fn sizes(device: &File, fourcc: [u8; 4]) -> (Vec<Size>, Option<SizeRange>) {
    let mut sizes = Vec::new();
    for index in 0..MAX_ANSWERS {
        let question = FrameSize {
            index,
            fourcc,
            ..FrameSize::zero()
        };
        let Ok(answer) = ask::<ENUM_FRAMESIZES, _>(device, question) else {
            break;
        };
        let [a, b, c, d, e, f] = answer.sizes;
        if answer.kind != DISCRETE {
            let range = SizeRange {
                min_width: a,
                min_height: d,
                max_width: b,
                max_height: e,
            };
            tracing::trace!(step_width = c, step_height = f, "sizes in steps");
            return (Vec::new(), Some(range));
        }
        sizes.push(Size {
            width: a,
            height: b,
            framerates: rates(device, fourcc, a, b),
        });
    }
    (sizes, None)
}

/// Frames per second, from the frame intervals.
fn rates(device: &File, fourcc: [u8; 4], width: u32, height: u32) -> Vec<String> {
    (0..MAX_ANSWERS)
        .map_while(|index| {
            let question = FrameInterval {
                index,
                fourcc,
                width,
                height,
                ..FrameInterval::zero()
            };
            let answer = ask::<ENUM_FRAMEINTERVALS, _>(device, question).ok()?;
            (answer.kind == DISCRETE).then(|| format!("{}/{}", answer.intervals[1], answer.intervals[0]))
        })
        .collect()
}

/// The incoming signal, if the selected input has timings.
fn signal(device: &File) -> Option<Incoming> {
    let index = ask::<G_INPUT, _>(device, 0_u32).ok()?;
    let question = Input {
        index,
        ..Input::zero()
    };
    let input = ask::<ENUMINPUT, _>(device, question).ok()?;
    if input.capabilities & HAS_TIMINGS == 0 {
        return None;
    }
    Some(match ask::<QUERY_DV_TIMINGS, _>(device, Timings::zero()) {
        Ok(timings) => read_timings(&timings).map_or(Incoming::Nothing, Incoming::Signal),
        Err(Errno::NOLCK | Errno::RANGE) => Incoming::Unstable,
        Err(_) => Incoming::Nothing,
    })
}

/// The rate is the pixel clock divided by the pixels of a frame, including blanking.
fn read_timings(timings: &Timings) -> Option<Signal> {
    let Timings {
        width,
        height,
        interlaced,
        pixelclock,
        blanking,
        flags,
        ..
    } = *timings;
    let sum = |part: &[u32]| part.iter().map(|one| u64::from(*one)).sum::<u64>();
    let line = u64::from(width) + sum(&blanking[..3]);
    let interlaced = interlaced != 0;
    let vertical = if interlaced {
        sum(&blanking[3..])
    } else {
        sum(&blanking[3..6])
    };
    let lines = u64::from(height) + vertical;
    if width == 0 || height == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "clocks are below 2^53 Hz")]
    let pictures = pixelclock as f64 / (line * lines) as f64;
    let fields = if interlaced { pictures * 2.0 } else { pictures };
    let rate = if flags & REDUCED != 0 {
        fields * 1000.0 / 1001.0
    } else {
        fields
    };
    Some(Signal {
        width,
        height,
        rate: (rate * 100.0).round() / 100.0,
        interlaced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a structure is part of its request number. The numbers are those of <linux/videodev2.h> on 64-bit
    /// machines; on all others only `VIDIOC_ENUMINPUT` differs, because of its 64-bit field.
    #[test]
    fn requests_are_those_of_the_kernel() {
        for (ours, kernels) in [
            (QUERYCAP, 0x8068_5600_u32),
            (ENUM_FMT, 0xc040_5602),
            (G_INPUT, 0x8004_5626),
            (ENUM_FRAMESIZES, 0xc02c_564a),
            (ENUM_FRAMEINTERVALS, 0xc034_564b),
            (QUERY_DV_TIMINGS, 0x8084_5663),
            (ENUMINPUT, 0xc050_561a),
        ] {
            assert_eq!(ours, kernels, "{kernels:x}");
        }
    }

    #[test]
    fn the_rate_of_a_signal_is_its_clock_divided_by_its_pixels() {
        let hd = Timings {
            width: 1920,
            height: 1080,
            pixelclock: 148_500_000,
            blanking: [88, 44, 148, 4, 5, 36, 0, 0, 0],
            ..Timings::zero()
        };
        let interlaced = Timings {
            interlaced: 1,
            pixelclock: 74_250_000,
            blanking: [88, 44, 148, 2, 5, 15, 2, 5, 16],
            ..hd
        };
        let reduced = Timings { flags: REDUCED, ..hd };
        for (timings, short, long, rate) in [
            (hd, "1080p60", "1920x1080@60", 60.0),
            (interlaced, "1080i60", "1920x1080i@60", 60.0),
            (reduced, "1080p60", "1920x1080@60", 59.94),
        ] {
            let signal = read_timings(&timings).unwrap();
            assert_eq!(
                (signal.short().as_str(), signal.long().as_str(), signal.rate),
                (short, long, rate)
            );
        }
        assert_eq!(read_timings(&Timings::zero()), None);
    }

    #[test]
    fn a_file_is_no_video_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Kernel.ask(file.path()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOTTY.raw_os_error()));
    }
}
