//! `ovos.tools.reload`: loads, replaces and removes toolboxes until they match the plugin folders.

use super::keys::flag;
use super::list::ListedTool;
use super::request::Request;
use super::toolboxes::Toolboxes;
use crate::registry::Registry;
use client::payload::ReloadResponse;

/// Reloads the toolboxes, and answers with the keys of both contracts.
pub(super) async fn reload(
    toolboxes: &dyn Toolboxes,
    registry: &Registry,
    request: &Request,
) -> ReloadResponse<ListedTool> {
    let outcome = toolboxes.reload().await;
    let snapshot = registry.snapshot();
    let tools: Vec<ListedTool> = snapshot.tools().map(ListedTool::new).collect();
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
