//! Checks a description, the elements made from it, and a property before it is set.
//!
//! Read [`Policy::check_description`] and [`Policy::examine`].

use gst::glib;
use gst::prelude::*;

use super::access::{self, Kind, Role};
use super::allowed::{MOST_NESTED, Policy};
use super::element::{element_name, factory_name, port_of, role_of};
use super::refusal::Refusal;
use super::site::Site;
use crate::description::{Description, normalize};
use crate::uses::Uses;

impl Policy {
    /// The description with its relative paths below the first folder that may be read or written, and `~/` as the home:
    /// a model that knows no folder writes `location=clip.mp4`. Normalized.
    pub(crate) fn place(&self, description: &str) -> String {
        let mut text = normalize(description).into_owned();
        let elements = Description::read(&text).elements;
        for element in elements.iter().rev() {
            let Some(factory) =
                gst::ElementFactory::find(&element.factory).and_then(|factory| factory.load().ok())
            else {
                continue;
            };
            let class = glib::Class::<glib::Object>::from_type(factory.element_type());
            for property in element.properties.iter().rev() {
                let spec = class
                    .as_ref()
                    .and_then(|class| class.find_property(&property.name));
                let Some(Kind::File(access)) = spec.map(|spec| access::of_property(&spec)) else {
                    continue;
                };
                let access = access.unwrap_or_else(|| Role::of(&factory).access());
                self.roots
                    .place(&mut text, property.value_at, &property.value, access);
            }
        }
        text
    }

    /// Checks the text before anything is made from it: its length, and every element and property.
    ///
    /// # Errors
    /// It is not allowed.
    pub(crate) fn check_description(&self, description: &str) -> Result<(), Refusal> {
        let length = description.chars().count();
        if length > self.max_pipeline_length {
            return Err(Refusal::new(
                format!(
                    "its description has {length} characters; at most {} are allowed",
                    self.max_pipeline_length
                ),
                "max_pipeline_length",
            )
            .on("pipeline", None));
        }
        self.check_text(&normalize(description), 0)
    }

    /// Checks an element with all its properties, and the children of a bin.
    ///
    /// # Errors
    /// It is not allowed.
    pub(crate) fn check_element(&self, element: &gst::Element) -> Result<(), Refusal> {
        self.examine(element).map(drop)
    }

    /// Like [`Policy::check_element`], and returns what it uses. A codec's default file name is let through, because the
    /// process stands in the scratch folder; following redirects, which could lead to other hosts, is switched off.
    ///
    /// # Errors
    /// It is not allowed.
    pub(crate) fn examine(&self, element: &gst::Element) -> Result<Uses, Refusal> {
        let mut uses = Uses::default();
        self.examine_tree(element, 0, &mut uses)?;
        Ok(uses)
    }

    /// Checks one property before it is set.
    ///
    /// # Errors
    /// It is not allowed.
    pub(crate) fn check_property(
        &self,
        element: &gst::Element,
        property: &str,
        value: &glib::Value,
    ) -> Result<(), Refusal> {
        let name = element_name(element);
        let Some(spec) = element.find_property(property) else {
            // The caller reports the missing property; nothing is set.
            return Ok(());
        };
        let kind = access::of_property(&spec);
        if kind == Kind::Redirect && value.get::<bool>().is_ok_and(|follow| follow) {
            let why = "it would follow redirects, which lead past the targets";
            return Err(Refusal::new(why, "network_targets").on(&name, Some(property)));
        }
        let site = Site {
            role: role_of(element),
            port: port_of(element, property),
            allowed: self.allowed.contains(&factory_name(element)),
            depth: 0,
        };
        self.judge_value(kind, site, value, &mut Uses::default())
            .map_err(|wrong| wrong.on(&name, Some(property)))
    }

    pub(super) fn examine_tree(
        &self,
        element: &gst::Element,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Refusal> {
        let name = element_name(element);
        if depth > MOST_NESTED {
            return Err(Refusal::new(
                format!("bins are nested more than {MOST_NESTED} deep"),
                "max_pipeline_length",
            )
            .on(&name, None));
        }
        let factory = element.factory();
        if let Some(factory) = &factory {
            self.check_factory(factory)
                .map_err(|wrong| wrong.on(&name, None))?;
        }
        let role = factory.as_ref().map_or(Role::Other, Role::of);
        for property in element.list_properties() {
            self.examine_one(element, &property, role, depth, uses)
                .map_err(|wrong| wrong.on(&name, Some(property.name())))?;
        }
        if let Some(bin) = element.downcast_ref::<gst::Bin>() {
            for child in bin.children() {
                self.examine_tree(&child, depth + 1, uses)?;
            }
        }
        Ok(())
    }

    /// Checks the present value of one property of an element.
    ///
    /// # Errors
    /// It is not allowed.
    pub(super) fn examine_property(
        &self,
        element: &gst::Element,
        property: &glib::ParamSpec,
    ) -> Result<(), Refusal> {
        self.examine_one(element, property, role_of(element), 0, &mut Uses::default())
            .map_err(|wrong| wrong.on(&element_name(element), Some(property.name())))
    }
}

#[cfg(test)]
mod tests {
    use ovos_toolbox_sdk::prelude::json;

    use super::*;
    use crate::config::Config;

    /// The key that refuses a newly made element, without any property set.
    fn refused(policy: &Policy, name: &str) -> Option<&'static str> {
        let element = gst::ElementFactory::make(name).build().ok()?;
        policy.examine(&element).err().map(|refusal| refusal.key)
    }

    #[test]
    fn what_the_kernel_bounds_is_left_to_it() {
        gst::init().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = "x264enc option-string=stats=1 ! fakesink";
        let script = "avmux_hls ! fakesink";
        for (confined, targets, description, expected) in [
            (true, json!([]), file, None),
            (true, json!([]), script, None),
            (false, json!([]), file, Some("allow_elements")),
            (false, json!([]), script, Some("allow_elements")),
            // Sockets lead to hosts and to other programs, which the kernel does not tell apart.
            (true, json!(["localhost"]), script, Some("allow_elements")),
            // The options of a library name files, which it does.
            (true, json!(["*"]), file, None),
            (
                true,
                json!(["localhost"]),
                "udpsink host=198.51.100.7",
                Some("network_targets"),
            ),
            (
                true,
                json!(["localhost"]),
                "teletextdec subtitles-template=%n ! fakesink",
                Some("allow_elements"),
            ),
            (
                true,
                json!(["localhost"]),
                "hlsdemux ! fakesink",
                Some("allow_elements"),
            ),
            (true, json!([]), "hlsdemux ! fakesink", None),
            (
                true,
                json!([]),
                "ipcpipelinesrc fdin=3 ! fakesink",
                Some("allow_elements"),
            ),
            // A named file or device is refused with an explanation before a pipeline runs; a descriptor is open
            // already.
            (
                true,
                json!([]),
                "filesrc location=/etc/passwd ! fakesink",
                Some("read_roots"),
            ),
            (
                true,
                json!([]),
                "v4l2src device=/dev/sda ! fakesink",
                Some("devices"),
            ),
            (true, json!([]), "udpsink host=127.0.0.1", Some("network_targets")),
            (true, json!([]), "fdsrc fd=0 ! fakesink", Some("allow_elements")),
        ] {
            let first = description.split(' ').next().unwrap();
            if gst::ElementFactory::find(first).is_none() {
                continue;
            }
            let written = json!({"state_dir": dir.path(), "network_targets": targets});
            let config = Config::check(serde_json::from_value(written).unwrap()).unwrap();
            let policy = Policy::new(&config, confined).unwrap();
            let refused = policy
                .check_description(description)
                .err()
                .map(|refusal| refusal.key);
            assert_eq!(refused, expected, "{confined} {targets}: {description}");
        }
    }

    #[test]
    fn most_elements_of_a_machine_are_allowed_as_they_are() {
        gst::init().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let written = serde_json::from_value(serde_json::json!({"state_dir": dir.path()})).unwrap();
        let policy = Policy::new(&Config::check(written).unwrap(), false).unwrap();
        let features = gst::Registry::get().features(gst::ElementFactory::static_type());
        let denied: Vec<(String, &str)> = features
            .iter()
            .filter_map(|feature| Some((feature.name().to_string(), refused(&policy, &feature.name())?)))
            .collect();
        assert!(
            denied.len() * 20 < features.len(),
            "{} of {}: {denied:?}",
            denied.len(),
            features.len()
        );
        for (name, expected) in [
            ("x264enc", None),
            ("mp4mux", None),
            ("splitmuxsink", None),
            ("webrtcbin", None),
            ("srtsink", None),
            ("rtspsrc", None),
            ("playbin", None),
            ("pcapparse", None),
            ("v4l2src", None),
            ("udpsrc", Some("network_targets")),
            ("multifilesink", Some("write_roots")),
            ("fdsrc", Some("allow_elements")),
            ("hlsdemux", Some("allow_elements")),
            ("avmux_mp4", None),
            ("avmux_hls", Some("allow_elements")),
            ("avmux_dash", Some("allow_elements")),
            ("avmux_hds", Some("allow_elements")),
            ("avmux_smoothstreaming", Some("allow_elements")),
            ("avmux_rtsp", Some("allow_elements")),
            ("avmux_sap", Some("allow_elements")),
            ("avmux_adts", None),
            ("cdparanoiasrc", Some("devices")),
        ] {
            if gst::ElementFactory::find(name).is_some() {
                assert_eq!(refused(&policy, name), expected, "{name}");
            }
        }
    }
}
