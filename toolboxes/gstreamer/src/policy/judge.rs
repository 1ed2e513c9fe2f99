//! Checks of values by their kind.
//!
//! Some elements open a file or look up a host (`udpsink`) as soon as a property is set, so a description is judged before anything is
//! made from it. Then the values of the elements that were made from it are judged. Read [`Policy::check_text`] and [`Policy::examine_one`].

use std::path::PathBuf;

use gst::glib;
use gst::prelude::*;

use super::access::{self, Access, Kind, Role};
use super::address::{self, Address};
use super::allowed::{MOST_NESTED, Policy};
use super::element::{factory_name, port_of};
use super::refusal::Refusal;
use super::site::Site;
use crate::description::{Description, ElementText};
use crate::uses::Uses;

impl Policy {
    /// Checks the text of a description.
    pub(super) fn check_text(&self, text: &str, depth: usize) -> Result<(), Refusal> {
        if depth > MOST_NESTED {
            return Err(too_deep().on("pipeline", None));
        }
        let elements = Description::read(text).elements;
        elements
            .iter()
            .try_for_each(|element| self.check_element_text(element, depth))
    }

    fn check_element_text(&self, element: &ElementText, depth: usize) -> Result<(), Refusal> {
        let name = element.factory.as_str();
        let unknown = Site {
            role: Role::Unknown,
            port: None,
            allowed: false,
            depth,
        };
        if element.is_address {
            let checked = self.judge_text(Kind::File(None), unknown, name, &mut Uses::default());
            return checked.map_err(|refusal| refusal.on(name, None));
        }
        // The parser makes no element without its factory.
        let Some(factory) = gst::ElementFactory::find(name).and_then(|factory| factory.load().ok()) else {
            return Ok(());
        };
        self.check_factory(&factory)
            .map_err(|refusal| refusal.on(name, None))?;
        let class = glib::Class::<glib::Object>::from_type(factory.element_type());
        let site = Site {
            role: Role::of(&factory),
            allowed: self.allowed.contains(name),
            ..unknown
        };
        for property in &element.properties {
            let spec = class
                .as_ref()
                .and_then(|class| class.find_property(&property.name));
            let kind = match (spec, property.name.rsplit_once("::")) {
                (Some(spec), _) => access::of_property(&spec),
                // A property of a child that does not exist yet; a plain word is judged when it is set.
                (None, Some((_, last))) => match access::of_name(last) {
                    Kind::Unlisted if is_plain(&property.value) => Kind::Nothing,
                    kind => kind,
                },
                // The parser reports it.
                (None, None) => Kind::Nothing,
            };
            self.judge_text(kind, site, &property.value, &mut Uses::default())
                .map_err(|refusal| refusal.on(name, Some(&property.name)))?;
        }
        Ok(())
    }

    /// Checks the present value of one property.
    pub(super) fn examine_one(
        &self,
        element: &gst::Element,
        property: &glib::ParamSpec,
        role: Role,
        depth: usize,
        uses: &mut Uses,
    ) -> Result<(), Refusal> {
        let kind = access::of_property(property);
        if kind == Kind::Redirect {
            switch_off_redirects(element, property);
        }
        let site = Site {
            role,
            port: None,
            allowed: self.allowed.contains(&factory_name(element)),
            depth,
        };
        if self.needs_no_check(kind, site) {
            return Ok(());
        }
        if !property.flags().contains(glib::ParamFlags::READABLE) {
            // The text of the description was checked.
            if site.allowed || self.sealed || matches!(kind, Kind::Unlisted | Kind::Pairs | Kind::Files) {
                return Ok(());
            }
            return Err(Refusal::new(
                "its value cannot be read back and checked",
                "allow_elements",
            ));
        }
        let value = element.property_value(property.name());
        // A property that takes no negative number, which would mean none, always has a descriptor.
        let least = property
            .downcast_ref::<glib::ParamSpecInt>()
            .map(glib::ParamSpecInt::minimum);
        if kind == Kind::Descriptor && least.is_some_and(|least| least >= 0) {
            return Err(open_descriptor());
        }
        if kind == Kind::Unlisted && text_of(&value) == text_of(property.default_value()) {
            return Ok(());
        }
        if is_own_scratch(property, &value, kind, role) {
            return Ok(());
        }
        if kind == Kind::DeviceNumber {
            return self.check_number(element, role, &value, uses);
        }
        let port = port_of(element, property.name());
        self.judge_value(kind, Site { port, ..site }, &value, uses)?;
        if kind == Kind::Device && role == Role::Sink {
            // A sound card can play and record at the same time, for two pipelines.
            let for_playback = |device: String| {
                let bare = device.starts_with("hw:") && !device.ends_with("(playback)");
                if bare {
                    format!("{device} (playback)")
                } else {
                    device
                }
            };
            uses.devices = std::mem::take(&mut uses.devices)
                .into_iter()
                .map(for_playback)
                .collect();
        }
        Ok(())
    }

    /// Checks a value and records what it uses.
    pub(super) fn judge_value(
        &self,
        kind: Kind,
        site: Site,
        value: &glib::Value,
        uses: &mut Uses,
    ) -> Result<(), Refusal> {
        if self.needs_no_check(kind, site) {
            return Ok(());
        }
        if let Ok(element) = value.get::<Option<gst::Element>>() {
            return element.map_or(Ok(()), |element| {
                self.examine_tree(&element, site.depth + 1, uses)
            });
        }
        // Not as a string: elements may hold data that is not UTF-8, which panics.
        if let Ok(text) = value.get::<Option<PathBuf>>() {
            return text.map_or(Ok(()), |text| match text.to_str() {
                Some(text) => self.judge_text(kind, site, text, uses),
                None => Err(Refusal::new("its value is not text in UTF-8", "allow_elements")),
            });
        }
        if let Ok(texts) = value.get::<Vec<String>>() {
            return texts
                .iter()
                .try_for_each(|text| self.judge_text(kind, site, text, uses));
        }
        if let Some(number) = number(value) {
            return self.judge_text(kind, site, &number.to_string(), uses);
        }
        let unset = value
            .get::<Option<gst::Structure>>()
            .is_ok_and(|structure| structure.is_none())
            || value
                .get::<Option<glib::Object>>()
                .is_ok_and(|object| object.is_none());
        if unset {
            return Ok(());
        }
        match value.serialize() {
            Ok(text) => self.judge_text(kind, site, &text, uses),
            Err(_) => Ok(()),
        }
    }

    /// Whether a value needs no check. A descriptor needs one even in a confined process: it is open already, so the kernel does not
    /// check it.
    fn needs_no_check(&self, kind: Kind, site: Site) -> bool {
        match kind {
            Kind::Nothing | Kind::Redirect => true,
            Kind::Unlisted => self.sealed,
            Kind::Pairs => self.sealed || site.allowed,
            Kind::Files => self.confined || site.allowed,
            Kind::Descriptor => site.allowed,
            _ => false,
        }
    }

    /// Checks a text according to its kind.
    fn judge_text(&self, kind: Kind, site: Site, text: &str, uses: &mut Uses) -> Result<(), Refusal> {
        // For a network source or sink an empty address means every interface; elsewhere it means none.
        let everywhere = kind == Kind::Host && matches!(site.role, Role::Source | Role::Sink);
        if self.needs_no_check(kind, site) || (text.is_empty() && !everywhere) {
            return Ok(());
        }
        if site.depth > MOST_NESTED {
            return Err(too_deep());
        }
        match kind {
            Kind::Nothing | Kind::Redirect | Kind::DeviceNumber => Ok(()),
            Kind::File(access) | Kind::Uri(access) => {
                let access = access.unwrap_or_else(|| site.role.access());
                let is_path = matches!(kind, Kind::File(_)) || text.starts_with(['/', '.', '~']);
                match is_path {
                    _ if address::is_address(text) => self.check_address(text, access, site, uses),
                    true => self.check_path(text, access, uses),
                    false => self.check_peer(text),
                }
            }
            Kind::Host => self.targets.check(text, site.port),
            Kind::Peers => text.split(',').try_for_each(|peer| self.check_peer(peer.trim())),
            Kind::Device if text.contains("://") => self.check_address(text, Access::Both, site, uses),
            Kind::Device => {
                let name = self.devices.check(text)?;
                if is_exclusive(&name) {
                    uses.devices.insert(name);
                }
                Ok(())
            }
            Kind::Descriptor if text.trim().parse::<i64>().is_ok_and(|number| number < 0) => Ok(()),
            Kind::Descriptor => Err(open_descriptor()),
            Kind::Description => self.check_text(text, site.depth + 1),
            Kind::Factory => gst::ElementFactory::find(text).map_or(Ok(()), |factory| {
                self.check_factory(&factory)
                    .map_err(|refusal| refusal.on(text, None))
            }),
            Kind::Pairs => self.check_words(text, site, uses),
            Kind::Files => Err(Refusal::new(
                "it can open files, and nothing confines the pipeline to its folders",
                "allow_elements",
            )),
            Kind::Unlisted if site.allowed => self.check_words(text, site, uses),
            Kind::Unlisted => Err(Refusal::new(
                "it is not known which files or hosts this value gives access to",
                "allow_elements",
            )),
        }
    }

    fn check_path(&self, text: &str, access: Access, uses: &mut Uses) -> Result<(), Refusal> {
        let path = self.roots.check(text, access)?;
        if matches!(access, Access::Write | Access::Both) {
            uses.writes.insert(path);
        }
        Ok(())
    }

    fn check_address(&self, text: &str, access: Access, site: Site, uses: &mut Uses) -> Result<(), Refusal> {
        match address::read(text).map_err(|reason| Refusal::new(reason, "network_targets"))? {
            Address::Inline => Ok(()),
            Address::File(path) => self.check_path(&path, access, uses),
            Address::Device(path) => self.judge_text(Kind::Device, site.inside(), &path, uses),
            // What an element takes from the query is a property of its own, which is judged as such.
            Address::Remote { host, port } => self.targets.check(&host, port),
        }
    }

    fn check_peer(&self, text: &str) -> Result<(), Refusal> {
        let (host, port) = super::network::authority(text)
            .ok_or_else(|| Refusal::new(format!("{text:?} is not host:port"), "network_targets"))?;
        self.targets.check(&host, port)
    }

    /// Checks a text for another component, such as a structure or an encoding profile: every word that could be a path or
    /// an address must be allowed, and one of them has to follow the name of a property that gives access.
    fn check_words(&self, text: &str, site: Site, uses: &mut Uses) -> Result<(), Refusal> {
        let ends = |c: char| c.is_whitespace() || c.is_control() || ",;|\"'=(){}[]<>\\".contains(c);
        let mut about = None;
        // GStreamer may state a type: `location=(string)/x`. The empty word at the end is for a name that nothing follows.
        let words = text
            .split(ends)
            .filter(|word| !word.is_empty() && *word != "string");
        for word in words.chain([""]) {
            if word.starts_with(['/', '~']) || word.split('/').any(|part| part == ".." || part == ".") {
                self.roots.check(word, Access::Both)?;
                about = None;
            } else if word.contains("://") || address::is_address(word) {
                self.check_address(word, Access::Both, site.inside(), uses)?;
                about = None;
            } else if let Some(name) = about {
                let why = format!("it sets `{name}` of another element, whose access cannot be checked");
                return Err(Refusal::new(why, "allow_elements"));
            } else {
                let plain = matches!(
                    access::of_name(word),
                    Kind::Nothing | Kind::Unlisted | Kind::Pairs
                );
                about = (!plain).then_some(word);
            }
        }
        Ok(())
    }

    fn check_number(
        &self,
        element: &gst::Element,
        role: Role,
        value: &glib::Value,
        uses: &mut Uses,
    ) -> Result<(), Refusal> {
        // The device of a codec or filter is the processor that it runs on.
        let selects = matches!(role, Role::Source | Role::Sink | Role::Player);
        let Some(number) = number(value).filter(|number| selects && *number >= 0) else {
            return Ok(());
        };
        let driver = element.factory().and_then(|factory| factory.plugin());
        let driver = driver.map_or_else(|| "unknown".to_owned(), |plugin| plugin.plugin_name().to_string());
        uses.devices
            .insert(self.devices.check(&format!("{driver}:{number}"))?);
        Ok(())
    }
}

/// A number, a truth value, or a word of an enumeration.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-_".contains(&byte))
        || text.parse::<f64>().is_ok()
}

/// Switches redirects off, because a server decides where they lead.
fn switch_off_redirects(element: &gst::Element, redirects: &glib::ParamSpec) {
    if element.property::<bool>(redirects.name()) {
        element.set_property(redirects.name(), false);
    }
}

fn text_of(value: &glib::Value) -> Option<PathBuf> {
    value.get::<Option<PathBuf>>().ok().flatten()
}

/// Whether a value is the default file name of a codec. Without a folder such a file is in the scratch folder, the working
/// directory of the process, so it does no harm.
fn is_own_scratch(property: &glib::ParamSpec, value: &glib::Value, kind: Kind, role: Role) -> bool {
    let Kind::File(_) = kind else { return false };
    let now = text_of(value).unwrap_or_default();
    let default = text_of(property.default_value()).unwrap_or_default();
    let own = now == default && !now.to_string_lossy().contains('/');
    // A name in the description was checked as text; this one is from the element itself.
    let temporary = now.parent() == Some(&std::env::temp_dir()) && default.as_os_str().is_empty();
    role == Role::Other && !now.as_os_str().is_empty() && (own || temporary)
}

/// Whether only one pipeline at a time can use a device.
fn is_exclusive(device: &str) -> bool {
    let shared = ["/dev/dri/", "/dev/fb"];
    (device.starts_with("/dev/") && !shared.iter().any(|prefix| device.starts_with(prefix)))
        || device.starts_with("hw:")
}

fn number(value: &glib::Value) -> Option<i64> {
    let wide = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let narrow = value
        .get::<i32>()
        .map(i64::from)
        .or_else(|_| value.get::<u32>().map(i64::from));
    let number = narrow.or_else(|_| value.get::<i64>());
    number.or_else(|_| value.get::<u64>().map(wide)).ok()
}

fn open_descriptor() -> Refusal {
    Refusal::new("it uses an open file descriptor of the service", "allow_elements")
}

fn too_deep() -> Refusal {
    Refusal::new(
        format!("descriptions are nested more than {MOST_NESTED} deep"),
        "max_pipeline_length",
    )
}
