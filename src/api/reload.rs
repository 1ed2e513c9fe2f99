//! `ovos.tools.reload`: brings what is loaded in line with what is in the plugin folders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::Listed;
use super::request::flag;
use super::{Api, Request};

/// A file that could not be loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedFile {
    /// The file.
    pub path: String,
    /// The toolbox it claims to be, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// What is wrong with it and what to do.
    pub reason: String,
}

/// What a reload did, by toolbox id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReloadOutcome {
    /// New toolboxes.
    pub added: Vec<String>,
    /// Toolboxes whose file is gone.
    pub removed: Vec<String>,
    /// Toolboxes whose file or configuration changed.
    pub replaced: Vec<String>,
    /// Toolboxes that were left alone.
    pub unchanged: Vec<String>,
    /// Files that could not be loaded; what they were to replace goes on serving.
    pub failed: Vec<FailedFile>,
}

/// The answer to `ovos.tools.reload`: the union of both contracts.
#[derive(Serialize)]
pub(super) struct ReloadResponse {
    tools: Vec<Listed>,
    loaded: Vec<String>,
    total_tools: usize,
    /// Where the request says `"detail": true`.
    #[serde(flatten)]
    outcome: Option<ReloadOutcome>,
}

impl Api {
    pub(super) async fn reload(&self, request: &Request) -> ReloadResponse {
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
            outcome: flag(&request.data, "detail").unwrap_or(false).then_some(outcome),
        }
    }
}
