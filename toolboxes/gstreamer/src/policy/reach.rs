//! Cache of what the elements of a factory can access.
//!
//! The properties of a class, their kinds and an element's role do not change while its plugin is loaded, and a
//! pipeline has hundreds of properties. Values are not cached. Cleared when GStreamer's registry changes. Read
//! [`Reaches::of`].

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use gst::glib;
use gst::prelude::*;

use super::kind::{self, Kind, Role};

/// What the elements of one factory can access.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) role: Role,
    /// The properties that give access in an unknown way, whatever their values.
    pub(super) always: Vec<(String, Kind)>,
    /// The properties to check, in the order of the class.
    pub(super) properties: Vec<Property>,
}

/// A property to check.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) spec: glib::ParamSpec,
    pub(super) kind: Kind,
    /// Whether it enables redirects.
    pub(super) redirects: bool,
}

impl Reach {
    /// Reads the class of an element; a class that is not loaded has no properties.
    pub(super) fn read(class: glib::Type, role: Role) -> Self {
        let specs = glib::Class::<glib::Object>::from_type(class)
            .map_or_else(Vec::new, |class| class.list_properties().to_vec());
        let always = specs.iter().filter_map(|spec| {
            let kind = reaches_always(spec, role)?;
            Some((spec.name().to_owned(), kind))
        });
        Self {
            role,
            always: always.collect(),
            properties: specs
                .into_iter()
                .map(|spec| Property {
                    kind: kind::of_property(&spec, role),
                    redirects: says_redirects(&spec, role),
                    spec,
                })
                .filter(|property| property.kind != Kind::Harmless || property.redirects)
                .collect(),
        }
    }
}

fn reaches_always(spec: &glib::ParamSpec, role: Role) -> Option<Kind> {
    let kind = kind::of_property(spec, role);
    let always = match kind {
        Kind::Unknown => true,
        // Without a number for "none" a descriptor is always set.
        Kind::Descriptor => spec
            .downcast_ref::<glib::ParamSpecInt>()
            .is_some_and(|spec| spec.minimum() >= 0),
        _ => false,
    };
    always.then_some(kind)
}

/// Whether a property enables redirects.
pub(super) fn says_redirects(spec: &glib::ParamSpec, role: Role) -> bool {
    role == Role::Source
        && spec.name().contains("redirect")
        && spec.value_type() == glib::Type::BOOL
        && spec.flags().contains(glib::ParamFlags::READWRITE)
}

/// The cached results.
#[derive(Debug, Default)]
pub(super) struct Reaches {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// GStreamer's counter of registry changes.
    cookie: u32,
    of: HashMap<(glib::Type, glib::GString), Arc<Reach>>,
}

impl Reaches {
    /// What the elements of a factory with this class can access.
    pub(super) fn of(&self, factory: &gst::ElementFactory, class: glib::Type) -> Arc<Reach> {
        let cookie = gst::Registry::get().feature_list_cookie();
        let key = (class, factory.name());
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.cookie == cookie
                && let Some(reach) = known.of.get(&key)
            {
                return Arc::clone(reach);
            }
        }
        let reach = Arc::new(Reach::read(class, Role::of(factory)));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.cookie != cookie {
            *known = Known {
                cookie,
                ..Known::default()
            };
        }
        known.of.insert(key, Arc::clone(&reach));
        reach
    }

    /// What an element can access.
    pub(super) fn of_element(&self, element: &gst::Element) -> Arc<Reach> {
        match element.factory() {
            Some(factory) => self.of(&factory, element.type_()),
            // An element without a factory is a part of another element; there are few of them.
            None => Arc::new(Reach::read(element.type_(), Role::Other)),
        }
    }
}
