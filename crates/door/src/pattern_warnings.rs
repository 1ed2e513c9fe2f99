//! Warns of patterns in a door's toolset that match nothing. The service cannot do that, because the door may read another
//! configuration.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use client::payload::ListRequest;
use client::{Client, ClientError};
use config::{Inventory, Toolset};
use tokio::time::sleep;

use crate::Door;

/// How often the service is asked whether all toolboxes are loaded. Before that, a pattern may match nothing yet.
const RETRY: Duration = Duration::from_secs(2);

/// Logs each such pattern of the door `name` once. Ends with the door.
///
/// # Cancel safety
/// Safe.
pub(crate) async fn warn(door: Arc<Door>, name: String, toolset: Toolset) {
    let patterns = toolset.tools.patterns().chain(toolset.toolboxes.patterns());
    if patterns.count() == 0 {
        return;
    }
    let mut changes = door.changes();
    let mut logged = BTreeSet::new();
    let warning = async {
        loop {
            changes.mark_unchanged();
            let inventory = loop {
                match installed(&door.client).await {
                    Ok(Some(inventory)) => break inventory,
                    // The door's list of tools already reports a service that does not answer.
                    Ok(None) | Err(_) => sleep(RETRY).await,
                }
            };
            for warning in inventory.toolset_unmatched(&name, &toolset) {
                if logged.insert(warning.clone()) {
                    tracing::warn!("{warning}");
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = door.shutdown.cancelled() => {}
        () = warning => {}
    }
}

/// What is installed, once all toolboxes are loaded.
async fn installed(client: &Client) -> Result<Option<Inventory>, ClientError> {
    if !client.all_loaded().await? {
        return Ok(None);
    }
    let status = client.status().await?;
    let list = client.list(&ListRequest::default()).await?;
    let loaded = status.toolboxes.into_iter().map(|toolbox| toolbox.toolbox_id);
    let off = status.off.into_iter().map(|toolbox| toolbox.toolbox_id);
    let failed = status.failed.into_iter().filter_map(|file| file.toolbox_id);
    Ok(Some(Inventory {
        ids: loaded.chain(off).chain(failed).collect(),
        tools: list
            .into_iter()
            .map(|tool| (tool.toolbox_id, tool.name))
            .collect(),
    }))
}
