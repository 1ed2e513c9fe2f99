//! Checks of property values by their kind.
//!
//! Converts values of any type to texts, and checks texts against folders, targets and devices. Read
//! [`Policy::check_value`].

use std::path::PathBuf;

use gst::glib;
use gst::prelude::*;

use super::kind::{self, Access, Kind, Role};
use super::reach::Property;
use super::{Address, MOST_NESTED, Policy, Uses, Wrong, address, port_of};

impl Policy {
    /// Checks the present value of one property.
    pub(super) fn examine_one(
        &self,
        element: &gst::Element,
        property: &Property,
        role: Role,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        if property.redirects {
            harden(element, &property.spec);
        }
        let (property, kind) = (&property.spec, property.kind);
        if kind == Kind::Harmless {
            return Ok(());
        }
        let factory = element.factory().map(|factory| factory.name());
        let factory = factory.as_ref().map_or("", |name| name.as_str());
        if !property.flags().contains(glib::ParamFlags::READABLE) {
            if (self.sealed && kind != Kind::Descriptor)
                || self.allowed.contains(factory)
                || matches!(kind, Kind::Text | Kind::Composite | Kind::Options)
            {
                return Ok(());
            }
            return Err(Wrong::new(
                "what it was set to cannot be read back",
                "allow_elements",
            ));
        }
        if self.trusts(factory, kind) {
            return Ok(());
        }
        let value = element.property_value(property.name());
        if is_default_scratch(property, &value, kind, role) {
            self.relocate(element, property, &value);
            return Ok(());
        }
        if kind == Kind::DeviceNumber {
            return self.check_number(element, &value, uses);
        }
        let port = port_of(element, property.name());
        self.check_value(kind, role, &value, port, depth, uses)?;
        if kind == Kind::Device && role == Role::Sink {
            // A sound card can play and record at the same time, for two pipelines.
            uses.devices = std::mem::take(&mut uses.devices)
                .into_iter()
                .map(|device| {
                    if device.starts_with("hw:") && !device.ends_with("(playback)") {
                        format!("{device} (playback)")
                    } else {
                        device
                    }
                })
                .collect();
        }
        Ok(())
    }

    /// Checks a value and records what it uses.
    pub(super) fn check_value(
        &self,
        kind: Kind,
        role: Role,
        value: &glib::Value,
        port: Option<u16>,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        if depth > MOST_NESTED {
            return Err(too_deep());
        }
        if kind == Kind::Harmless {
            return Ok(());
        }
        if let Ok(element) = value.get::<Option<gst::Element>>() {
            return match element {
                Some(element) => self.examine_tree(&element, depth + 1, uses).map_err(Wrong::from),
                None => Ok(()),
            };
        }
        // Not as a string: elements may hold data that is not UTF-8, which panics.
        if let Ok(text) = value.get::<Option<PathBuf>>() {
            return text.map_or(Ok(()), |text| match text.to_str() {
                Some(text) => self.check_words(kind, role, text, port, depth, uses),
                None => Err(Wrong::new("its value is not text in UTF-8", "allow_elements")),
            });
        }
        if let Ok(texts) = value.get::<Vec<String>>() {
            return texts
                .iter()
                .try_for_each(|text| self.check_words(kind, role, text, port, depth, uses));
        }
        if let Ok(structure) = value.get::<Option<gst::Structure>>() {
            return structure.map_or(Ok(()), |structure| {
                self.check_structure(&structure, role, depth + 1, uses)
            });
        }
        if let Ok(list) = value.get::<gst::Array>() {
            return list
                .as_slice()
                .iter()
                .try_for_each(|value| self.check_value(kind, role, value, port, depth + 1, uses));
        }
        if kind == Kind::Descriptor {
            return match number(value) {
                Some(number) if number < 0 => Ok(()),
                _ => Err(Wrong::new(
                    "it uses an open file of the service by its number",
                    "allow_elements",
                )),
            };
        }
        if !is_set(value) {
            return Ok(());
        }
        match value.serialize() {
            Ok(text) => self.check_words(kind, role, &text, port, depth, uses),
            Err(_) if kind == Kind::Unknown => Err(not_understood()),
            Err(_) => Ok(()),
        }
    }

    /// Checks a text according to its kind.
    pub(super) fn check_words(
        &self,
        kind: Kind,
        role: Role,
        text: &str,
        port: Option<u16>,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        // For a network source or sink an empty address means every interface; elsewhere it means none.
        let everywhere = kind == Kind::Host && matches!(role, Role::Source | Role::Sink);
        if text.is_empty() && !everywhere {
            return Ok(());
        }
        if depth > MOST_NESTED {
            return Err(too_deep());
        }
        match kind {
            Kind::Harmless => Ok(()),
            Kind::Path(access) | Kind::Uri(access) if address::is_address(text) => {
                self.check_address(text, access, depth, uses)
            }
            Kind::Path(access) => self.check_path(text, access, uses),
            Kind::Uri(access) if text.starts_with(['/', '.', '~']) => self.check_path(text, access, uses),
            Kind::Uri(_) => self.check_peers(text),
            Kind::Host => self.check_host(text, port),
            Kind::Peers => text.split(',').try_for_each(|peer| self.check_peers(peer.trim())),
            Kind::Device if text.contains("://") => self.check_address(text, Access::Both, depth, uses),
            Kind::Device => {
                let name = self
                    .devices
                    .check(text)
                    .map_err(|reason| Wrong::new(reason, "devices"))?;
                if is_exclusive(&name) {
                    uses.devices.insert(name);
                }
                Ok(())
            }
            Kind::DeviceNumber | Kind::Unknown => Err(not_understood()),
            Kind::Descriptor => match text.trim().parse::<i64>() {
                Ok(number) if number < 0 => Ok(()),
                _ => Err(Wrong::new(
                    "it uses an open file of the service by its number",
                    "allow_elements",
                )),
            },
            Kind::Element => self.check_text(text, depth + 1).map_err(Wrong::from),
            Kind::Factory => match gst::ElementFactory::find(text) {
                Some(factory) => self.check_factory_and_kind(&factory).map_err(|wrong| {
                    let mut wrong = wrong;
                    wrong.element.get_or_insert_with(|| factory.name().to_string());
                    wrong
                }),
                None => Ok(()),
            },
            Kind::Composite => self.check_composite(text, role, depth + 1, uses),
            Kind::Options => self.check_options(text),
            Kind::Text => self.check_free(text, depth + 1, uses),
        }
    }

    fn check_path(&self, text: &str, access: Access, uses: &mut Uses) -> Result<(), Wrong> {
        let path = self.roots.check(text, access)?;
        if matches!(access, Access::Write | Access::Both) && !path.starts_with(self.roots.scratch()) {
            uses.writes.insert(path);
        }
        Ok(())
    }

    pub(super) fn check_address(
        &self,
        text: &str,
        access: Access,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        let read = address::read(text).map_err(|reason| Wrong::new(reason, "network_targets"))?;
        match read {
            Address::Inline => Ok(()),
            Address::File(path) => self.check_path(&path, access, uses),
            Address::Device(path) => self.check_words(Kind::Device, Role::Other, &path, None, depth, uses),
            Address::Remote { host, port, query } => {
                self.check_host(&host, port)?;
                query.iter().try_for_each(|(key, value)| {
                    let kind = kind::of_name(key, Role::Other);
                    self.check_words(kind, Role::Other, value, None, depth + 1, uses)
                })
            }
        }
    }

    fn check_host(&self, host: &str, port: Option<u16>) -> Result<(), Wrong> {
        self.targets
            .check(host, port)
            .map_err(|reason| Wrong::new(reason, "network_targets"))
    }

    fn check_peers(&self, text: &str) -> Result<(), Wrong> {
        let (host, port) = super::network::authority(text)
            .ok_or_else(|| Wrong::new(format!("{text:?} is not host:port"), "network_targets"))?;
        self.check_host(&host, port)
    }

    fn check_structure(
        &self,
        structure: &gst::StructureRef,
        role: Role,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        for (name, value) in structure {
            let kind = match kind::of_name(name, role) {
                // Here it is a codec's profile, not a file.
                Kind::Path(_) if name == "profile" => Kind::Text,
                kind => kind,
            };
            if number(value).is_some() && kind != Kind::Descriptor {
                continue;
            }
            self.check_value(kind, role, value, None, depth, uses)
                .map_err(|wrong| Wrong {
                    reason: format!("`{name}`: {}", wrong.reason),
                    ..wrong
                })?;
        }
        Ok(())
    }

    fn check_number(
        &self,
        element: &gst::Element,
        value: &glib::Value,
        uses: &mut Uses,
    ) -> Result<(), Wrong> {
        let Some(number) = number(value).filter(|number| *number >= 0) else {
            return Ok(());
        };
        let driver = element.factory().and_then(|factory| factory.plugin());
        let driver = driver.map_or_else(|| "unknown".to_owned(), |plugin| plugin.plugin_name().to_string());
        let name = self
            .devices
            .check(&format!("{driver}:{number}"))
            .map_err(|reason| Wrong::new(reason, "devices"))?;
        uses.devices.insert(name);
        Ok(())
    }

    fn relocate(&self, element: &gst::Element, property: &glib::ParamSpec, value: &glib::Value) {
        let Ok(Some(name)) = value.get::<Option<PathBuf>>() else {
            return;
        };
        let name = name.file_name().unwrap_or_default();
        let path = self.roots.scratch().join(name);
        element.set_property(property.name(), path.display().to_string());
    }
}

/// Switches redirects off, because the server decides where they lead.
fn harden(element: &gst::Element, redirects: &glib::ParamSpec) {
    if element.property::<bool>(redirects.name()) {
        element.set_property(redirects.name(), false);
    }
}

/// Whether it is a codec's default file name without a folder.
fn is_default_scratch(property: &glib::ParamSpec, value: &glib::Value, kind: Kind, role: Role) -> bool {
    let Kind::Path(_) = kind else { return false };
    let path = |value: &glib::Value| value.get::<Option<PathBuf>>().ok().flatten();
    let now = path(value).unwrap_or_default();
    let default = path(property.default_value()).unwrap_or_default();
    let own = now == default && !now.to_string_lossy().contains('/');
    // A name in the description was checked as text; this one is from the element itself.
    let temporary = now.parent() == Some(&std::env::temp_dir()) && default.as_os_str().is_empty();
    matches!(role, Role::Other) && !now.as_os_str().is_empty() && (own || temporary)
}

/// Whether only one pipeline at a time can use a device.
fn is_exclusive(device: &str) -> bool {
    let shared = ["/dev/dri/", "/dev/fb"];
    (device.starts_with("/dev/") && !shared.iter().any(|prefix| device.starts_with(prefix)))
        || device.starts_with("hw:")
}

fn number(value: &glib::Value) -> Option<i64> {
    value
        .get::<i32>()
        .map(i64::from)
        .or_else(|_| value.get::<u32>().map(i64::from))
        .or_else(|_| value.get::<i64>())
        .or_else(|_| {
            value
                .get::<u64>()
                .map(|number| i64::try_from(number).unwrap_or(i64::MAX))
        })
        .ok()
}

/// Whether a boxed value or an object is set.
fn is_set(value: &glib::Value) -> bool {
    let kind = value.type_();
    if kind.is_a(glib::Type::OBJECT) {
        return value
            .get::<Option<glib::Object>>()
            .is_ok_and(|object| object.is_some());
    }
    true
}

pub(super) fn not_understood() -> Wrong {
    Wrong::new(
        "it reaches outside of the pipeline in a way that is not understood",
        "allow_elements",
    )
}

fn too_deep() -> Wrong {
    Wrong::new(
        format!("descriptions are nested more than {MOST_NESTED} deep"),
        "max_pipeline_length",
    )
}
