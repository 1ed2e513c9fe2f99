//! `ovos.persona.tools.discover`: one answer a toolbox.

use ovos_toolbox_wire::Effect;

use super::Api;
use super::list::Listed;
use client::payload::DiscoverResponse;

impl Api {
    /// Tools of effect `resume` are for an operator, so personas do not hear of them.
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
