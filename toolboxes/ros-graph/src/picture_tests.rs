use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde_json::{Value, json};

use super::{Picture, PictureError};

fn raw(encoding: &str, width: usize, step: usize, line: &[u8]) -> Value {
    let height = 2;
    let mut padded = line.to_vec();
    padded.resize(step, 0);
    let data = STANDARD.encode(padded.repeat(height));
    json!({"width": width, "height": height, "encoding": encoding, "is_bigendian": 0, "step": step, "data": data})
}

fn first_point(picture: &Picture) -> [u8; 3] {
    let read = image::load_from_memory_with_format(&picture.jpeg, ImageFormat::Jpeg).unwrap();
    read.to_rgb8().get_pixel(0, 0).0
}

fn is_near(found: [u8; 3], expected: [u8; 3]) -> bool {
    found
        .iter()
        .zip(expected)
        .all(|(found, expected)| found.abs_diff(expected) <= 12)
}

#[test]
fn each_encoding_has_its_colours() {
    let red = [255, 0, 0];
    for (encoding, point, expected) in [
        ("rgb8", &[255, 0, 0][..], red),
        ("bgr8", &[0, 0, 255], red),
        ("8UC3", &[0, 0, 255], red),
        ("rgba8", &[255, 0, 0, 255], red),
        ("bgra8", &[0, 0, 255, 255], red),
        ("mono8", &[200], [200; 3]),
        ("yuv422", &[85, 76, 255, 76], red),
        ("uyvy", &[85, 76, 255, 76], red),
        ("yuv422_yuy2", &[76, 85, 76, 255], red),
        ("yuyv", &[76, 85, 76, 255], red),
        // All are the same, which is black.
        ("16UC1", &[232, 3], [0; 3]),
        ("32FC1", &[0, 0, 128, 63], [0; 3]),
    ] {
        let each = if encoding.contains("yuv") || encoding.contains("yv") {
            2
        } else {
            point.len()
        };
        let line = point.repeat(16 * each / point.len());
        // A line may be longer than its points.
        let picture = Picture::of(&raw(encoding, 16, line.len() + 5, &line), 1024).unwrap();
        assert_eq!((picture.width, picture.height), (16, 2), "{encoding}");
        assert!(
            is_near(first_point(&picture), expected),
            "{encoding}: {:?}",
            first_point(&picture)
        );
    }
}

#[test]
fn depths_say_what_was_black_and_white() {
    let line: Vec<u8> = [0_u16, 1000, 2000, 3000]
        .iter()
        .flat_map(|depth| depth.to_le_bytes())
        .collect();
    let picture = Picture::of(&raw("16UC1", 4, 8, &line), 1024).unwrap();
    assert_eq!(picture.range, Some((1000.0, 3000.0)));
}

#[test]
fn what_is_large_is_made_small_and_a_small_jpeg_is_passed_on() {
    let large = raw("rgb8", 3000, 9000, &[10, 20, 30].repeat(3000));
    let picture = Picture::of(&large, 1024).unwrap();
    assert_eq!(
        (picture.width, picture.height, picture.original),
        (1024, 1, (3000, 2))
    );
    for (format, kind) in [
        ("jpeg", ImageFormat::Jpeg),
        ("rgb8; png compressed", ImageFormat::Png),
    ] {
        let made = image::RgbImage::from_pixel(640, 480, image::Rgb([9, 99, 199]));
        let mut bytes = std::io::Cursor::new(Vec::new());
        made.write_to(&mut bytes, kind).unwrap();
        let bytes = bytes.into_inner();
        let message = json!({"format": format, "data": STANDARD.encode(&bytes)});
        let picture = Picture::of(&message, 1024).unwrap();
        assert_eq!(
            picture.jpeg == bytes,
            format == "jpeg",
            "a small jpeg is the one that came"
        );
        assert!(is_near(first_point(&picture), [9, 99, 199]), "{format}");
        let picture = Picture::of(&message, 320).unwrap();
        assert_eq!(
            (picture.width, picture.height, picture.original),
            (320, 240, (640, 480)),
            "{format}"
        );
    }
    // What a camera hangs on its JPEG does not make it large.
    let mut bytes = std::io::Cursor::new(Vec::new());
    let made = image::RgbImage::from_pixel(64, 48, image::Rgb([9, 99, 199]));
    made.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    let bytes = [bytes.into_inner(), vec![0; 1 << 20]].concat();
    let picture = Picture::of_file(bytes, 1024).unwrap();
    assert_eq!((picture.width, picture.height), (64, 48));
    assert!(picture.jpeg.len() < 10_000, "{}", picture.jpeg.len());
    assert!(is_near(first_point(&picture), [9, 99, 199]));
    // Compressed depth has a header before its png.
    let deep = image::ImageBuffer::<image::Luma<u16>, _>::from_pixel(8, 8, image::Luma([700]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    deep.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let data = [vec![0; 12], bytes.into_inner()].concat();
    let message = json!({"format": "16UC1; compressedDepth png", "data": STANDARD.encode(data)});
    assert_eq!(Picture::of(&message, 1024).unwrap().range, Some((700.0, 700.0)));
}

#[test]
fn what_is_no_picture_is_said() {
    let sized = |width: u64, height: u64, step: u64, bytes: usize| json!({"width": width, "height": height, "encoding": "rgb8", "step": step, "data": STANDARD.encode(vec![0; bytes])});
    for (message, expected) in [
        (raw("bayer_rggb8", 2, 2, &[1, 2]), "the encoding bayer_rggb8"),
        (sized(2, 2, 6, 11), "not the 11 bytes"),
        (sized(2, 2, 5, 100), "not the 100 bytes"),
        (sized(0, 2, 6, 100), "not the 100 bytes"),
        (sized(u64::MAX, u64::MAX, u64::MAX, 100), "not the 100 bytes"),
        (sized(60_000, 1, 180_000, 180_000), "not the 180000 bytes"),
        (json!({"data": "AAAA"}), "no width"),
        (json!({"data": [1, 2]}), "no data"),
        (json!({"data": "*"}), "no data"),
        (
            json!({"format": "h264", "data": STANDARD.encode([0; 64])}),
            "(h264) that cannot be read",
        ),
        (
            json!({"format": "jpeg", "data": STANDARD.encode([0xFF, 0xD8, 0xFF, 0xE0, 0])}),
            "(jpeg) that cannot be read",
        ),
        (
            json!({"format": "jpeg", "data": ""}),
            "(jpeg) that cannot be read",
        ),
    ] {
        let error: PictureError = Picture::of(&message, 1024).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
