//! Elements.

use ovos_toolbox_sdk::prelude::*;

use crate::catalog::{Rank, SearchResult, Sheet};
use crate::judge::AnswerText;
use crate::question::{Question, Search};
use crate::toolbox::Gstreamer;

/// The tools of this family.
pub(super) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::read("get_gst_element_info", get_gst_element_info)
            .category("discovery")
            .timeout(Duration::from_secs(30)),
        Tool::read("search_elements", search_elements)
            .category("discovery")
            .audience(Audience::Person),
    ]
}

/// Get the properties and pads of a GStreamer element, as gst-inspect-1.0 does.
#[derive(Deserialize, JsonSchema)]
struct ElementArguments {
    /// Such as `x264enc`.
    element: String,
}

async fn get_gst_element_info(
    context: Context<Gstreamer>,
    arguments: ElementArguments,
) -> Result<AnswerText<Sheet>, ToolError> {
    context.toolbox().ask(Question::Element(arguments.element)).await
}

/// Find GStreamer elements that match all given filters.
#[derive(Deserialize, JsonSchema)]
struct SearchArguments {
    /// Words of name, description, class or plugin: `h264 payload`.
    #[serde(default)]
    words: Option<String>,
    /// Their class, such as `Encoder/Video` or `Sink`.
    #[serde(default)]
    class: Option<String>,
    /// Caps that one of their pads accepts, such as `video/x-h264`.
    #[serde(default)]
    caps: Option<String>,
    /// Direction of that pad; default: any.
    #[serde(default)]
    direction: Option<Direction>,
    /// Minimum rank.
    #[serde(default)]
    rank: Option<Rank>,
    /// Maximum number of results, 1 to 500.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
}

fn fifty() -> usize {
    50
}

/// A direction of pads.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    // What an element takes.
    Sink,
    // What it gives.
    Src,
}

async fn search_elements(
    context: Context<Gstreamer>,
    arguments: SearchArguments,
) -> Result<AnswerText<SearchResult>, ToolError> {
    let words = |text: Option<String>, separators: &[char]| -> Vec<String> {
        text.unwrap_or_default()
            .split(|letter: char| letter.is_whitespace() || separators.contains(&letter))
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let search = Search {
        words: words(arguments.words, &[]),
        class: words(arguments.class, &['/']),
        caps: arguments.caps,
        source: arguments
            .direction
            .map(|direction| matches!(direction, Direction::Src)),
        rank: arguments.rank.map(Rank::value),
        limit: arguments.limit.clamp(1, 500),
    };
    context.toolbox().ask(Question::Elements(search)).await
}
