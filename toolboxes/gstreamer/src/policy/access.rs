//! What the properties and elements of GStreamer give access to: a closed list.
//!
//! The list is data (`access.txt`). What is not on it is not understood. Pure. Read [`Kind`].

use std::collections::HashMap;
use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

/// Access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Whether the file is read or written is unknown: both must be allowed.
    Both,
    /// Whether the file is read or written is unknown until there is an element: one of them must be allowed, and the
    /// element is checked again.
    Either,
}

/// What a property's value gives access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing outside the pipeline.
    Nothing,
    /// A path; without an access the element says which.
    File(Option<Access>),
    /// An address or a path.
    Uri(Option<Access>),
    Host,
    /// `host:port,host:port`.
    Peers,
    Device,
    /// A number that selects a device, such as the card of a capture driver.
    DeviceNumber,
    /// An open file descriptor of this process.
    Descriptor,
    /// An element, or the description of one.
    Description,
    /// The name of an element to be made.
    Factory,
    /// `key=value` pairs for another component: a structure, an encoding profile.
    Pairs,
    /// May name files in the syntax of a library.
    Files,
    /// Whether to follow redirects.
    Redirect,
    /// Not on the list.
    Unlisted,
}

struct List {
    properties: HashMap<&'static str, Kind>,
    refused: Vec<&'static str>,
    known: Vec<&'static str>,
}

static LIST: LazyLock<List> = LazyLock::new(|| {
    let mut list = List {
        properties: HashMap::new(),
        refused: Vec::new(),
        known: Vec::new(),
    };
    for line in include_str!("access.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let Some((kind, names)) = line.split_once(':') else {
            continue;
        };
        let names = names.split_whitespace();
        let kind = match kind {
            "refused" => {
                list.refused.extend(names);
                continue;
            }
            "known" => {
                list.known.extend(names);
                continue;
            }
            "file" => Kind::File(None),
            "read" => Kind::File(Some(Access::Read)),
            "write" => Kind::File(Some(Access::Write)),
            "uri" => Kind::Uri(None),
            "uri-read" => Kind::Uri(Some(Access::Read)),
            "uri-write" => Kind::Uri(Some(Access::Write)),
            "host" => Kind::Host,
            "peers" => Kind::Peers,
            "device" => Kind::Device,
            "device-number" => Kind::DeviceNumber,
            "descriptor" => Kind::Descriptor,
            "description" => Kind::Description,
            "factory" => Kind::Factory,
            "pairs" => Kind::Pairs,
            "files" => Kind::Files,
            "redirect" => Kind::Redirect,
            "none" => Kind::Nothing,
            // A word that a test knows to be wrong; nothing is let through because of it.
            _ => Kind::Unlisted,
        };
        list.properties.extend(names.map(|name| (name, kind)));
    }
    list
});

/// The kind by the name alone: for a field of a structure, or a property of an element that does not exist yet.
pub(super) fn of_name(name: &str) -> Kind {
    // GLib takes both.
    let name = name.replace('_', "-");
    LIST.properties
        .get(name.as_str())
        .copied()
        .unwrap_or(Kind::Unlisted)
}

/// The kind of a property of an element.
pub(super) fn of_property(property: &glib::ParamSpec) -> Kind {
    if !property.flags().contains(glib::ParamFlags::WRITABLE) {
        return Kind::Nothing;
    }
    let (listed, of) = (of_name(property.name()), property.value_type());
    let is_text = of == glib::Type::STRING || of == <Vec<String>>::static_type();
    match of.name() {
        _ if is_text => listed,
        _ if of.is_a(gst::Element::static_type()) => Kind::Description,
        "gboolean" if listed == Kind::Redirect && property.flags().contains(glib::ParamFlags::READABLE) => {
            listed
        }
        "gint" | "guint" | "gint64" | "guint64" | "glong" | "gulong" => match listed {
            Kind::Descriptor | Kind::DeviceNumber => listed,
            Kind::Device => Kind::DeviceNumber,
            _ => Kind::Nothing,
        },
        "GstStructure" | "GstEncodingProfile" | "GStrv" if listed == Kind::Nothing => listed,
        "GstStructure" | "GstEncodingProfile" | "GstValueArray" | "GstValueList" => Kind::Pairs,
        "GBytes" => listed,
        // Other objects and pointers cannot be written as text; if an element sets them itself, the address it was given
        // is judged.
        _ => Kind::Nothing,
    }
}

/// The role of an element in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    Sink,
    /// Plays or decodes an address.
    Player,
    Other,
    /// There is no element yet.
    Unknown,
}

impl Role {
    pub(super) fn of(factory: &gst::ElementFactory) -> Self {
        let klass = factory.metadata("klass").unwrap_or_default();
        let templates = factory.static_pad_templates();
        let has = |direction| templates.iter().any(|template| template.direction() == direction);
        match (has(gst::PadDirection::Sink), has(gst::PadDirection::Src)) {
            (true, false) => Self::Sink,
            (false, true) => Self::Source,
            _ if ["Player", "Source", "Decoder"]
                .iter()
                .any(|word| klass.contains(word)) =>
            {
                Self::Player
            }
            _ => Self::Other,
        }
    }

    pub(super) fn access(self) -> Access {
        match self {
            Self::Source | Self::Player => Access::Read,
            Self::Sink => Access::Write,
            Self::Other => Access::Both,
            Self::Unknown => Access::Either,
        }
    }
}

/// Why an element is refused whatever its properties are; `bounded`: the kernel keeps it to the allowed files and devices.
pub(super) fn refuses(factory: &gst::ElementFactory, bounded: bool) -> Option<&'static str> {
    let klass = factory.metadata("klass").unwrap_or_default();
    let says = |words: &[&str]| klass.split('/').any(|part| words.contains(&part));
    if LIST.refused.contains(&factory.name().as_str()) || says(&["Adaptive", "Editing"]) {
        return Some("it opens files and addresses that are named in its input");
    }
    let source = factory.plugin().map(|plugin| plugin.source());
    if source.is_some_and(|source| LIST.known.contains(&source.as_str())) {
        return None;
    }
    // A codec or filter of a board's vendor gets data and gives data.
    let processes = says(&[
        "Codec",
        "Encoder",
        "Decoder",
        "Parser",
        "Filter",
        "Converter",
        "Muxer",
        "Demuxer",
    ]) && !says(&["Source", "Sink", "Bin"]);
    let may = !says(&["Network"]) && (bounded || processes);
    (!may).then_some("its access to files and the network is not known")
}

#[cfg(test)]
mod tests {
    use super::{Kind, LIST, of_name, of_property};
    use gst::prelude::*;

    #[test]
    fn every_line_of_the_list_has_a_kind() {
        let wrong = LIST
            .properties
            .iter()
            .filter(|(_, kind)| **kind == Kind::Unlisted);
        assert_eq!(wrong.count(), 0);
        assert_eq!(of_name("location"), Kind::File(None));
        assert_eq!(of_name("moov_recovery_file"), of_name("moov-recovery-file"));
        assert_eq!(of_name("locations"), Kind::Unlisted);
        assert!(LIST.refused.contains(&"avmux_hls") && LIST.known.contains(&"gst-libav"));
    }

    /// What is not on the list of the elements of this machine, so that a newer GStreamer's addition is seen.
    #[test]
    fn few_texts_of_gstreamers_own_elements_are_not_understood() {
        gst::init().unwrap();
        let class_of = |feature: &gst::PluginFeature| {
            feature
                .plugin()
                .is_some_and(|plugin| LIST.known.contains(&plugin.source().as_str()))
        };
        let mut unlisted: Vec<String> = Vec::new();
        for feature in gst::Registry::get().features(gst::ElementFactory::static_type()) {
            let Ok(factory) = feature.clone().downcast::<gst::ElementFactory>() else {
                continue;
            };
            let Some(class) = class_of(&feature)
                .then(|| factory.load().ok())
                .flatten()
                .and_then(|factory| gst::glib::Class::<gst::glib::Object>::from_type(factory.element_type()))
            else {
                continue;
            };
            let specs = class.list_properties();
            let own = specs.iter().filter(|spec| of_property(spec) == Kind::Unlisted);
            unlisted.extend(own.map(|spec| spec.name().to_owned()));
        }
        unlisted.sort_unstable();
        unlisted.dedup();
        let meant = [
            // Code, and formats of text that a library reads.
            "crypto-engine",
            "fragment",
            "omx-libname",
            "omx-libprefix",
            "sdp",
            "subtitles-template",
            "vertex",
            // Names on a server, or below a folder of the element's own choice.
            "file-name",
            "ftp-port",
            "temp-file-name",
            // An element of a board.
            "ports",
        ];
        let more: Vec<&String> = unlisted
            .iter()
            .filter(|name| !meant.contains(&name.as_str()))
            .collect();
        assert!(more.is_empty(), "{more:?}");
    }
}
