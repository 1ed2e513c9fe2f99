//! One element: its factory, pads and properties.

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;
use serde_json::Map;

use super::error::CatalogError;
use super::plugin::{self, PluginInfo};
use super::property::{self, Property};

/// All about an element.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ElementInfo {
    /// The name that is used in a pipeline.
    pub(crate) element: String,
    /// Its long name.
    pub(crate) name: String,
    /// What it is for, in the words of its plugin.
    pub(crate) description: String,
    /// Its class, such as `Codec/Encoder/Video`.
    pub(crate) class: String,
    /// Who wrote it.
    pub(crate) author: String,
    /// How readily it is chosen automatically.
    pub(crate) rank: i32,
    /// The rank in words, such as `primary` or `secondary + 1`.
    pub(crate) rank_name: String,
    /// Whether its plugin says that it should not be used any more.
    pub(crate) deprecated: bool,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<PluginInfo>,
    /// Its type and the types that is derived from, itself last.
    pub(crate) hierarchy: Vec<String>,
    /// What else it can do.
    pub(crate) interfaces: Vec<String>,
    /// `source` or `sink`, when it handles addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uri_type: Option<&'static str>,
    /// The schemes of the addresses it handles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) uri_protocols: Vec<String>,
    /// The pads it can have.
    pub(crate) pad_templates: Vec<PadTemplate>,
    /// The pads a new one has.
    pub(crate) pads: Vec<Pad>,
    /// Its properties, by name.
    #[schemars(with = "std::collections::BTreeMap<String, Property>")]
    pub(crate) properties: Map<String, Value>,
}

/// A pad that an element can have.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct PadTemplate {
    /// Its name; `%u` and the like stand for a number.
    pub(crate) name: String,
    /// `src` or `sink`.
    pub(crate) direction: &'static str,
    /// `always`, `sometimes` or `request`.
    pub(crate) presence: &'static str,
    /// What may pass: alternatives in GStreamer's own notation, or `ANY`.
    pub(crate) caps: Vec<String>,
}

/// A pad of a new element.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Pad {
    /// Its name.
    pub(crate) name: String,
    /// `src` or `sink`.
    pub(crate) direction: &'static str,
    /// The template it was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<String>,
}

/// Reads an element's data; makes one element, in NULL state.
pub(super) fn read(name: &str) -> Result<ElementInfo, CatalogError> {
    let factory = gst::ElementFactory::find(name).ok_or_else(|| CatalogError::Unknown(name.to_owned()))?;
    let element = factory.create().build().map_err(|error| CatalogError::Broken {
        name: name.to_owned(),
        reason: error.to_string(),
    })?;
    let mut specs: Vec<gst::glib::ParamSpec> = element.list_properties().iter().cloned().collect();
    specs.sort_by(|a, b| a.name().cmp(b.name()));
    let properties = specs
        .iter()
        .filter_map(|spec| {
            let mut property = property::read(&element, spec);
            if spec.name() == "name" {
                // The default name ends in a count of the elements made in this process.
                let name = element.name();
                property.default = json!(format!(
                    "{}0",
                    name.trim_end_matches(|letter: char| letter.is_ascii_digit())
                ));
            }
            let property = serde_json::to_value(property).ok()?;
            Some((spec.name().to_owned(), property))
        })
        .collect();
    let rank = factory.rank();
    let protocols = factory.uri_protocols();
    Ok(ElementInfo {
        element: name.to_owned(),
        name: factory.longname().to_owned(),
        description: factory.description().to_owned(),
        class: factory.klass().to_owned(),
        author: factory.author().to_owned(),
        rank: rank.into(),
        rank_name: rank_name(rank),
        deprecated: is_deprecated(&factory),
        plugin: factory.plugin().map(|plugin| plugin::describe(&plugin)),
        hierarchy: hierarchy(element.type_()),
        interfaces: element
            .type_()
            .interfaces()
            .iter()
            .map(|of| of.name().to_owned())
            .collect(),
        uri_type: match factory.uri_type() {
            gst::URIType::Src => Some("source"),
            gst::URIType::Sink => Some("sink"),
            _ => None,
        },
        uri_protocols: protocols.iter().map(ToString::to_string).collect(),
        pad_templates: templates(&factory),
        pads: element.pads().iter().map(pad).collect(),
        properties,
    })
}

/// Whether a factory is deprecated. Plugins say so in the description: the registry has no flag for it.
pub(crate) fn is_deprecated(factory: &gst::ElementFactory) -> bool {
    let says = |text: &str| text.to_ascii_lowercase().contains("deprecated");
    says(factory.description()) || says(factory.longname())
}

pub(super) fn rank_name(rank: gst::Rank) -> String {
    let value = i32::from(rank);
    let named = [
        (gst::Rank::PRIMARY, "primary"),
        (gst::Rank::SECONDARY, "secondary"),
        (gst::Rank::MARGINAL, "marginal"),
        (gst::Rank::NONE, "none"),
    ];
    // Like gst-inspect-1.0: the nearest named rank and the distance from it.
    let nearest = named
        .iter()
        .min_by_key(|(named, _)| (value - i32::from(*named)).abs());
    match nearest {
        Some((named, name)) => match value - i32::from(*named) {
            0 => (*name).to_owned(),
            more if more > 0 => format!("{name} + {more}"),
            less => format!("{name} - {}", less.abs()),
        },
        None => value.to_string(),
    }
}

fn hierarchy(of: gst::glib::Type) -> Vec<String> {
    let mut types: Vec<String> = std::iter::successors(Some(of), |of| of.parent())
        .map(|of| of.name().to_owned())
        .collect();
    types.reverse();
    types
}

fn templates(factory: &gst::ElementFactory) -> Vec<PadTemplate> {
    let template = |template: gst::StaticPadTemplate| PadTemplate {
        name: template.name_template().to_owned(),
        direction: direction(template.direction()),
        presence: match template.presence() {
            gst::PadPresence::Always => "always",
            gst::PadPresence::Sometimes => "sometimes",
            gst::PadPresence::Request => "request",
        },
        caps: alternatives(&template.caps()),
    };
    factory.static_pad_templates().into_iter().map(template).collect()
}

fn pad(pad: &gst::Pad) -> Pad {
    Pad {
        name: pad.name().to_string(),
        direction: direction(pad.direction()),
        template: pad
            .pad_template()
            .map(|template| template.name_template().to_owned()),
    }
}

fn direction(direction: gst::PadDirection) -> &'static str {
    match direction {
        gst::PadDirection::Src => "src",
        gst::PadDirection::Sink => "sink",
        _ => "unknown",
    }
}

fn alternatives(caps: &gst::Caps) -> Vec<String> {
    if caps.is_any() {
        return vec!["ANY".to_owned()];
    }
    if caps.is_empty() {
        return vec!["EMPTY".to_owned()];
    }
    caps.iter_with_features()
        .map(|(structure, features)| {
            let one = gst::Caps::builder_full()
                .structure_with_features(structure.to_owned(), features.to_owned())
                .build();
            one.to_string()
        })
        .collect()
}
