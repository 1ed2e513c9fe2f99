//! What the elements of a factory can reach, worked out once.
//!
//! Owns the memory of it: the properties of a class, their kinds and what an element is for never change while its plugin
//! is loaded, and there are hundreds in a pipeline. What a property says is never kept. Forgotten when GStreamer's
//! registry changes. Read [`Reaches::of`].

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use gst::glib;
use gst::prelude::*;

use super::kind::{self, Kind, Role};

/// What the elements of one factory can reach.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) role: Role,
    /// The first property that reaches out whatever it is set to, in a way that is not understood.
    pub(super) always: Option<String>,
    /// The properties that have to be looked at, in the order of the class.
    pub(super) properties: Vec<Property>,
}

/// A property that has to be looked at.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) spec: glib::ParamSpec,
    pub(super) kind: Kind,
    /// Whether it says that redirects are followed.
    pub(super) redirects: bool,
}

impl Reach {
    /// Reads the class of an element; one that is not loaded has nothing.
    pub(super) fn read(class: glib::Type, role: Role) -> Self {
        let specs = glib::Class::<glib::Object>::from_type(class)
            .map_or_else(Vec::new, |class| class.list_properties().to_vec());
        let always = specs.iter().find(|spec| reaches_always(spec, role));
        Self {
            role,
            always: always.map(|spec| spec.name().to_owned()),
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

fn reaches_always(spec: &glib::ParamSpec, role: Role) -> bool {
    match kind::of_property(spec, role) {
        Kind::Unknown => true,
        // Without a number for `none` there is always one, whatever the element says its value is.
        Kind::Descriptor => spec
            .downcast_ref::<glib::ParamSpecInt>()
            .is_some_and(|spec| spec.minimum() >= 0),
        _ => false,
    }
}

/// Whether a property says that redirects are followed.
pub(super) fn says_redirects(spec: &glib::ParamSpec, role: Role) -> bool {
    role == Role::Source
        && spec.name().contains("redirect")
        && spec.value_type() == glib::Type::BOOL
        && spec.flags().contains(glib::ParamFlags::READWRITE)
}

/// What was worked out so far.
#[derive(Debug, Default)]
pub(super) struct Reaches {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// GStreamer counts the changes of its registry.
    cookie: u32,
    of: HashMap<(glib::Type, glib::GString), Arc<Reach>>,
}

impl Reaches {
    /// What the elements of a factory can reach that have this class.
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

    /// What an element can reach.
    pub(super) fn of_element(&self, element: &gst::Element) -> Arc<Reach> {
        match element.factory() {
            Some(factory) => self.of(&factory, element.type_()),
            // Parts of other elements; they are few.
            None => Arc::new(Reach::read(element.type_(), Role::Other)),
        }
    }
}
