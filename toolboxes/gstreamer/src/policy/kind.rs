//! The kind of access that a property gives, judged by its type, its name and the role of its element.
//!
//! Owns the words that identify such properties. Knows no element by name, so that unknown elements are judged like all
//! others. Pure. Read [`Kind`].

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
    Harmless,
    Path(Access),
    /// An address; a `file:` address is used with this access.
    Uri(Access),
    Host,
    /// `host:port,host:port`.
    Peers,
    Device,
    /// A number that selects a device, such as the card of a capture driver.
    DeviceNumber,
    /// An open file descriptor of this process.
    Descriptor,
    /// An element, or the description of one.
    Element,
    /// The name of an element to be made.
    Factory,
    /// `key=value` pairs for another component: a structure, an encoding profile.
    Composite,
    /// Options of a library, any of which may name a file.
    Options,
    /// Any text, judged by its form.
    Text,
    /// Access of an unknown kind.
    Unknown,
}

/// The role of an element in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    Sink,
    /// Plays or decodes an address.
    Player,
    Other,
}

impl Role {
    pub(super) fn of(factory: &gst::ElementFactory) -> Self {
        let klass = factory.metadata("klass").unwrap_or_default();
        let has = |direction| {
            factory
                .static_pad_templates()
                .iter()
                .any(|template| template.direction() == direction)
        };
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

    fn access(self) -> Access {
        match self {
            Self::Source | Self::Player => Access::Read,
            Self::Sink => Access::Write,
            Self::Other => Access::Both,
        }
    }
}

const CODE: &[&str] = &[
    "script",
    "command",
    "cmd",
    "exec",
    "executable",
    "shell",
    "module",
    "library",
    "libname",
    "libprefix",
    "shader",
    "glsl",
    "vertex",
    "fragment",
    "sdp",
];
const DESCRIPTOR: &[&str] = &["fd", "fds", "fdin", "fdout", "descriptor", "handle"];
const URI: &[&str] = &[
    "uri", "uris", "suburi", "url", "urls", "baseurl", "proxy", "stun", "turn", "endpoint",
];
const SECRET: &[&str] = &[
    "passphrase",
    "password",
    "passwd",
    "pw",
    "user",
    "username",
    "token",
    "auth",
    "cipher",
    "id",
    "md5",
    "pubkey",
];
const PATH: &[&str] = &[
    "location",
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "directory",
    "folder",
    "root",
    "temp",
    "tmp",
    "input",
    "output",
    "knownhosts",
    "keyfile",
    "certificate",
    "cert",
    "certs",
    "ca",
    "soundfont",
    "lut",
    "model",
    "models",
    "cascade",
    "classifier",
    "profile",
    "profiles",
    "config",
    "configuration",
    "database",
    "db",
    "playlist",
    "manifest",
    "log",
    "logfile",
    "dump",
    "stats",
    "cache",
    "weights",
    "labels",
    "image",
    "socket",
];
/// Words for a path in descriptions of properties.
const PATH_TOLD: &[&str] = &[
    "file",
    "files",
    "filename",
    "location",
    "path",
    "directory",
    "folder",
];
/// Options of encoders that name files.
const FILE_OPTION: &[&str] = &[
    "file", "path", "dir", "dump", "stats", "csv", "recon", "analysis", "cqm", "clbin", "rpu", "dhdr10",
];
const HOST: &[&str] = &[
    "host",
    "hosts",
    "hostname",
    "address",
    "addr",
    "localaddress",
    "ip",
    "server",
    "peer",
    "remote",
    "group",
];
const PEERS: &[&str] = &["clients", "addresses", "peers", "servers"];
const DEVICE: &[&str] = &[
    "device", "devices", "display", "card", "camera", "adapter", "tty", "serial", "sensor",
];
const OPTIONS: &[&str] = &[
    "option",
    "options",
    "param",
    "params",
    "parameters",
    "args",
    "arguments",
    "opts",
    "settings",
];
const HARMLESS: &[&str] = &[
    "name",
    "text",
    "title",
    "label",
    "comment",
    "description",
    "desc",
    "subject",
    "body",
    "message",
    "genre",
    "artist",
    "language",
    "encoding",
    "agent",
    "font",
    "colorimetry",
    "format",
    "tags",
    "version",
    "vendor",
    "separator",
    "boundary",
    "ratio",
    "timecode",
    "caps",
    "method",
    "mid",
    "rid",
    "cname",
    "data",
    "category",
    "app",
    "creator",
    "iface",
    "type",
    "application",
    "stream",
    "streamid",
    "streamname",
    "mount",
    "channel",
    "pattern",
];
const WRITES: &[&str] = &[
    "output",
    "dest",
    "temp",
    "tmp",
    "faststart",
    "recovery",
    "log",
    "logfile",
    "dump",
    "playlist",
    "stats",
];
const READS: &[&str] = &[
    "input",
    "source",
    "certificate",
    "cert",
    "certs",
    "ca",
    "keyfile",
    "soundfont",
    "profile",
    "profiles",
    "model",
    "models",
    "cascade",
    "classifier",
    "lut",
    "weights",
    "labels",
    "font",
];

/// The kind of a property of an element.
pub(super) fn of_property(property: &glib::ParamSpec, role: Role) -> Kind {
    if !property.flags().contains(glib::ParamFlags::WRITABLE) {
        return Kind::Harmless;
    }
    let words = words(property.name());
    let kind = property.value_type();
    if kind.is_a(gst::Element::static_type()) {
        return Kind::Element;
    }
    if kind == glib::Type::STRING || kind == <Vec<String>>::static_type() {
        return of_text(&words, role, property.blurb().unwrap_or_default());
    }
    if is_integer(kind) {
        return of_integer(&words, role);
    }
    match kind.name() {
        "GstStructure" | "GstEncodingProfile" | "GstValueArray" | "GstValueList" => Kind::Composite,
        "GBytes" | "GstBuffer" if any(&words, CODE) => Kind::Unknown,
        // Other objects and pointers cannot be written as text; if an element sets them itself, the address it was
        // given is judged.
        _ => Kind::Harmless,
    }
}

/// The kind judged by the name alone: for a field of a structure, or a property of an element that does not exist yet.
pub(super) fn of_name(name: &str, role: Role) -> Kind {
    let words = words(name);
    if any(&words, DESCRIPTOR) {
        return Kind::Descriptor;
    }
    match of_text(&words, role, "") {
        Kind::Path(Access::Both) => Kind::Path(Access::Either),
        Kind::Uri(Access::Both) => Kind::Uri(Access::Either),
        kind => kind,
    }
}

fn of_integer(words: &[String], role: Role) -> Kind {
    if any(words, DESCRIPTOR) {
        return Kind::Descriptor;
    }
    // The device of a codec or filter is the processor that it runs on.
    if any(words, DEVICE) && matches!(role, Role::Source | Role::Sink | Role::Player) {
        return Kind::DeviceNumber;
    }
    Kind::Harmless
}

fn of_text(words: &[String], role: Role, blurb: &str) -> Kind {
    let is = |list| any(words, list);
    if words == ["name"] || (is(SECRET) && !is(&["keyfile", "file"])) {
        Kind::Harmless
    } else if is(URI) {
        Kind::Uri(access(words, role, blurb))
    } else if is(DESCRIPTOR) {
        Kind::Descriptor
    } else if is(PATH) {
        Kind::Path(access(words, role, blurb))
    } else if is(CODE) {
        Kind::Unknown
    } else if words.last().is_some_and(|last| last == "factory") {
        Kind::Factory
    } else if is(PEERS) {
        Kind::Peers
    } else if is(OPTIONS) {
        Kind::Options
    } else if words.last().is_some_and(|last| last == "properties") {
        Kind::Composite
    } else if is(HOST) {
        Kind::Host
    } else if is(DEVICE) {
        Kind::Device
    } else if is(HARMLESS) {
        Kind::Harmless
    } else if ends_with_file(words) || says_path(blurb) {
        Kind::Path(access(words, role, blurb))
    } else {
        Kind::Text
    }
}

/// Whether an option of a library names a file, so that even a number counts as a file name.
pub(super) fn is_file_option(name: &str) -> bool {
    let words = words(name);
    any(&words, FILE_OPTION) || ends_with_file(&words)
}

/// `datafile`, `qpfile`.
fn ends_with_file(words: &[String]) -> bool {
    words.iter().any(|word| word.ends_with("file"))
}

/// Whether the description of a property mentions a path.
fn says_path(blurb: &str) -> bool {
    let told = blurb.to_lowercase();
    told.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| PATH_TOLD.contains(&word))
}

fn access(words: &[String], role: Role, blurb: &str) -> Access {
    if any(words, READS) {
        return Access::Read;
    }
    if any(words, WRITES) {
        return Access::Write;
    }
    let blurb = blurb.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| blurb.contains(word));
    match role.access() {
        Access::Both if says(&["save", "write", "output", "record"]) => Access::Write,
        Access::Both if says(&["load", "overlay", "read "]) => Access::Read,
        access => access,
    }
}

fn is_integer(kind: glib::Type) -> bool {
    [
        glib::Type::I32,
        glib::Type::U32,
        glib::Type::I64,
        glib::Type::U64,
        glib::Type::I_LONG,
        glib::Type::U_LONG,
    ]
    .contains(&kind)
}

fn words(name: &str) -> Vec<String> {
    name.split(['-', '_', ':', '.'])
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn any(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{Access, Kind, Role, is_file_option, of_text, words};

    #[test]
    fn names_give_themselves_away() {
        for (name, role, expected) in [
            ("location", Role::Source, Kind::Path(Access::Read)),
            ("location", Role::Sink, Kind::Path(Access::Write)),
            ("location", Role::Other, Kind::Path(Access::Both)),
            ("moov-recovery-file", Role::Other, Kind::Path(Access::Write)),
            ("recovery-input", Role::Source, Kind::Path(Access::Read)),
            ("ssl-ca-file", Role::Source, Kind::Path(Access::Read)),
            ("socket-path", Role::Sink, Kind::Path(Access::Write)),
            ("uri", Role::Player, Kind::Uri(Access::Read)),
            ("dest-uri", Role::Other, Kind::Uri(Access::Write)),
            ("stun-server", Role::Other, Kind::Uri(Access::Both)),
            ("proxy", Role::Source, Kind::Uri(Access::Read)),
            ("proxy-pw", Role::Source, Kind::Harmless),
            ("host", Role::Sink, Kind::Host),
            ("bind-address", Role::Sink, Kind::Host),
            ("clients", Role::Sink, Kind::Peers),
            ("bonding-addresses", Role::Sink, Kind::Peers),
            ("device", Role::Source, Kind::Device),
            ("display-name", Role::Source, Kind::Device),
            ("sink-factory", Role::Other, Kind::Factory),
            ("option-string", Role::Other, Kind::Options),
            ("startup-script", Role::Other, Kind::Unknown),
            ("sdp", Role::Source, Kind::Unknown),
            ("font-desc", Role::Other, Kind::Harmless),
            ("streamid", Role::Sink, Kind::Harmless),
            ("something-new", Role::Other, Kind::Text),
            ("datafile", Role::Other, Kind::Path(Access::Both)),
        ] {
            assert_eq!(of_text(&words(name), role, ""), expected, "{name} of {role:?}");
        }
        for (blurb, expected) in [
            ("Filename of template image", Kind::Path(Access::Both)),
            (
                "Location where to save motion cells data",
                Kind::Path(Access::Write),
            ),
            ("A profiled text", Kind::Text),
        ] {
            assert_eq!(of_text(&words("gizmo"), Role::Other, blurb), expected, "{blurb}");
        }
    }

    #[test]
    fn options_that_name_files_are_known() {
        for name in [
            "dump-yuv",
            "dump_yuv",
            "stats",
            "qpfile",
            "log-file",
            "csv",
            "recon",
            "analysis-save",
            "cqm",
            "Stats",
        ] {
            assert!(is_file_option(name), "{name}");
        }
        for name in [
            "keyint",
            "bframes",
            "b-pyramid",
            "log-level",
            "aq-mode",
            "threads",
            "vbv-maxrate",
        ] {
            assert!(!is_file_option(name), "{name}");
        }
    }
}
