//! Encoders and their capabilities.

use std::collections::BTreeMap;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;
use serde_json::Map;

use super::element::{ElementInfo, rank_name};

/// Which encoders are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Those that make H.264.
    H264,
    /// Those that make H.265.
    H265,
    All,
}

/// What is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Media {
    // Moving pictures.
    Video,
    // Sound.
    Audio,
    // Single pictures.
    Image,
}

/// An encoder, and what it can do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Encoder {
    /// What it makes, such as `H.264`.
    pub(crate) codec: String,
    /// The media type of what it makes.
    pub(crate) media_type: String,
    /// Whether a chip does the work.
    pub(crate) hardware: bool,
    /// What says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hardware_evidence: Option<String>,
    /// The largest picture, `width x height`; null when its pads name no limit.
    pub(crate) max_resolution: Option<String>,
    /// The highest bitrate in bit/s; null when the property that sets it names no limit or no unit.
    pub(crate) max_bitrate: Option<u64>,
    /// The property that sets the bitrate, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bitrate_property: Option<String>,
    /// `bit/s` or `kbit/s`; null when its plugin does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bitrate_unit: Option<&'static str>,
    /// Profiles, where its pads name them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) profiles: Vec<String>,
    /// Formats of raw pictures or sound it takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) formats: Vec<String>,
    /// How readily it is chosen automatically.
    pub(crate) rank: String,
    /// The plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<String>,
    /// The properties of the encoder itself, by name; missing where the answer would be too long, and `get_encoder_info` with
    /// the name of the encoder has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) properties: BTreeMap<String, Setting>,
}

impl Encoder {
    /// Keeps what distinguishes it from others.
    pub(crate) fn summarize(&mut self) {
        self.properties.clear();
        self.profiles.clear();
        self.formats.clear();
        self.plugin = None;
        // The name of the class says no more than that it is hardware.
        self.hardware_evidence = None;
    }
}

/// A property that can be set.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Setting {
    /// `int`, `uint`, `bool`, `string`, `enum`, `flags` or another kind.
    #[serde(rename = "type")]
    pub(crate) kind: Value,
    /// The smallest value.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) min: Value,
    /// The largest value.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) max: Value,
    /// The values of an enumeration or of flags.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) values: Value,
    /// The value of a new element.
    pub(crate) default: Value,
    /// What it is for.
    pub(crate) description: Value,
}

/// The matching factories of the encoder class: hardware first, then by rank.
pub(super) fn factories(codec: Codec, media: Option<Media>) -> Vec<gst::ElementFactory> {
    let mut factories: Vec<gst::ElementFactory> =
        gst::ElementFactory::factories_with_type(gst::ElementFactoryType::ENCODER, gst::Rank::NONE)
            .into_iter()
            .filter(|factory| match media {
                Some(media) => is_media(factory, media),
                // The class also includes encrypters and packers.
                None => [Media::Video, Media::Audio, Media::Image]
                    .into_iter()
                    .any(|media| is_media(factory, media)),
            })
            .filter(|factory| !factory.klass().contains("Bin"))
            .filter(|factory| match codec {
                Codec::H264 => makes(factory, "video/x-h264"),
                Codec::H265 => makes(factory, "video/x-h265"),
                Codec::All => true,
            })
            .collect();
    factories.sort_by_cached_key(|factory| {
        let software = class_evidence(factory).is_none() && memory_evidence(factory).is_none();
        let rank: i32 = factory.rank().into();
        (software, -rank, factory.name().to_string())
    });
    factories
}

fn is_media(factory: &gst::ElementFactory, media: Media) -> bool {
    let class = factory.klass();
    let has = |word| class.split('/').any(|part| part == word);
    match media {
        Media::Video => has("Video"),
        Media::Audio => has("Audio"),
        Media::Image => has("Image"),
    }
}

fn makes(factory: &gst::ElementFactory, media_type: &str) -> bool {
    sources(factory).any(|caps| !caps.is_any() && caps.iter().any(|structure| structure.name() == media_type))
}

fn sources(factory: &gst::ElementFactory) -> impl Iterator<Item = gst::Caps> {
    pads(factory, gst::PadDirection::Src)
}

fn pads(factory: &gst::ElementFactory, direction: gst::PadDirection) -> impl Iterator<Item = gst::Caps> {
    factory
        .static_pad_templates()
        .into_iter()
        .filter(move |template| template.direction() == direction)
        .map(|template| template.caps())
}

fn class_evidence(factory: &gst::ElementFactory) -> Option<String> {
    let hardware = factory.klass().split('/').any(|part| part == "Hardware");
    hardware.then(|| format!("its class is {}", factory.klass()))
}

/// The caps in memory other than the CPU's, if the factory takes such caps: they indicate a hardware encoder.
fn memory_evidence(factory: &gst::ElementFactory) -> Option<String> {
    let caps = pads(factory, gst::PadDirection::Sink).find_map(|caps| {
        (!caps.is_any()).then_some(())?;
        caps.iter_with_features().find_map(|(_, features)| {
            features
                .iter()
                .find(|feature| feature.starts_with("memory:") && *feature != "memory:SystemMemory")
                .map(|feature| feature.to_string())
        })
    })?;
    Some(format!("it takes {caps}"))
}

/// Describes an encoder. `custom` are the plugins that came with the board.
pub(super) fn describe(factory: &gst::ElementFactory, info: &ElementInfo, custom: &[String]) -> Encoder {
    let plugin = info.plugin.as_ref().map(|plugin| plugin.name.clone());
    let evidence = class_evidence(factory)
        .or_else(|| memory_evidence(factory))
        .or_else(|| {
            let property = ["device", "device-path", "device-fd"]
                .into_iter()
                .find(|name| info.properties.contains_key(*name))?;
            Some(format!("it has the property {property}"))
        })
        .or_else(|| {
            // Not all vendors use the class for hardware; a vendor that ships its own video encoder has the chip for
            // it.
            let custom = plugin.as_ref().is_some_and(|plugin| custom.contains(plugin));
            (custom && is_media(factory, Media::Video)).then(|| "its plugin came with the board".to_owned())
        });
    let caps = sources(factory).find(|caps| !caps.is_any() && !caps.is_empty());
    let first = caps.as_ref().and_then(|caps| caps.structure(0));
    let (bitrate_property, bitrate_unit, max_bitrate) = bitrate(&info.properties);
    Encoder {
        codec: caps.as_ref().map_or_else(|| info.name.clone(), codec_name),
        media_type: first
            .map(|structure| structure.name().to_string())
            .unwrap_or_default(),
        hardware: evidence.is_some(),
        hardware_evidence: evidence,
        max_resolution: max_resolution(factory),
        max_bitrate,
        bitrate_property,
        bitrate_unit,
        profiles: field_values(sources(factory), "profile"),
        formats: field_values(pads(factory, gst::PadDirection::Sink), "format"),
        rank: rank_name(factory.rank()),
        plugin,
        properties: own_properties(info),
    }
}

/// The codec's name, such as `H.264`, from GStreamer where it has one.
fn codec_name(caps: &gst::Caps) -> String {
    let mut fixed = caps.clone();
    fixed.fixate();
    let text = gst_pbutils::pb_utils_get_codec_description(&fixed);
    let text = text.as_str();
    // GStreamer adds the profile that fixating happened to choose: `H.264 (Constrained Baseline Profile)`.
    text.split(" (").next().unwrap_or(text).to_owned()
}

fn max_resolution(factory: &gst::ElementFactory) -> Option<String> {
    let largest = |direction| -> Option<(i32, i32)> {
        pads(factory, direction)
            .filter(|caps| !caps.is_any())
            .flat_map(|caps| {
                caps.iter()
                    .map(|structure| (largest(structure, "width"), largest(structure, "height")))
                    .collect::<Vec<_>>()
            })
            .filter_map(|(width, height)| Some((width?, height?)))
            .max_by_key(|(width, height)| i64::from(*width) * i64::from(*height))
    };
    let limits = [largest(gst::PadDirection::Sink), largest(gst::PadDirection::Src)];
    limits
        .into_iter()
        .flatten()
        .filter(|(width, height)| *width < i32::MAX && *height < i32::MAX)
        .min_by_key(|(width, height)| i64::from(*width) * i64::from(*height))
        .map(|(width, height)| format!("{width}x{height}"))
}

/// The largest value of a field in caps.
fn largest(structure: &gst::StructureRef, field: &str) -> Option<i32> {
    let value = structure.value(field).ok()?;
    if let Ok(one) = value.get::<i32>() {
        return Some(one);
    }
    if let Ok(range) = value.get::<gst::IntRange<i32>>() {
        return Some(range.max());
    }
    let list = value.get::<gst::List>().ok()?;
    list.iter().filter_map(|value| value.get::<i32>().ok()).max()
}

/// The texts that a field has in caps, each once.
pub(crate) fn field_values(all: impl Iterator<Item = gst::Caps>, field: &str) -> Vec<String> {
    let mut values = Vec::new();
    for caps in all.filter(|caps| !caps.is_any()) {
        for value in caps.iter().filter_map(|structure| structure.value(field).ok()) {
            if let Ok(one) = value.get::<String>() {
                values.push(one);
            } else if let Ok(list) = value.get::<gst::List>() {
                values.extend(list.iter().filter_map(|value| value.get::<String>().ok()));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
}

/// The property that sets the bitrate, its unit according to the plugin, and its limit in bit/s.
fn bitrate(properties: &Map<String, Value>) -> (Option<String>, Option<&'static str>, Option<u64>) {
    let found = ["bitrate", "target-bitrate", "bps"]
        .into_iter()
        .find_map(|name| Some((name, properties.get(name)?)));
    let Some((name, property)) = found else {
        return (None, None, None);
    };
    let unit = bitrate_unit(property["description"].as_str().unwrap_or_default());
    // A maximum that is the largest number of its type is no limit.
    let unlimited = [
        u64::from(u32::MAX),
        i32::MAX.unsigned_abs().into(),
        u64::MAX,
        i64::MAX.unsigned_abs(),
    ];
    let max = property["max"].as_u64().filter(|max| !unlimited.contains(max));
    let factor = match unit {
        Some("kbit/s") => Some(1_000),
        Some(_) => Some(1),
        None => None,
    };
    let max = max.zip(factor).and_then(|(max, factor)| max.checked_mul(factor));
    (Some(name.to_owned()), unit, max)
}

/// The unit of a bitrate according to the text of its property.
pub(crate) fn bitrate_unit(blurb: &str) -> Option<&'static str> {
    let blurb = blurb.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| blurb.contains(word));
    if says(&["kbit", "kbps", "kb/s", "kilobit"]) {
        Some("kbit/s")
    } else if says(&["bit/s", "bits/s", "bps", "bits per second", "bit per second"]) {
        Some("bit/s")
    } else {
        None
    }
}

/// The properties other than those of every element and the deprecated ones.
fn own_properties(info: &ElementInfo) -> BTreeMap<String, Setting> {
    let common = ["GstObject", "GstVideoEncoder", "GstAudioEncoder", "GstElement"];
    let own = info.properties.iter().filter(|(_, property)| {
        let declared = property["declared_by"].as_str().unwrap_or_default();
        property["writable"] == json!(true)
            && property["deprecated"] != json!(true)
            && !common.contains(&declared)
    });
    own.map(|(name, property)| {
        let setting = Setting {
            kind: property["type"].clone(),
            min: property["min"].clone(),
            max: property["max"].clone(),
            values: property["values"].clone(),
            default: property["default"].clone(),
            description: property["description"].clone(),
        };
        (name.clone(), setting)
    })
    .collect()
}
