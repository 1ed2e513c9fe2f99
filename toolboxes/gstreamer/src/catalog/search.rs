//! The search for elements.

use std::str::FromStr;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

use super::element::{is_deprecated, rank_name};

/// A query; all given criteria have to match.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// Words in the name, long name, description, class or plugin.
    pub(crate) words: Vec<String>,
    /// Parts of the class.
    pub(crate) class: Vec<String>,
    /// Caps that one of its pads can pass.
    pub(crate) caps: Option<String>,
    /// The direction of that pad.
    pub(crate) direction: Option<gst::PadDirection>,
    /// The lowest rank.
    pub(crate) rank: Option<i32>,
    /// Greatest number of results.
    pub(crate) limit: usize,
}

/// How readily an element is chosen automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rank {
    // Never.
    None,
    // If nothing else is there.
    Marginal,
    // If nothing better is there.
    Secondary,
    // First.
    Primary,
}

impl Rank {
    /// GStreamer's number of the rank.
    pub(crate) fn value(self) -> i32 {
        match self {
            Self::None => gst::Rank::NONE.into(),
            Self::Marginal => gst::Rank::MARGINAL.into(),
            Self::Secondary => gst::Rank::SECONDARY.into(),
            Self::Primary => gst::Rank::PRIMARY.into(),
        }
    }
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub(crate) struct SearchResult {
    /// The best first.
    pub(crate) elements: Vec<Match>,
    /// How many fit, also those left out.
    pub(crate) total: usize,
}

/// An element that fits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Match {
    /// The name that is used in a pipeline.
    pub(crate) element: String,
    /// Its long name.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: String,
    /// Its class.
    pub(crate) class: String,
    /// How readily it is chosen automatically.
    pub(crate) rank: String,
    /// The plugin it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<String>,
    /// Whether it should not be used any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deprecated: bool,
}

/// Searches the registry.
///
/// # Errors
/// The caps are invalid.
pub(super) fn search(query: &Query) -> Result<SearchResult, String> {
    let caps = query
        .caps
        .as_deref()
        .map(|text| {
            gst::Caps::from_str(text).map_err(|_| {
                format!("`caps` is {text}: expected caps such as video/x-h264 or video/x-raw,format=NV12")
            })
        })
        .transpose()?;
    let lower = |words: &[String]| -> Vec<String> { words.iter().map(|word| word.to_lowercase()).collect() };
    let words = lower(&query.words);
    let class = lower(&query.class);
    let mut found: Vec<(u8, i32, gst::ElementFactory)> =
        gst::ElementFactory::factories_with_type(gst::ElementFactoryType::ANY, gst::Rank::NONE)
            .into_iter()
            .filter(|factory| query.rank.is_none_or(|rank| i32::from(factory.rank()) >= rank))
            .filter(|factory| {
                let own = factory.klass().to_lowercase();
                class.iter().all(|word| own.contains(word))
            })
            .filter(|factory| {
                caps.as_ref()
                    .is_none_or(|caps| passes(factory, caps, query.direction))
            })
            .filter_map(|factory| Some((closeness(&factory, &words)?, factory.rank().into(), factory)))
            .collect();
    found.sort_by_cached_key(|(closeness, rank, factory)| (*closeness, -rank, factory.name().to_string()));
    let total = found.len();
    found.truncate(query.limit);
    Ok(SearchResult {
        elements: found.iter().map(|(_, _, factory)| describe(factory)).collect(),
        total,
    })
}

/// The distance of a match: 0 if the name equals the words, more for weaker matches, `None` if a word is missing.
fn closeness(factory: &gst::ElementFactory, words: &[String]) -> Option<u8> {
    let name = factory.name().to_lowercase();
    if words.iter().all(|word| name == *word) {
        return Some(0);
    }
    if words.iter().all(|word| name.contains(word)) {
        return Some(1);
    }
    let long = factory.longname().to_lowercase();
    let plugin = factory.plugin_name().unwrap_or_default();
    let rest = format!("{} {} {plugin}", factory.description(), factory.klass()).to_lowercase();
    let starts = |text: &str, word: &String| {
        text.split(|letter: char| !letter.is_alphanumeric())
            .any(|part| part.starts_with(word.as_str()))
    };
    // "payload" should find a payloader rather than a depayloader.
    if words
        .iter()
        .all(|word| name.contains(word) || starts(&long, word))
    {
        return Some(2);
    }
    if words
        .iter()
        .all(|word| name.contains(word) || long.contains(word))
    {
        return Some(3);
    }
    words
        .iter()
        .all(|word| name.contains(word) || long.contains(word) || rest.contains(word))
        .then_some(4)
}

fn passes(factory: &gst::ElementFactory, caps: &gst::Caps, direction: Option<gst::PadDirection>) -> bool {
    factory.static_pad_templates().into_iter().any(|template| {
        let own = template.caps();
        // A pad that accepts any caps does not match.
        !own.is_any()
            && direction.is_none_or(|direction| template.direction() == direction)
            && own.can_intersect(caps)
    })
}

fn describe(factory: &gst::ElementFactory) -> Match {
    Match {
        element: factory.name().to_string(),
        name: factory.longname().to_owned(),
        description: factory.description().to_owned(),
        class: factory.klass().to_owned(),
        rank: rank_name(factory.rank()),
        plugin: factory.plugin_name().map(|name| name.to_string()),
        deprecated: is_deprecated(factory),
    }
}
