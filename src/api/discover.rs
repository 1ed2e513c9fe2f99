//! `ovos.persona.tools.discover`: one answer for each toolbox.

use ovos_toolbox_wire::Effect;

use super::Api;
use super::list::Listed;
use client::payload::DiscoverResponse;

impl Api {
    /// Leaves out tools of effect `resume`: they are for operators.
    pub(super) fn discover(&self) -> Vec<DiscoverResponse<Listed>> {
        let snapshot = self.registry.snapshot();
        let answer = |entry: &crate::registry::ToolboxEntry| {
            let tools = entry.tools.iter().filter(|tool| tool.effect() != Effect::Resume);
            DiscoverResponse {
                tools: tools.map(|tool| Listed::new(tool, false)).collect(),
                toolbox_id: entry.toolbox_id.clone(),
            }
        };
        snapshot.toolboxes().map(answer).collect()
    }
}
