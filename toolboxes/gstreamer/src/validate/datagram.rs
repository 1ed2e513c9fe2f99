//! Transport streams in datagrams.
//!
//! A transport stream is a row of packets of 188 bytes. Who sends it in datagrams has to say how many go into one: seven,
//! which is 1316 bytes and what SRT takes as the payload of a live stream. Read [`unfitting`].

use gst::prelude::*;

use super::graph::factory_name;

/// Packets of 188 bytes that fit into a datagram of an Ethernet, and into an SRT payload of 1316 bytes.
pub(super) const MOST_PACKETS: i64 = 7;

/// Bytes of a packet.
pub(super) const PACKET: i64 = 188;

/// A transport stream whose buffers are no datagrams.
pub(super) struct Unfitting {
    /// What sends them.
    pub(super) sink: gst::Element,
    /// How many packets go into one; `None` when it is not said, and each may go alone.
    pub(super) packets: Option<i64>,
}

/// Whether an element makes a transport stream for a sink of datagrams, and was not told, or wrongly, how many packets
/// belong together.
pub(super) fn unfitting(element: &gst::Element) -> Option<Unfitting> {
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
    Some(Unfitting {
        sink: sends(element)?,
        packets: (packets > 0).then_some(packets),
    })
}

/// How many packets go into one buffer; 0 or less when it is not said.
fn alignment(element: &gst::Element) -> Option<i64> {
    element.find_property("alignment")?;
    let value = element.property_value("alignment");
    let signed = value.get::<i32>().ok().map(i64::from);
    signed.or_else(|| value.get::<u32>().ok().map(i64::from))
}

/// The first sink of datagrams that gets the buffers as they are.
fn sends(from: &gst::Element) -> Option<gst::Element> {
    let mut waiting = vec![from.clone()];
    // No pipeline is as long as this; a loop of elements would be.
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

/// GStreamer's own elements that give the buffers they take.
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

/// What sends a buffer as a datagram, or as several: by the addresses it takes.
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
