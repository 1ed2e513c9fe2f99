//! Watches a pipeline after it was checked.
//!
//! Watches elements that bins create later, and properties that change later. A forbidden element or change is made
//! harmless in the thread that caused it, before that thread continues, and is reported once; the receiver of the
//! report ends the pipeline. Read [`watch`].

use std::sync::Arc;

use gst::glib;
use gst::prelude::*;

use super::access::{Kind, of_property};
use super::allowed::Policy;
use super::refusal::Refusal;

/// Watches a checked pipeline in NULL state until it is finalized. The pipeline's threads call `report`, which must not
/// block.
pub(crate) fn watch(
    pipeline: &gst::Pipeline,
    policy: &Arc<Policy>,
    report: impl Fn(Refusal) + Send + Sync + 'static,
) {
    let report = Arc::new(report);
    let (judge, report_element) = (Arc::clone(policy), Arc::clone(&report));
    pipeline.connect_deep_element_added(move |_, _, element| {
        if let Err(refusal) = judge.examine(element) {
            disarm(element);
            report_element(refusal);
        }
    });
    let judge = Arc::clone(policy);
    pipeline.connect_deep_notify(None, move |_, object, property| {
        let Some(element) = object.downcast_ref::<gst::Element>() else {
            return;
        };
        if let Err(refusal) = judge.examine_property(element, property) {
            blank(element, property);
            report(refusal);
        }
    });
}

/// Makes an element harmless: clears its addresses and blocks its data.
fn disarm(element: &gst::Element) {
    for property in element.list_properties() {
        if of_property(&property) != Kind::Nothing {
            blank(element, &property);
        }
    }
    element.set_locked_state(true);
    for pad in element.pads() {
        stop(&pad);
    }
    element.connect_pad_added(move |_, pad| stop(pad));
}

/// Blocks the data of a pad. Events pass: an element that gets an end of stream and no data is finished.
fn stop(pad: &gst::Pad) {
    use gst::PadProbeType as What;
    // Not `Drop` for pushed data: the bindings have freed it by then, and GStreamer before 1.24.12 does not handle
    // that.
    pad.add_probe(What::PUSH | What::BUFFER | What::BUFFER_LIST, |_, _| {
        gst::PadProbeReturn::Handled
    });
    // Pulled data is refused before it is read.
    pad.add_probe(What::PULL | What::BLOCK, |_, _| gst::PadProbeReturn::Drop);
}

fn blank(element: &gst::Element, property: &glib::ParamSpec) {
    let flags = property.flags();
    if !flags.contains(glib::ParamFlags::WRITABLE) || flags.contains(glib::ParamFlags::CONSTRUCT_ONLY) {
        return;
    }
    let kind = property.value_type();
    if kind == glib::Type::STRING {
        element.set_property(property.name(), None::<&str>);
    } else if kind == glib::Type::I32 {
        // -1 means no descriptor; a property whose range begins above -1 gets its minimum.
        let least = property
            .downcast_ref::<glib::ParamSpecInt>()
            .map_or(0, glib::ParamSpecInt::minimum);
        element.set_property(property.name(), least.max(-1));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::config::Config;

    /// The critical messages of GLib in this thread during `work`.
    fn criticals(work: impl FnOnce()) -> Vec<String> {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let (sink, own) = (Arc::clone(&messages), std::thread::current().id());
        let level = glib::LogLevels::LEVEL_CRITICAL;
        let handler = glib::log_set_handler(Some("GStreamer"), level, false, false, move |_, _, text| {
            if std::thread::current().id() == own {
                sink.lock().unwrap().push(text.to_owned());
            }
        });
        work();
        glib::log_remove_handler(Some("GStreamer"), handler);
        messages.lock().unwrap().clone()
    }

    /// A linked source and sink pad; pushed data that arrives is an error.
    fn pads() -> (gst::Pad, gst::Pad) {
        let source = gst::Pad::builder(gst::PadDirection::Src)
            .getrange_function(|_, _, _, _, _| Ok(gst::PadGetRangeSuccess::NewBuffer(gst::Buffer::new())))
            .activatemode_function(|_, _, _, _| Ok(()))
            .build();
        let sink = gst::Pad::builder(gst::PadDirection::Sink)
            .chain_function(|_, _, _| Err(gst::FlowError::Error))
            .chain_list_function(|_, _, _| Err(gst::FlowError::Error))
            .activatemode_function(|_, _, _, _| Ok(()))
            .build();
        source.link(&sink).unwrap();
        (source, sink)
    }

    #[test]
    fn what_is_stopped_gives_and_takes_no_data_and_breaks_nothing() {
        gst::init().unwrap();
        let messages = criticals(|| {
            for at_sink in [false, true] {
                let (source, sink) = pads();
                stop(if at_sink { &sink } else { &source });
                source.set_active(true).unwrap();
                sink.set_active(true).unwrap();
                assert!(source.push_event(gst::event::StreamStart::new("test")));
                let segment = gst::FormattedSegment::<gst::ClockTime>::new();
                assert!(source.push_event(gst::event::Segment::new(&segment)));
                assert_eq!(source.push(gst::Buffer::new()), Ok(gst::FlowSuccess::Ok));
                let mut list = gst::BufferList::new();
                list.make_mut().add(gst::Buffer::new());
                assert_eq!(source.push_list(list), Ok(gst::FlowSuccess::Ok));

                let (source, sink) = pads();
                stop(if at_sink { &sink } else { &source });
                source.activate_mode(gst::PadMode::Pull, true).unwrap();
                sink.activate_mode(gst::PadMode::Pull, true).unwrap();
                assert_eq!(sink.pull_range(0, 4).unwrap_err(), gst::FlowError::Eos);
            }
        });
        assert_eq!(messages, Vec::<String>::new());
    }

    #[test]
    fn redirects_stay_off_when_a_property_switches_them_on() {
        gst::init().unwrap();
        let Ok(source) = gst::ElementFactory::make("souphttpsrc").build() else {
            println!("not checked, since souphttpsrc is not installed");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let written = serde_json::from_value(serde_json::json!({"state_dir": dir.path()})).unwrap();
        let policy = Arc::new(Policy::new(&Config::check(written).unwrap(), false).unwrap());
        let pipeline = gst::Pipeline::new();
        watch(&pipeline, &policy, |refusal| panic!("{refusal}"));
        pipeline.add(&source).unwrap();
        assert!(!source.property::<bool>("automatic-redirect"));
        source.set_property("automatic-redirect", true);
        assert!(!source.property::<bool>("automatic-redirect"));
    }
}
