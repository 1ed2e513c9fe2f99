//! Pictures of the graph, `sensor_msgs/Image` and `CompressedImage`, as one JPEG. It is pure. Read [`Picture`].

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::thumbnail;
use image::{GrayImage, ImageFormat, ImageReader, Limits, RgbImage};
use serde_json::Value;

/// The longest side of what is read, in points.
const LARGEST_SIDE: u32 = 16_384;

/// What one picture may take while it is read, in bytes.
const MEMORY: u64 = 256 << 20;

/// The largest JPEG that is passed on as it came, in bytes.
const SMALL: usize = 1 << 20;

/// How good the JPEG is, of 100.
const QUALITY: u8 = 80;

/// The header of image_transport's plugin for compressed depth, before the PNG.
const DEPTH_HEADER: usize = 12;

/// The encodings of `sensor_msgs/Image` that are read.
const ENCODINGS: &str =
    "rgb8, bgr8, rgba8, bgra8, mono8, 8UC1, 8UC3, mono16, 16UC1, 32FC1, yuv422, uyvy, yuv422_yuy2, yuyv";

/// Why a message is no picture that can be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// The encoding is not known.
    #[error("a picture of the encoding {0}: expected one of {ENCODINGS}")]
    Encoding(String),
    /// It has another size than it says.
    #[error(
        "a picture of {width} x {height} points in {step} bytes a line, which are not the {bytes} bytes that came"
    )]
    Size {
        /// Points in a line.
        width: u64,
        /// Lines.
        height: u64,
        /// Bytes in a line.
        step: u64,
        /// What came.
        bytes: usize,
    },
    /// What is compressed cannot be read.
    #[error("a compressed picture ({format}) that cannot be read: {reason}")]
    Compressed {
        /// What it says of itself.
        format: String,
        /// What is wrong.
        reason: String,
    },
    /// The JPEG cannot be written.
    #[error("the picture cannot be written: {0}")]
    Write(String),
    /// It is no message of a picture.
    #[error("the message has no {0}: expected sensor_msgs/msg/Image or sensor_msgs/msg/CompressedImage")]
    Field(&'static str),
}

/// A picture as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The JPEG.
    pub jpeg: Vec<u8>,
    /// Its width in points.
    pub width: u32,
    /// Its height in points.
    pub height: u32,
    /// Width and height of what came, in points.
    pub original: (u32, u32),
    /// What was black and what was white, for depths and other pictures that are not of light: in millimetres as a rule for
    /// whole numbers, in metres for others.
    pub range: Option<(f64, f64)>,
}

enum Raster {
    Colour(RgbImage),
    Grey(GrayImage, Option<(f64, f64)>),
}

impl Picture {
    /// The picture of a message, at most so many points in its longer side.
    ///
    /// # Errors
    /// The message is none of a picture, its encoding is not known, or its bytes are not what it says.
    pub fn of(message: &Value, most: u32) -> Result<Self, PictureError> {
        let data = message["data"].as_str().ok_or(PictureError::Field("data"))?;
        let data = STANDARD.decode(data).map_err(|_| PictureError::Field("data"))?;
        if let Some(format) = message["format"].as_str() {
            return compressed(format, data, most);
        }
        let read = raw(message, &data)?;
        shown(&read, most)
    }
}

impl Picture {
    /// The picture of a file, a JPEG or a PNG, at most so many points in its longer side.
    ///
    /// # Errors
    /// It is none.
    pub fn of_file(bytes: Vec<u8>, most: u32) -> Result<Self, PictureError> {
        compressed("a file", bytes, most)
    }
}

fn compressed(format: &str, data: Vec<u8>, most: u32) -> Result<Picture, PictureError> {
    let wrong = |reason: String| PictureError::Compressed {
        format: format.chars().take(80).collect(),
        reason,
    };
    let is_png = |bytes: &[u8]| bytes.starts_with(b"\x89PNG");
    let bytes = match data.get(DEPTH_HEADER..) {
        Some(rest) if is_png(rest) => rest,
        _ => &data[..],
    };
    let reader = || {
        let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
        reader.map_err(|error| wrong(error.to_string()))
    };
    let (width, height) = reader()?
        .into_dimensions()
        .map_err(|error| wrong(error.to_string()))?;
    let is_jpeg = reader()?.format() == Some(ImageFormat::Jpeg);
    if is_jpeg && width.max(height) <= most && bytes.len() <= SMALL {
        return Ok(Picture {
            jpeg: bytes.to_vec(),
            width,
            height,
            original: (width, height),
            range: None,
        });
    }
    let mut reader = reader()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST_SIDE);
    limits.max_image_height = Some(LARGEST_SIDE);
    limits.max_alloc = Some(MEMORY);
    reader.limits(limits);
    let decoded = reader.decode().map_err(|error| wrong(error.to_string()))?;
    let read = match decoded {
        image::DynamicImage::ImageLuma16(deep) => {
            let depths: Vec<f64> = deep.iter().map(|depth| f64::from(*depth)).collect();
            grey(width, height, &depths)
                .ok_or_else(|| wrong("its size is not that of its points".to_owned()))?
        }
        other => Raster::Colour(other.to_rgb8()),
    };
    shown(&read, most)
}

fn raw(message: &Value, data: &[u8]) -> Result<Raster, PictureError> {
    let number = |field: &'static str| message[field].as_u64().ok_or(PictureError::Field(field));
    let (width, height, step) = (number("width")?, number("height")?, number("step")?);
    let encoding = message["encoding"]
        .as_str()
        .ok_or(PictureError::Field("encoding"))?;
    let is_big = message["is_bigendian"].as_u64() == Some(1);
    let each: u64 = match encoding {
        "mono8" | "8UC1" => 1,
        "mono16" | "16UC1" | "yuv422" | "uyvy" | "yuv422_yuy2" | "yuyv" => 2,
        "rgb8" | "bgr8" | "8UC3" => 3,
        "rgba8" | "bgra8" | "32FC1" => 4,
        other => return Err(PictureError::Encoding(other.chars().take(40).collect())),
    };
    let wrong = || PictureError::Size {
        width,
        height,
        step,
        bytes: data.len(),
    };
    let fits = width > 0
        && height > 0
        && width.max(height) <= u64::from(LARGEST_SIDE)
        && step >= width * each
        && usize::try_from(step.saturating_mul(height)).is_ok_and(|bytes| bytes <= data.len());
    let (Ok(columns), Ok(rows), true) = (u32::try_from(width), u32::try_from(height), fits) else {
        return Err(wrong());
    };
    // All of these fit: `step * height` does.
    let used = usize::try_from(width * each).map_err(|_| wrong())?;
    let step = usize::try_from(step).map_err(|_| wrong())?;
    let lines = data
        .chunks_exact(step)
        .take(usize::try_from(height).map_err(|_| wrong())?);
    let points = lines.flat_map(|line| &line[..used]).copied();
    let colour = |bytes: Vec<u8>| RgbImage::from_raw(columns, rows, bytes).map(Raster::Colour);
    let ordered = |order: [usize; 3], each: usize| {
        let bytes: Vec<u8> = points.clone().collect();
        colour(
            bytes
                .chunks_exact(each)
                .flat_map(|point| order.map(|at| point[at]))
                .collect(),
        )
    };
    let read = match encoding {
        "rgb8" => colour(points.collect()),
        "rgba8" => ordered([0, 1, 2], 4),
        "bgr8" | "8UC3" => ordered([2, 1, 0], 3),
        "bgra8" => ordered([2, 1, 0], 4),
        "mono8" | "8UC1" => {
            GrayImage::from_raw(columns, rows, points.collect()).map(|grey| Raster::Grey(grey, None))
        }
        "yuv422" | "uyvy" => colour(of_pairs(&points.collect::<Vec<u8>>(), [1, 3, 0, 2])),
        "yuv422_yuy2" | "yuyv" => colour(of_pairs(&points.collect::<Vec<u8>>(), [0, 2, 1, 3])),
        "32FC1" => {
            let bytes: Vec<u8> = points.collect();
            let (floats, _) = bytes.as_chunks::<4>();
            let of = if is_big {
                f32::from_be_bytes
            } else {
                f32::from_le_bytes
            };
            grey(
                columns,
                rows,
                &floats
                    .iter()
                    .map(|bytes| f64::from(of(*bytes)))
                    .collect::<Vec<f64>>(),
            )
        }
        _ => {
            let bytes: Vec<u8> = points.collect();
            let (words, _) = bytes.as_chunks::<2>();
            let of = if is_big {
                u16::from_be_bytes
            } else {
                u16::from_le_bytes
            };
            grey(
                columns,
                rows,
                &words
                    .iter()
                    .map(|bytes| f64::from(of(*bytes)))
                    .collect::<Vec<f64>>(),
            )
        }
    };
    read.ok_or_else(wrong)
}

/// RGB of pairs of points that share their colour; `at` says where both brightnesses, the blue and the red difference are.
fn of_pairs(bytes: &[u8], at: [usize; 4]) -> Vec<u8> {
    let mut colours = Vec::with_capacity(bytes.len() / 2 * 3);
    for pair in bytes.chunks_exact(4) {
        let [blue, red] = [pair[at[2]], pair[at[3]]].map(|difference| f32::from(difference) - 128.0);
        for light in [pair[at[0]], pair[at[1]]].map(f32::from) {
            let point = [
                light + 1.402 * red,
                light - 0.344 * blue - 0.714 * red,
                light + 1.772 * blue,
            ];
            colours.extend(point.map(byte));
        }
    }
    colours
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped to a byte"
)]
fn byte(value: f32) -> u8 {
    value.clamp(0.0, 255.0) as u8
}

/// A picture of numbers: the least is black, the greatest white; what is no number, and zero as depths have it, is black.
fn grey(width: u32, height: u32, values: &[f64]) -> Option<Raster> {
    let known = || {
        values
            .iter()
            .copied()
            .filter(|value| value.is_finite() && *value != 0.0)
    };
    let least = known().reduce(f64::min).unwrap_or_default();
    let most = known().reduce(f64::max).unwrap_or_default();
    let span = (most - least).max(f64::MIN_POSITIVE);
    #[allow(clippy::cast_possible_truncation, reason = "a share of 255")]
    let shade = |value: &f64| match value.is_finite() && *value != 0.0 {
        true => byte(((value - least) / span * 255.0) as f32),
        false => 0,
    };
    let grey = GrayImage::from_raw(width, height, values.iter().map(shade).collect())?;
    Some(Raster::Grey(grey, Some((least, most))))
}

fn shown(read: &Raster, most: u32) -> Result<Picture, PictureError> {
    let original = match read {
        Raster::Colour(colour) => colour.dimensions(),
        Raster::Grey(grey, _) => grey.dimensions(),
    };
    let (width, height) = within(original, most);
    let mut jpeg = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut jpeg, QUALITY);
    let (written, range) = match read {
        Raster::Colour(colour) if original == (width, height) => (encoder.encode_image(colour), None),
        Raster::Colour(colour) => (encoder.encode_image(&thumbnail(colour, width, height)), None),
        Raster::Grey(grey, range) if original == (width, height) => (encoder.encode_image(grey), *range),
        Raster::Grey(grey, range) => (encoder.encode_image(&thumbnail(grey, width, height)), *range),
    };
    written.map_err(|error| PictureError::Write(error.to_string()))?;
    Ok(Picture {
        jpeg,
        width,
        height,
        original,
        range,
    })
}

/// The size with the same shape, at most so many points in its longer side.
fn within((width, height): (u32, u32), most: u32) -> (u32, u32) {
    let longer = width.max(height);
    if longer <= most {
        return (width, height);
    }
    let scale = |side: u32| u64::from(side) * u64::from(most) / u64::from(longer);
    let scale = |side| u32::try_from(scale(side)).unwrap_or(most).max(1);
    (scale(width), scale(height))
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
