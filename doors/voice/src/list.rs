//! The list of tools that a voice receives. Pure.

use door::{Listing, StopTool};
use serde_json::Value;

use crate::dialect::Shown;

/// How many of the largest tools a warning names.
const LARGEST: usize = 5;

/// Returns the two stops and the tools that the door shows.
pub(crate) fn shown(listing: &Listing) -> Vec<Shown> {
    let stops = StopTool::ALL.into_iter().map(|stop| Shown {
        name: stop.name().to_owned(),
        description: stop.description().to_owned(),
        arguments: Value::Object(StopTool::arguments()),
    });
    let tools = listing.tools().iter().map(|tool| Shown {
        name: tool.exported.clone(),
        description: tool.description.clone(),
        arguments: Value::Object((*tool.arguments).clone()),
    });
    stops.chain(tools).collect()
}

/// Returns the warning for a list of tools that is larger than `limit` bytes.
pub(crate) fn too_large(tools: &[Shown], total: usize, limit: usize) -> String {
    let size = |tool: &Shown| tool.description.len() + tool.arguments.to_string().len();
    let mut sizes: Vec<(usize, &str)> = tools
        .iter()
        .map(|tool| (size(tool), tool.name.as_str()))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let largest: Vec<String> = sizes
        .iter()
        .take(LARGEST)
        .map(|(size, name)| format!("{name} ({size})"))
        .collect();
    format!(
        "the list of {} tools has {total} bytes, more than warn_list_bytes ({limit}); the largest are {}; leave some out with \
         service.doors.voice.tools, toolboxes or effects",
        sizes.len(),
        largest.join(", ")
    )
}
