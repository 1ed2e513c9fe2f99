//! `ovos.tools.reload`: loads, replaces and removes toolboxes until they match the plugin folders.

use super::keys::flag;
use super::list::Listed;
use super::request::Request;
use super::state::Api;
use client::payload::ReloadResponse;

impl Api {
    /// Answers with the keys of both contracts.
    pub(super) async fn reload(&self, request: &Request) -> ReloadResponse<Listed> {
        let outcome = self.toolboxes.reload().await;
        let snapshot = self.registry.snapshot();
        let tools: Vec<Listed> = snapshot.tools().map(|tool| Listed::new(tool, false)).collect();
        ReloadResponse {
            loaded: snapshot
                .toolboxes()
                .map(|entry| entry.toolbox_id.clone())
                .collect(),
            total_tools: tools.len(),
            tools,
            tools_left_out: None,
            outcome: flag(&request.data, "detail").unwrap_or(false).then_some(outcome),
        }
    }
}
