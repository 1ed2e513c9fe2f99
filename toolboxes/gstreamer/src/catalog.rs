//! GStreamer's registry: the elements of this machine.
//!
//! Reads factories, properties, pads, encoders and plugins. Knows no element by name: all information comes from its
//! plugin. Makes elements to read their defaults, and leaves them in NULL state. Read [`Catalog`].

mod element;
mod encoder;
mod error;
mod plugin;
mod property;
mod search;
mod sheet;

use std::collections::HashMap;
use std::sync::Arc;

use gst::prelude::*;
use parking_lot::{Mutex, MutexGuard};

pub(crate) use element::is_deprecated;
pub(crate) use encoder::{Codec, Encoder, Media, bitrate_unit, field_values};
pub(crate) use error::CatalogError;

pub(crate) use property::{is_deprecated as is_deprecated_property, is_out_of_range, range, to_json};
pub(crate) use search::{Query, Rank, SearchResult};
pub(crate) use sheet::Sheet;

/// A cache of what was read. It is cleared when the installed plugins change.
#[derive(Default)]
pub(crate) struct Catalog {
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// GStreamer's counter of registry changes.
    cookie: u32,
    elements: HashMap<String, Arc<Sheet>>,
    custom: Option<Arc<Vec<String>>>,
}

impl Catalog {
    /// The data sheet of an element, if it is in the cache.
    pub(crate) fn known_element(&self, name: &str) -> Option<Arc<Sheet>> {
        self.current().elements.get(name).cloned()
    }

    /// The data sheet of an element. Blocks for some milliseconds the first time.
    ///
    /// # Errors
    /// No element has this name, or it cannot be made.
    pub(crate) fn element(&self, name: &str) -> Result<Arc<Sheet>, CatalogError> {
        if let Some(known) = self.known_element(name) {
            return Ok(known);
        }
        let before = self.current().cookie;
        // Without the lock: loading a plugin may take long.
        let sheet = Sheet::of(element::read(name)?).map_err(|error| CatalogError::Broken {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        let sheet = Arc::new(sheet);
        let mut read = self.current();
        // If the registry has changed meanwhile, the sheet may be outdated.
        if read.cookie == before {
            read.elements.insert(name.to_owned(), Arc::clone(&sheet));
        }
        Ok(sheet)
    }

    /// The plugins that are neither from GStreamer's own modules nor from the distribution. Blocks.
    pub(crate) fn custom_plugins(&self) -> Arc<Vec<String>> {
        if let Some(known) = &self.current().custom {
            return Arc::clone(known);
        }
        let custom = Arc::new(plugin::custom());
        self.current().custom = Some(Arc::clone(&custom));
        custom
    }

    /// The encoders that match, best first. Blocks.
    pub(crate) fn encoders(&self, codec: Codec, media: Option<Media>) -> Vec<(String, Encoder)> {
        let found = encoder::factories(codec, media);
        found
            .iter()
            .filter_map(|factory| self.described(factory))
            .collect()
    }

    /// The encoder with this name, if there is one. Blocks.
    pub(crate) fn encoder(&self, name: &str) -> Option<(String, Encoder)> {
        let all = encoder::factories(Codec::All, None);
        self.described(all.iter().find(|factory| factory.name() == name)?)
    }

    fn described(&self, factory: &gst::ElementFactory) -> Option<(String, Encoder)> {
        // An encoder that cannot be made cannot encode.
        let sheet = self.element(&factory.name()).ok()?;
        let encoder = encoder::describe(factory, &sheet.info, &self.custom_plugins());
        Some((sheet.info.element.clone(), encoder))
    }

    /// The names of all encoders, best first, without making any.
    #[expect(clippy::unused_self, reason = "asked of the catalog like the rest")]
    pub(crate) fn encoder_names(&self) -> Vec<String> {
        encoder::factories(Codec::All, None)
            .into_iter()
            .map(|factory| factory.name().to_string())
            .collect()
    }

    /// The elements that match a query.
    ///
    /// # Errors
    /// The query's caps are invalid.
    pub(crate) fn search(&self, query: &Query) -> Result<SearchResult, String> {
        search::search(query)
    }

    fn current(&self) -> MutexGuard<'_, Cache> {
        let cookie = gst::Registry::get().feature_list_cookie();
        let mut read = self.cache.lock();
        if read.cookie != cookie {
            *read = Cache {
                cookie,
                ..Cache::default()
            };
        }
        read
    }
}
