//! This side of the Model Context Protocol: handles the notifications and requests of a server. Read [`Client`].

use std::collections::HashMap;
use std::sync::Arc;

use ovos_toolbox_wire::Progress;
use parking_lot::Mutex;
use program::Steps;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, ErrorData,
    Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use crate::reporter::Reporter;

/// The notifications of a server.
#[derive(Default)]
pub(crate) struct Notifications {
    /// Notified when the tools of the server have changed.
    pub(crate) changed: Notify,
    /// The runs whose callers want progress.
    runs: Mutex<HashMap<ProgressToken, (Steps, Reporter)>>,
}

impl Notifications {
    /// Passes progress on until the returned value is dropped.
    pub(crate) fn follow(
        self: &Arc<Self>,
        token: ProgressToken,
        steps: Steps,
        reporter: Reporter,
    ) -> Follows {
        self.runs.lock().insert(token.clone(), (steps, reporter));
        Follows {
            notifications: self.clone(),
            token,
        }
    }
}

/// A run whose progress is passed on.
pub(crate) struct Follows {
    notifications: Arc<Notifications>,
    token: ProgressToken,
}

impl Drop for Follows {
    fn drop(&mut self) {
        self.notifications.runs.lock().remove(&self.token);
    }
}

/// The client of one connection. It offers nothing to a server: it declares no elicitation, no sampling and no roots.
pub(crate) struct Client(pub(crate) Arc<Notifications>);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("ovos-tools-mounts", env!("CARGO_PKG_VERSION"));
        // The data for `initialize`. The newer version has no `initialize`.
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let follows = self.0.runs.lock().get(&notification.progress_token).cloned();
        if let Some((steps, reporter)) = follows {
            reporter.progress(&steps, &progress(&notification));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(cannot("elicitation/create"))
    }

    #[allow(deprecated, reason = "a server may still ask for them")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(cannot("roots/list"))
    }
}

fn cannot(method: &str) -> ErrorData {
    let why = format!("{method}: not declared by this client");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}

fn progress(notification: &ProgressNotificationParam) -> Progress {
    let total = notification.total.filter(|total| *total > 0.0);
    let fraction = total.map(|total| (notification.progress / total).clamp(0.0, 1.0));
    Progress {
        fraction: fraction.filter(|fraction| fraction.is_finite()),
        message: notification.message.clone(),
        data: None,
    }
}
