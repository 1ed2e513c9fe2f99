//! What happens in a pipeline after it was checked.
//!
//! Owns the watch over elements that bins create later and over properties that change later. What is not allowed is made
//! harmless in the thread that did it, before that thread goes on, and is reported once; ending the pipeline is the
//! business of whoever is told. Read [`watch`].

use std::sync::Arc;

use gst::glib;
use gst::prelude::*;

use super::kind::{Kind, Role, of_property};
use super::{Policy, Refusal};

/// Watches a pipeline that is in NULL state and was checked, until it is finalized. `told` must not block: it is called
/// by threads of the pipeline.
pub(crate) fn watch(
    pipeline: &gst::Pipeline,
    policy: &Arc<Policy>,
    told: impl Fn(Refusal) + Send + Sync + 'static,
) {
    let told = Arc::new(told);
    let (judge, tell) = (Arc::clone(policy), Arc::clone(&told));
    pipeline.connect_deep_element_added(move |_, _, element| {
        if let Err(refusal) = judge.examine(element) {
            disarm(element);
            tell(refusal);
        }
    });
    let judge = Arc::clone(policy);
    pipeline.connect_deep_notify(None, move |_, object, property| {
        let Some(element) = object.downcast_ref::<gst::Element>() else {
            return;
        };
        if let Err(refusal) = judge.examine_property(element, property) {
            blank(element, property);
            told(refusal);
        }
    });
}

/// Takes an element everything it could do: its addresses, and the data that flows through it.
fn disarm(element: &gst::Element) {
    let role = element.factory().as_ref().map_or(Role::Other, Role::of);
    for property in element.list_properties() {
        if of_property(&property, role) != Kind::Harmless {
            blank(element, &property);
        }
    }
    element.set_locked_state(true);
    let stop = |pad: &gst::Pad| {
        // Events pass: an element that gets its end and no data is done.
        let what = gst::PadProbeType::BUFFER | gst::PadProbeType::BUFFER_LIST;
        pad.add_probe(what, |_, _| gst::PadProbeReturn::Drop);
    };
    for pad in element.pads() {
        stop(&pad);
    }
    element.connect_pad_added(move |_, pad| stop(pad));
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
        // Where it is a descriptor there is none of this number; elsewhere the range decides.
        let least = property
            .downcast_ref::<glib::ParamSpecInt>()
            .map_or(0, glib::ParamSpecInt::minimum);
        element.set_property(property.name(), least.max(-1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn redirects_stay_off_whoever_switches_them_on() {
        gst::init().unwrap();
        let Ok(source) = gst::ElementFactory::make("souphttpsrc").build() else {
            println!("not checked, since souphttpsrc is not installed");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let written = serde_json::from_value(serde_json::json!({"state_dir": dir.path()})).unwrap();
        let policy = Arc::new(Policy::new(&Config::check(written).unwrap()).unwrap());
        let pipeline = gst::Pipeline::new();
        watch(&pipeline, &policy, |refusal| panic!("{refusal}"));
        pipeline.add(&source).unwrap();
        assert!(!source.property::<bool>("automatic-redirect"));
        source.set_property("automatic-redirect", true);
        assert!(!source.property::<bool>("automatic-redirect"));
    }
}
