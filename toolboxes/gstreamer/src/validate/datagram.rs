//! Transport streams over datagrams.
//!
//! A transport stream consists of packets of 188 bytes. A sender of datagrams has to set how many packets go into one:
//! seven, or 1316 bytes, which is SRT's payload of a live stream. Read [`unfitting`].

use gst::prelude::*;

use super::graph::factory_name;

/// Packets of 188 bytes in a datagram on Ethernet, and in an SRT payload of 1316 bytes.
pub(super) const MOST_PACKETS: i64 = 7;

/// Bytes per packet.
pub(super) const PACKET: i64 = 188;

/// A transport stream whose buffers do not fit datagrams.
pub(super) struct UnfittingStream {
    /// The sink that sends them.
    pub(super) sink: gst::Element,
    /// Packets per buffer; `None` if it is not set, and each packet may be sent alone.
    pub(super) packets: Option<i64>,
}

/// Whether an element makes a transport stream for a datagram sink with a missing or wrong number of packets per
/// buffer.
pub(super) fn unfitting(element: &gst::Element) -> Option<UnfittingStream> {
    let makes_transport = |template: &gst::PadTemplate| {
        template.direction() == gst::PadDirection::Src
            && template
                .caps()
                .iter()
                .any(|structure| structure.name() == "video/mpegts")
    };
    let packets = alignment(element)?;
    if (1..=MOST_PACKETS).contains(&packets) || !element.pad_template_list().iter().any(makes_transport) {
        return None;
    }
    Some(UnfittingStream {
        sink: sends(element)?,
        packets: (packets > 0).then_some(packets),
    })
}

/// Packets per buffer; 0 or less if it is not set.
fn alignment(element: &gst::Element) -> Option<i64> {
    element.find_property("alignment")?;
    let value = element.property_value("alignment");
    let signed = value.get::<i32>().ok().map(i64::from);
    signed.or_else(|| value.get::<u32>().ok().map(i64::from))
}

/// The first datagram sink that gets the buffers unchanged.
fn sends(from: &gst::Element) -> Option<gst::Element> {
    let mut waiting = vec![from.clone()];
    // A limit for loops; no real pipeline is this long.
    for _ in 0..256 {
        let element = waiting.pop()?;
        for next in element
            .src_pads()
            .iter()
            .filter_map(|pad| pad.peer()?.parent_element())
        {
            if is_datagram_sink(&next) {
                return Some(next);
            }
            if passes_on(&next) {
                waiting.push(next);
            }
        }
    }
    None
}

/// Whether an element passes its buffers on unchanged: some of GStreamer's own do.
fn passes_on(element: &gst::Element) -> bool {
    let plain = [
        "GstQueue",
        "GstQueue2",
        "GstMultiQueue",
        "GstTee",
        "GstIdentity",
        "GstClockSync",
        "GstValve",
    ];
    plain.contains(&element.type_().name()) || factory_name(element) == "capsfilter"
}

/// Whether a sink sends buffers as datagrams, judged by the schemes of its addresses.
fn is_datagram_sink(element: &gst::Element) -> bool {
    let Some(factory) = element.factory() else {
        return false;
    };
    let takes = factory.uri_protocols();
    let by_address = factory.uri_type() == gst::URIType::Sink
        && takes
            .iter()
            .any(|scheme| ["srt", "udp", "rist"].contains(&scheme.as_str()));
    let ancestors = std::iter::successors(Some(element.type_()), |of| of.parent());
    by_address || ancestors.into_iter().any(|of| of.name() == "GstMultiUDPSink")
}
