//! Warnings about pipelines that parse but probably do not work as intended.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gst::prelude::*;
use gst_base::prelude::*;

use super::datagram;
use super::failure::{brief, called};
use super::graph::{Graph, class, factory_name};
use super::open::OpenEnd;
use super::verdict::Warning;
use crate::catalog::{bitrate_unit, is_deprecated_property, is_out_of_range, range};
use crate::holders::Holders;
use crate::machine::Machine;

/// All warnings, in the order of the elements.
pub(super) fn all(graph: &Graph<'_>, machine: &Machine, holders: &Holders) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for element in &graph.elements {
        deprecated(element, &mut warnings);
        properties(graph, element, &mut warnings);
        tee(element, &mut warnings);
        encoder(element, &mut warnings);
        live(element, &mut warnings);
        datagrams(element, &mut warnings);
        outside(element, machine, holders, &mut warnings);
        caller(element, &mut warnings);
        unit(element, &mut warnings);
    }
    warnings
}

fn warn(warnings: &mut Vec<Warning>, kind: &'static str, element: &gst::Element, message: String) {
    let warning = Warning {
        kind,
        element: called(element),
        message,
    };
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

fn deprecated(element: &gst::Element, warnings: &mut Vec<Warning>) {
    if let Some(factory) = element.factory()
        && crate::catalog::is_deprecated(&factory)
    {
        let message = format!("'{}' is deprecated: {}", factory.name(), factory.description());
        warn(warnings, "deprecated", element, message);
    }
}

/// Values that GStreamer ignores without an error, and deprecated properties.
fn properties(graph: &Graph<'_>, element: &gst::Element, warnings: &mut Vec<Warning>) {
    let Some(text) = graph.text(element) else {
        return;
    };
    for set in &text.properties {
        let Some(spec) = element.find_property(&set.name) else {
            continue;
        };
        if is_deprecated_property(&spec) {
            let message = format!(
                "'{}' of '{}' is deprecated: {}",
                set.name,
                text.factory,
                spec.blurb()
                    .unwrap_or("its plugin does not say what to use instead")
            );
            warn(warnings, "deprecated", element, message);
        }
        if is_out_of_range(&spec, &set.value)
            && let Some((min, max)) = range(&spec)
        {
            let message = format!(
                "'{}' of '{}' is {}, which GStreamer does not take: it takes {min} to {max}",
                set.name, text.factory, set.value
            );
            warn(warnings, "out_of_range", element, message);
        }
    }
}

/// The warning for an open end that does not hinder the rest of the pipeline.
pub(super) fn open_end(end: &OpenEnd) -> Warning {
    Warning {
        kind: "open_end",
        element: called(&end.element),
        message: format!("{}: {}", end.error, end.suggestion),
    }
}

/// A listener that holds the pipeline up until a peer calls.
fn caller(element: &gst::Element, warnings: &mut Vec<Warning>) {
    let wait = "wait-for-connection";
    let waits = element
        .find_property(wait)
        .is_some_and(|spec| spec.value_type() == gst::glib::Type::BOOL);
    let listens = factory_name(element).contains("server")
        || element.find_property("mode").is_some()
            && gst::glib::EnumValue::from_value(&element.property_value("mode"))
                .is_some_and(|(_, mode)| mode.nick() == "listener");
    if waits && listens && element.src_pads().is_empty() && element.property::<bool>(wait) {
        let message = format!(
            "'{}' blocks the whole pipeline, with all of its branches, until a peer connects: set {wait}=false",
            called(element)
        );
        warn(warnings, "no_caller", element, message);
    }
}

/// More than any codec needs, in bit/s: who writes it has taken kbit/s for bit/s.
const HIGHEST_BITRATE: u64 = 500_000_000;

/// A bitrate that is a thousand times what is meant, or a thousandth.
fn unit(element: &gst::Element, warnings: &mut Vec<Warning>) {
    for name in ["bitrate", "target-bitrate"] {
        let Some(spec) = element.find_property(name) else {
            continue;
        };
        let value = element.property_value(name);
        let rate = value.get::<u32>().map(u64::from);
        let rate = rate.or_else(|_| value.get::<i32>().map(|rate| u64::try_from(rate).unwrap_or(0)));
        let (Ok(rate), Some(unit)) = (rate, bitrate_unit(spec.blurb().unwrap_or_default())) else {
            continue;
        };
        let video = class(element).split('/').any(|part| part == "Video");
        let (meant, wrong) = match unit {
            "kbit/s" if rate.saturating_mul(1_000) > HIGHEST_BITRATE => {
                (rate / 1_000, "more than any receiver takes")
            }
            "bit/s" if video && (1..50_000).contains(&rate) => (rate * 1_000, "too little for a picture"),
            _ => continue,
        };
        let message = format!(
            "{name}={rate} of '{}' is in {unit}, {wrong}: is {name}={meant} meant?",
            called(element)
        );
        warn(warnings, "unit", element, message);
    }
}

/// The element after a pad.
fn next(pad: &gst::Pad) -> Option<gst::Element> {
    pad.peer()?.parent_element()
}

/// The elements before an element.
fn before(element: &gst::Element) -> Vec<gst::Element> {
    element.sink_pads().iter().filter_map(next).collect()
}

fn after(element: &gst::Element) -> Vec<gst::Element> {
    element.src_pads().iter().filter_map(next).collect()
}

/// Whether an element is a queue of GStreamer, which starts a thread: `queue`, `queue2`, `multiqueue`.
fn is_queue(element: &gst::Element) -> bool {
    ["GstQueue", "GstQueue2", "GstMultiQueue"].contains(&element.type_().name())
}

/// Branches of a tee without a queue share one thread, so that one blocked branch blocks the others.
fn tee(element: &gst::Element, warnings: &mut Vec<Warning>) {
    if element.type_().name() != "GstTee" {
        return;
    }
    let branches: Vec<gst::Element> = after(element);
    if branches.len() < 2 {
        return;
    }
    for branch in branches.iter().filter(|branch| !decoupled(branch)) {
        let message = format!(
            "the branch of '{}' to '{}' has no queue: one branch that waits stops the others; put 'queue' after the tee",
            called(element),
            called(branch)
        );
        warn(warnings, "no_queue_after_tee", element, message);
    }
}

/// Whether a branch has a queue before it ends or joins others.
fn decoupled(start: &gst::Element) -> bool {
    let mut element = start.clone();
    // A limit for loops; no real pipeline is this long.
    for _ in 0..256 {
        if is_queue(&element) || class(&element).split('/').any(|part| part == "Bin") {
            return true;
        }
        let (ins, outs) = (element.sink_pads().len(), after(&element));
        match outs.as_slice() {
            [only] if ins <= 1 => element = only.clone(),
            _ => return false,
        }
    }
    false
}

fn encoder(element: &gst::Element, warnings: &mut Vec<Warning>) {
    let Some(factory) = element.factory() else {
        return;
    };
    if !factory.has_type(gst::ElementFactoryType::VIDEO_ENCODER) {
        return;
    }
    if let Some((muxer, parser)) = unparsed(element) {
        let message = format!(
            "'{}' goes into '{}' without a parser: put '{parser}' between them, or timestamps and headers may be missing",
            called(element),
            called(&muxer)
        );
        warn(warnings, "no_parser", element, message);
    }
    if let Some(source) = uncapped(element) {
        let message = format!(
            "the format between '{}' and '{}' is not set: put caps between them, such as \
             video/x-raw,width=1280,height=720,framerate=30/1",
            called(&source),
            called(element)
        );
        warn(warnings, "no_raw_caps", element, message);
    }
}

/// The muxer that an encoder feeds without a parser, and the parser that this machine has for it.
fn unparsed(encoder: &gst::Element) -> Option<(gst::Element, String)> {
    let mut element = encoder.clone();
    for _ in 0..256 {
        let next = after(&element).into_iter().next()?;
        let kind = class(&next);
        let is = |word: &str| kind.split('/').any(|part| part == word);
        if is("Parser") {
            return None;
        }
        if is("Muxer") {
            let output = encoder.static_pad("src")?.pad_template()?.caps().clone();
            let parser = gst::ElementFactory::factories_with_type(
                gst::ElementFactoryType::PARSER,
                gst::Rank::MARGINAL,
            )
            .into_iter()
            .filter(|factory| {
                factory.klass().split('/').any(|part| part == "Video") && factory.can_sink_any_caps(&output)
            })
            .max_by_key(|factory| i32::from(factory.rank()))?;
            return Some((next, parser.name().to_string()));
        }
        if !is_queue(&next) && factory_name(&next) != "capsfilter" {
            return None;
        }
        element = next;
    }
    None
}

/// The source of raw video whose size and rate are not fixed before an encoder.
fn uncapped(encoder: &gst::Element) -> Option<gst::Element> {
    let mut element = encoder.clone();
    for _ in 0..256 {
        let from = before(&element);
        let [only] = from.as_slice() else {
            return None;
        };
        if factory_name(only) == "capsfilter" {
            let caps = only.property::<Option<gst::Caps>>("caps")?;
            let fixes = |structure: &gst::StructureRef| {
                structure.has_field("width") || structure.has_field("framerate")
            };
            if !caps.is_any() && caps.iter().any(fixes) {
                return None;
            }
        }
        let kind = class(only);
        let is = |word: &str| kind.split('/').any(|part| part == word);
        if is("Source") {
            return is("Video").then(|| only.clone());
        }
        // An element that decodes, mixes or receives determines its own output.
        if [
            "Decoder",
            "Demuxer",
            "Compositor",
            "Mixer",
            "Network",
            "Depayloader",
            "Bin",
        ]
        .into_iter()
        .any(is)
        {
            return None;
        }
        element = only.clone();
    }
    None
}

/// A live source cannot wait, but a file sink or source can make it wait.
fn live(element: &gst::Element, warnings: &mut Vec<Warning>) {
    let live = element
        .downcast_ref::<gst_base::BaseSrc>()
        .is_some_and(BaseSrcExt::is_live);
    if !live {
        return;
    }
    let mut element_after = element.clone();
    for _ in 0..256 {
        let next = after(&element_after);
        let [only] = next.as_slice() else {
            return;
        };
        if is_queue(only) {
            return;
        }
        let is_file = class(only).split('/').any(|part| part == "File");
        if is_file && only.src_pads().is_empty() {
            let message = format!(
                "'{}' is live and cannot wait for '{}', which is not: put a queue between them",
                called(element),
                called(only)
            );
            warn(warnings, "blocked_live_source", element, message);
            return;
        }
        element_after = only.clone();
    }
}

/// A transport stream whose packets are not grouped as its datagrams need.
fn datagrams(element: &gst::Element, warnings: &mut Vec<Warning>) {
    let Some(datagram::UnfittingStream { sink, packets }) = datagram::unfitting(element) else {
        return;
    };
    let (muxer, sink) = (called(element), called(&sink));
    let wrong = match packets {
        Some(packets) => format!(
            "{packets} packets of '{muxer}' are {} bytes, more than a datagram of '{sink}' holds",
            packets * datagram::PACKET
        ),
        None => format!(
            "packets per datagram are not set between '{muxer}' and '{sink}', so each packet of {} bytes may be sent alone",
            datagram::PACKET
        ),
    };
    let message = format!(
        "{wrong}: set alignment={} on '{muxer}', which makes {} bytes",
        datagram::MOST_PACKETS,
        datagram::MOST_PACKETS * datagram::PACKET
    );
    warn(warnings, "unaligned_datagrams", element, message);
}

/// Problems that only running can show: files, devices and peers.
fn outside(element: &gst::Element, machine: &Machine, holders: &Holders, warnings: &mut Vec<Warning>) {
    let kind = class(element);
    let is = |word: &str| kind.split('/').any(|part| part == word);
    let text = |property: &str| {
        let spec = element.find_property(property)?;
        let readable = spec.flags().contains(gst::glib::ParamFlags::READABLE);
        (readable && spec.value_type() == gst::glib::Type::STRING).then_some(())?;
        element.property::<Option<String>>(property)
    };
    let address = text("uri").or_else(|| text("location"));
    if let Some(device) = text("device").filter(|device| device.starts_with("/dev/")) {
        if let Some(owner) = holders.owner_of(&device) {
            let message = format!("the pipeline '{owner}' uses '{device}': stop that pipeline first");
            warn(warnings, "device_in_use", element, message);
        } else if !machine.config.below_sysroot(&device).exists() {
            let message = format!(
                "'{device}' of '{}' does not exist on this machine now",
                called(element)
            );
            warn(warnings, "missing_device", element, message);
        }
    }
    let Some(address) = address.filter(|address| !address.is_empty()) else {
        return;
    };
    let path = address.strip_prefix("file://").unwrap_or(&address);
    if path.starts_with('/') {
        file(element, path, warnings);
    } else if (is("Network") || address.contains("://")) && waits_for_peer(element, &address) {
        let message = format!(
            "whether {} answers shows only when it runs",
            without_secrets(&address)
        );
        warn(warnings, "unknown_peer", element, message);
    }
}

fn file(element: &gst::Element, path: &str, warnings: &mut Vec<Warning>) {
    // A pattern such as frame%05d.png stands for many files.
    let pattern = path.contains('%') || path.contains('*');
    let gives = |template: &gst::PadTemplate| template.direction() == gst::PadDirection::Src;
    let reads = element.pad_template_list().iter().any(gives) || class(element).contains("Player");
    let wanted = if reads && !pattern {
        Path::new(path)
    } else {
        Path::new(path).parent().unwrap_or(Path::new("/"))
    };
    if !wanted.exists() {
        let message = format!(
            "'{}' of '{}' does not exist now",
            wanted.display(),
            called(element)
        );
        warn(warnings, "missing_file", element, message);
    } else if !pattern && Path::new(path).is_dir() {
        let message = format!("'{path}' of '{}' is a folder: name a file in it", called(element));
        warn(warnings, "not_a_file", element, message);
    } else if reads
        && !pattern
        && let Some((holds, next, takes)) = unfit(element, path)
    {
        let message = format!(
            "'{path}' holds {holds}, and '{next}' takes {takes}: put a demuxer, a parser or decodebin between them"
        );
        warn(warnings, "other_format", element, message);
    }
}

/// How much of a file is looked at for its format, in bytes.
const BEGINNING: u64 = 64 << 10;

/// What a file holds if the element that reads it cannot take that: the format, the element, and what it takes.
fn unfit(source: &gst::Element, path: &str) -> Option<(String, String, String)> {
    let peer = source.static_pad("src")?.peer()?;
    let takes = peer.query_caps(None);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .ok()?;
    if takes.is_any() || takes.is_empty() || !file.metadata().is_ok_and(|file| file.is_file()) {
        return None;
    }
    let mut beginning = Vec::new();
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    let (holds, certainty) = gst_base::type_find_helper_for_data(None::<&gst::Object>, &beginning).ok()?;
    let fits = certainty < gst::TypeFindProbability::Likely || holds.can_intersect(&takes);
    (!fits).then_some((brief(&holds), called(&peer.parent_element()?), brief(&takes)))
}

/// Whether a peer has to answer: true for a client of a connection-oriented protocol, not for a listener or UDP.
fn waits_for_peer(element: &gst::Element, address: &str) -> bool {
    let Ok(url) = url::Url::parse(address) else {
        return false;
    };
    if ["udp", "rtp", "rist", "file", "testbin"].contains(&url.scheme()) {
        return false;
    }
    let listens = element.find_property("mode").is_some_and(|spec| {
        spec.flags().contains(gst::glib::ParamFlags::READABLE)
            && gst::glib::EnumValue::from_value(&element.property_value("mode"))
                .is_some_and(|(_, mode)| mode.nick() == "listener")
    });
    let named = |key: &str| {
        url.query_pairs()
            .any(|(name, value)| name == key && value == "listener")
    };
    url.host_str().is_some_and(|host| !host.is_empty()) && !listens && !named("mode")
}

/// An address without its password and stream key.
fn without_secrets(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(url) => format!(
            "{}://{}{}",
            url.scheme(),
            url.host_str().unwrap_or_default(),
            url.port().map(|port| format!(":{port}")).unwrap_or_default()
        ),
        Err(_) => "the peer".to_owned(),
    }
}
