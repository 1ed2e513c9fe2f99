//! The list of tools that a voice receives. Pure.

use door::{Listing, LongCallTool, OwnTool, StopTool, largest};
use serde_json::Value;

use crate::dialect::ShownTool;

/// Returns the two stops and the tools that the door shows. `announces`: with those that ask for calls that go on.
pub(crate) fn shown_tools(listing: &Listing, announces: bool) -> Vec<ShownTool> {
    let stops = StopTool::ALL.iter().copied().map(own);
    let calls = LongCallTool::ALL.iter().copied().filter(|_| announces);
    let calls = calls.map(own);
    let tools = listing.tools().iter().map(|tool| ShownTool {
        name: tool.exported.clone(),
        description: tool.description.clone(),
        arguments: Value::Object((*tool.arguments).clone()),
    });
    stops.chain(calls).chain(tools).collect()
}

fn own(tool: impl OwnTool) -> ShownTool {
    ShownTool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        arguments: Value::Object(tool.arguments()),
    }
}

/// Leaves out the largest tools until at most `most` are left. The stops stay.
pub(crate) fn at_most(tools: &mut Vec<ShownTool>, most: usize) {
    let size = |tool: &ShownTool| tool.description.len() + tool.arguments.to_string().len();
    while tools.len() > most.max(StopTool::ALL.len()) {
        let theirs = tools.iter().enumerate().skip(StopTool::ALL.len());
        let Some((largest, _)) = theirs.max_by_key(|(_, tool)| size(tool)) else {
            return;
        };
        tools.remove(largest);
    }
}

/// Returns the warning for a list of tools that is larger than `limit` bytes.
pub(crate) fn too_large(tools: &[ShownTool], total: usize, limit: usize) -> String {
    let size = |tool: &ShownTool| tool.description.len() + tool.arguments.to_string().len();
    format!(
        "the list of {} tools is {total} bytes, more than warn_list_bytes ({limit}); the largest are {}; leave some out with \
         service.doors.voice.tools, toolboxes or effects",
        tools.len(),
        largest(tools.iter().map(|tool| (size(tool), tool.name.as_str())))
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_tools_go_first_and_the_stops_never() {
        let mut tools = shown_tools(&Listing::default(), false);
        for size in [10, 30, 20] {
            tools.push(ShownTool {
                name: format!("t{size}"),
                description: "d".repeat(size),
                arguments: json!({}),
            });
        }
        for (most, left) in [
            (9, &["emergency_stop", "stop_moving", "t10", "t30", "t20"][..]),
            (4, &["emergency_stop", "stop_moving", "t10", "t20"]),
            (3, &["emergency_stop", "stop_moving", "t10"]),
            (0, &["emergency_stop", "stop_moving"]),
        ] {
            at_most(&mut tools, most);
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, left);
        }
    }
}
