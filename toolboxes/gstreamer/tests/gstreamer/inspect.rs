//! `get_gst_element_info` agrees with `gst-inspect-1.0`: every property with its type, range, default, flags and
//! values, every pad template with its caps, every pad.

use std::collections::BTreeMap;
use std::process::Command;
use std::str::FromStr;

use ovos_toolbox_sdk::prelude::*;

const ELEMENTS: &[&str] = &[
    "alsasrc",
    "audioconvert",
    "audiomixer",
    "audiotestsrc",
    "avdec_h264",
    "avenc_aac",
    "compositor",
    "decodebin",
    "filesink",
    "filesrc",
    "flvmux",
    "h264parse",
    "hlssink2",
    "identity",
    "jpegenc",
    "mp4mux",
    "mpegtsmux",
    "queue",
    "rtmpsink",
    "rtph264pay",
    "rtpjitterbuffer",
    "rtspsrc",
    "souphttpsrc",
    "splitmuxsink",
    "srtsink",
    "tee",
    "udpsrc",
    "v4l2src",
    "videotestsrc",
    "volume",
    "vp8enc",
    "webrtcbin",
    "x264enc",
    "x265enc",
];

#[test]
fn elements_are_what_gst_inspect_prints() {
    // For the caps that are compared.
    gst::init().unwrap();
    let state = tempfile::tempdir().unwrap();
    let toolbox = crate::rig::harness(json!({"state_dir": state.path()})).unwrap();
    let mut wrong = Vec::new();
    for element in ELEMENTS {
        let info = toolbox
            .call("get_gst_element_info", json!({"element": element}))
            .unwrap();
        let printed = printed(element);
        compare(element, &info, &printed, &mut wrong);
    }
    assert!(ELEMENTS.len() >= 30);
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The parsed output of gst-inspect-1.0.
#[derive(Debug, Default)]
struct Printed {
    details: BTreeMap<String, String>,
    /// `SRC 'src'` -> availability and caps.
    templates: BTreeMap<String, (String, gst::Caps)>,
    /// `SRC 'src'` -> its template.
    pads: BTreeMap<String, String>,
    properties: BTreeMap<String, Property>,
}

#[derive(Debug, Default)]
struct Property {
    blurb: String,
    flags: String,
    /// The line with type, range and default, and the following lines without enum values.
    lines: Vec<String>,
    /// number -> nick, meaning.
    values: Vec<(i64, String, String)>,
}

fn printed(element: &str) -> Printed {
    let output = Command::new("gst-inspect-1.0")
        .arg(element)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    assert!(output.status.success(), "gst-inspect-1.0 {element}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut printed = Printed::default();
    let mut section = "";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        if !line.starts_with(' ') {
            section = line.trim_end();
            continue;
        }
        match section {
            "Factory Details:" if line.starts_with("  ") && line.len() > 27 => {
                let (key, value) = line.split_at(27);
                printed
                    .details
                    .insert(key.trim().to_owned(), value.trim().to_owned());
            }
            "Pad Templates:" if line.contains(" template: ") => {
                let (direction, name) = line.trim().split_once(" template: ").unwrap();
                let availability = lines
                    .next()
                    .unwrap()
                    .trim()
                    .strip_prefix("Availability: ")
                    .unwrap()
                    .to_owned();
                assert_eq!(lines.next().unwrap().trim(), "Capabilities:");
                let mut block = Vec::new();
                while lines.peek().is_some_and(|line| line.starts_with("      ")) {
                    block.push(lines.next().unwrap());
                }
                printed
                    .templates
                    .insert(format!("{direction} {name}"), (availability, caps(&block)));
            }
            "Pads:" if line.trim() != "none" && !line.trim().is_empty() => {
                let (direction, name) = line.trim().split_once(": ").unwrap();
                let template = lines
                    .next()
                    .unwrap()
                    .trim()
                    .strip_prefix("Pad Template: ")
                    .unwrap();
                printed
                    .pads
                    .insert(format!("{direction} {name}"), template.to_owned());
            }
            "Element Properties:" if !line.starts_with("   ") => {
                let (name, blurb) = line.split_once(':').unwrap();
                let mut property = Property {
                    blurb: blurb.strip_prefix(' ').unwrap_or(blurb).to_owned(),
                    ..Property::default()
                };
                // A description may have several lines.
                while !lines.peek().unwrap().trim_start().starts_with("flags: ") {
                    property.blurb = format!("{}\n{}", property.blurb, lines.next().unwrap());
                }
                property.flags = lines
                    .next()
                    .unwrap()
                    .trim()
                    .strip_prefix("flags: ")
                    .unwrap()
                    .to_owned();
                while lines.peek().is_some_and(|line| line.starts_with("   ")) {
                    let line = lines.next().unwrap().trim();
                    match value(line) {
                        Some(value) => property.values.push(value),
                        None => property.lines.push(line.to_owned()),
                    }
                }
                printed.properties.insert(name.trim().to_owned(), property);
            }
            _ => {}
        }
    }
    printed
}

/// `(0x00000001): capture          - Device supports video capture`.
fn value(line: &str) -> Option<(i64, String, String)> {
    let (number, rest) = line.strip_prefix('(')?.split_once("): ")?;
    let number = match number.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    let (nick, name) = rest.split_once(" - ")?;
    Some((number, nick.trim().to_owned(), name.to_owned()))
}

/// Each field is printed on its own line.
fn caps(block: &[&str]) -> gst::Caps {
    let mut texts: Vec<String> = Vec::new();
    for line in block {
        match line.split_once(": ") {
            Some((field, value)) if line.starts_with("       ") => {
                let last = texts.last_mut().unwrap();
                // Printed strings have no quotes.
                *last = format!("{last}, {}={}", field.trim(), quoted(value.trim()));
            }
            _ => texts.push(line.trim().to_owned()),
        }
    }
    gst::Caps::from_str(&texts.join("; ")).unwrap_or_else(|_| panic!("caps: {texts:?}"))
}

fn quoted(value: &str) -> String {
    if value.starts_with(['{', '[', '<', '(', '"'])
        || !value.contains([' ', ';', ',', '/', '='])
        || value.contains('/')
    {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}

fn compare(element: &str, info: &Value, printed: &Printed, wrong: &mut Vec<String>) {
    let mut check = |what: String, ours: String, theirs: String| {
        if ours != theirs {
            wrong.push(format!(
                "{element}: {what}: {ours} but gst-inspect-1.0 says {theirs}"
            ));
        }
    };
    for (key, theirs) in [
        ("name", "Long-name"),
        ("class", "Klass"),
        ("description", "Description"),
        ("author", "Author"),
    ] {
        check(key.to_owned(), text(&info[key]), printed.details[theirs].clone());
    }
    let rank = format!("{} ({})", text(&info["rank_name"]), info["rank"]);
    check("rank".to_owned(), rank, printed.details["Rank"].clone());

    let ours: BTreeMap<String, (String, gst::Caps)> = info["pad_templates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|template| {
            let availability = match template["presence"].as_str().unwrap() {
                "always" => "Always",
                "sometimes" => "Sometimes",
                _ => "On request",
            };
            let texts: Vec<&str> = template["caps"]
                .as_array()
                .unwrap()
                .iter()
                .map(|caps| caps.as_str().unwrap())
                .collect();
            let caps = gst::Caps::from_str(&texts.join("; ")).unwrap();
            (key(template), (availability.to_owned(), caps))
        })
        .collect();
    let names = |map: &BTreeMap<String, (String, gst::Caps)>| format!("{:?}", map.keys().collect::<Vec<_>>());
    check(
        "pad templates".to_owned(),
        names(&ours),
        names(&printed.templates),
    );
    for (name, (availability, caps)) in &printed.templates {
        let Some((our_availability, our_caps)) = ours.get(name) else {
            continue;
        };
        check(
            format!("{name} availability"),
            our_availability.clone(),
            availability.clone(),
        );
        if !our_caps.is_strictly_equal(caps) {
            check(format!("{name} caps"), our_caps.to_string(), caps.to_string());
        }
    }
    let ours: BTreeMap<String, String> = info["pads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pad| (key(pad), format!("'{}'", text(&pad["template"]))))
        .collect();
    check(
        "pads".to_owned(),
        format!("{ours:?}"),
        format!("{:?}", printed.pads),
    );

    let ours = info["properties"].as_object().unwrap();
    let our_names: Vec<&String> = ours.keys().collect();
    let their_names: Vec<&String> = printed.properties.keys().collect();
    check(
        "properties".to_owned(),
        format!("{our_names:?}"),
        format!("{their_names:?}"),
    );
    for (name, theirs) in &printed.properties {
        let Some(ours) = ours.get(name) else { continue };
        check(
            format!("{name}: description"),
            text(&ours["description"]),
            theirs.blurb.clone(),
        );
        check(format!("{name}: flags"), flags(ours), theirs.flags.clone());
        if let Err((ours, theirs)) = same_type(ours, theirs) {
            check(format!("{name}: type"), ours, theirs);
        }
        let values: Vec<(i64, String, String)> = ours["value_details"]
            .as_array()
            .map(|values| {
                let value = |value: &Value| {
                    (
                        value["value"].as_i64().unwrap(),
                        text(&value["nick"]),
                        text(&value["name"]),
                    )
                };
                values.iter().map(value).collect()
            })
            .unwrap_or_default();
        check(
            format!("{name}: values"),
            format!("{values:?}"),
            format!("{:?}", theirs.values),
        );
        let nicks: Vec<&String> = theirs.values.iter().map(|(_, nick, _)| nick).collect();
        let our_nicks = ours["values"].as_array().cloned().unwrap_or_default();
        check(
            format!("{name}: nicks"),
            format!("{our_nicks:?}"),
            format!("{:?}", json!(nicks).as_array().unwrap()),
        );
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn key(pad: &Value) -> String {
    format!(
        "{} '{}'",
        text(&pad["direction"]).to_uppercase(),
        text(&pad["name"])
    )
}

fn flags(property: &Value) -> String {
    let mut flags = Vec::new();
    for (key, name) in [
        ("readable", "readable"),
        ("writable", "writable"),
        ("deprecated", "deprecated"),
        ("controllable", "controllable"),
        ("conditionally_available", "conditionally available"),
    ] {
        if property[key] == json!(true) {
            flags.push(name);
        }
    }
    flags.extend(match property["changeable_until"].as_str() {
        Some("playing") => Some("changeable in NULL, READY, PAUSED or PLAYING state"),
        Some("paused") => Some("changeable only in NULL, READY or PAUSED state"),
        Some("ready") => Some("changeable only in NULL or READY state"),
        _ => None,
    });
    flags.join(", ")
}

/// The line of type, range and default; both versions if they differ.
fn same_type(ours: &Value, theirs: &Property) -> Result<(), (String, String)> {
    let line = theirs.lines.first().cloned().unwrap_or_default();
    let default = &ours["default"];
    let quoted = default
        .as_str()
        .map_or("null".to_owned(), |text| format!("\"{text}\""));
    let range = |name: &str| {
        format!(
            "{name}. Range: {} - {} Default: {default}",
            ours["min"], ours["max"]
        )
    };
    let fraction = || {
        format!(
            "Fraction. Range: {} - {} Default: {}",
            text(&ours["min"]),
            text(&ours["max"]),
            text(default)
        )
    };
    let gtype = text(&ours["gtype"]);
    let number = |nick: &str| {
        let nick = nick.to_owned();
        theirs
            .values
            .iter()
            .find(|(_, known, _)| *known == nick)
            .map_or(0, |(number, ..)| *number)
    };
    let expected = match text(&ours["type"]).as_str() {
        "int" => range("Integer"),
        "uint" => range("Unsigned Integer"),
        "int64" => range("Integer64"),
        "uint64" => range("Unsigned Integer64"),
        "long" => range("Long"),
        "ulong" => range("Unsigned Long"),
        kind @ ("float" | "double") => return same_floats(kind, ours, &line),
        "bool" => format!("Boolean. Default: {default}"),
        "string" => format!("String. Default: {quoted}"),
        "fraction" => fraction(),
        "enum" => format!("Enum \"{gtype}\" Default: {}, {quoted}", number(&text(default))),
        "flags" => {
            let bits = text(default)
                .split('+')
                .map(&number)
                .fold(0, |bits, one| bits | one);
            let nicks = if text(default).is_empty() {
                "(none)".to_owned()
            } else {
                text(default)
            };
            format!("Flags \"{gtype}\" Default: 0x{bits:08x}, \"{nicks}\"")
        }
        "object" => format!("Object of type \"{gtype}\""),
        // The contents are printed below it, in another form.
        "caps" | "structure" | "boxed" => {
            let holds = theirs
                .lines
                .iter()
                .any(|line| line.contains(&format!("Boxed pointer of type \"{gtype}\"")));
            let printed = gtype == "GstCaps" && !holds;
            if holds || printed {
                return Ok(());
            }
            format!("Boxed pointer of type \"{gtype}\"")
        }
        "array" => {
            let inner = text(&ours["element_type"]);
            let all = theirs.lines.join("|");
            let name = if gtype == "GValueArray" {
                "Array"
            } else {
                "GstValueArray"
            };
            let expected = format!("{name} of GValues of type \"{inner}\"");
            return if all.contains(&expected) {
                Ok(())
            } else {
                Err((expected, all))
            };
        }
        "pointer" => "Pointer.".to_owned(),
        other => format!("{other} {gtype}"),
    };
    // The default is a new random name each time.
    let is_random = |text: &str| text.starts_with("String. Default: \"/tmp/qtmux");
    let line = if ours["readable"] == json!(true) {
        line
    } else {
        line.trim_end_matches("Write only").to_owned()
    };
    let (expected, line) = (expected.trim_end().to_owned(), line.trim_end().to_owned());
    if expected == line || (is_random(&expected) && is_random(&line)) {
        Ok(())
    } else {
        Err((expected, line))
    }
}

/// Floats are printed with seven digits.
fn same_floats(kind: &str, ours: &Value, line: &str) -> Result<(), (String, String)> {
    let name = if kind == "float" { "Float" } else { "Double" };
    let expected = format!(
        "{name}. Range: {} - {} Default: {}",
        ours["min"], ours["max"], ours["default"]
    );
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let (a, b) = (numbers(&expected), numbers(line));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs().max(1e-30) || a == b;
    let same = a.len() == 3 && a.len() == b.len() && a.iter().zip(&b).all(near) && line.starts_with(name);
    if same {
        Ok(())
    } else {
        Err((expected, line.to_owned()))
    }
}
