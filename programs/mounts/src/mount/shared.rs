//! What the tasks and the calls of a mount share.

use std::sync::Arc;
use std::time::Duration;

use config::MountConfig;
use parking_lot::Mutex;
use program::level;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::peer::Notifications;
use crate::reporter::{Backend, Reporter};
use crate::secrets::{Secrets, cut};
use crate::tools::Tools;

/// The delay before the next attempt to connect; it doubles up to `LAST_RETRY`.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(500);

pub(crate) const LAST_RETRY: Duration = Duration::from_secs(60);

/// How long a failed call waits for the reason why the server is gone.
pub(crate) const WHY: Duration = Duration::from_secs(1);

/// The state of a server.
#[derive(Clone)]
pub(crate) enum State {
    Starting,
    Ready(Peer<RoleClient>),
    Down(String),
}

/// The state that the tasks and the calls of a mount share.
pub(crate) struct Shared {
    pub(super) id: String,
    pub(crate) config: MountConfig,
    pub(super) token: Option<String>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) reporter: Reporter,
    pub(crate) notifications: Arc<Notifications>,
    pub(super) tools: Mutex<Arc<Tools>>,
    /// The number of calls that the server has now.
    pub(super) calls: watch::Sender<usize>,
    /// Notified when a call could not reach the server.
    pub(crate) missed: Notify,
    /// Notified when a call was given up before the server had answered it.
    pub(crate) unanswered: Notify,
    pub(crate) end: CancellationToken,
}

impl Shared {
    /// Returns when the server has had no call for this long, added up over the pauses between calls. A server may answer nothing
    /// else during a call and still be alive.
    pub(crate) async fn idle_for(&self, time: Duration) {
        let (mut calls, mut left) = (self.calls.subscribe(), time);
        loop {
            // The sender lives as long as `self`.
            _ = calls.wait_for(|calls| *calls == 0).await;
            let pause = Instant::now();
            if timeout(left, calls.changed()).await.is_err() {
                return;
            }
            left = left.saturating_sub(pause.elapsed());
        }
    }

    pub(super) fn tools(&self) -> Arc<Tools> {
        self.tools.lock().clone()
    }

    /// Publishes the tools that the server lists.
    pub(crate) fn publish(&self, listed: &[Value], version: &str) {
        let tools = Tools::read(listed, &self.config).hiding(&self.secrets);
        let mut summary = format!("{} tools, MCP {version}", tools.definitions.len());
        for problem in &tools.problems {
            summary = format!("{summary}; {problem}");
        }
        let summary = cut(&summary);
        let old = self.tools();
        if old.problems != tools.problems {
            for problem in &tools.problems {
                self.reporter.log(level::WARN, "mounts", problem);
            }
        }
        let changed = old.definitions != tools.definitions;
        let tools = Arc::new(tools);
        *self.tools.lock() = tools;
        if changed {
            self.reporter.tools_changed();
        }
        self.reporter.backend(Backend::Ready, &summary);
    }
}
