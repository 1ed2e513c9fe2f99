//! Whether a handler that recognises people is there.
//!
//! Owns the search for one: a question each minute, and at once when one announces itself, until one has answered. From then on
//! the recognition tools are for models, too. Read [`Recogniser`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::Notify;
use ovos_toolbox_sdk::tokio::time::timeout;

/// The topic of questions: `{robot, tool, args}` is asked, `<topic>.response` with the tool's result is expected.
pub(crate) const TOPIC: &str = "ovos.robot.recognise";

/// What a handler sends when it has started.
pub(crate) const ANNOUNCED: &str = "ovos.robot.recognise.ready";

/// How often the toolbox asks whether a handler is there.
const AGAIN: Duration = Duration::from_secs(60);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The handler that recognises people, as far as it is known.
pub(crate) struct Recogniser {
    host: Host,
    is_there: AtomicBool,
    announced: Notify,
}

impl Recogniser {
    /// Begins to look for a handler, on behalf of the robot of this name.
    pub(crate) fn sought(host: Host, robot: &str) -> Arc<Self> {
        let recogniser = Arc::new(Self {
            host: host.clone(),
            is_there: AtomicBool::new(false),
            announced: Notify::new(),
        });
        let question = json!({"robot": robot, "tool": "get_known_people", "args": {}});
        host.spawn(Arc::clone(&recogniser).seek(question));
        recogniser
    }

    /// Whether one has answered since the start.
    pub(crate) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::SeqCst)
    }

    /// Remembers that one has answered. The first answer changes the list of tools.
    pub(crate) fn answered(&self) {
        if !self.is_there.swap(true, Ordering::SeqCst) {
            self.host.tools_changed();
        }
    }

    /// Looks for one now, because it has said that it is there.
    pub(crate) fn announced(&self) {
        self.announced.notify_one();
    }

    async fn seek(self: Arc<Self>, question: Value) {
        while !self.is_there() {
            if self.host.request(TOPIC, &question, PATIENCE).await.is_ok() {
                self.answered();
                return;
            }
            // Either way it is time to ask again.
            let _ = timeout(AGAIN, self.announced.notified()).await;
        }
    }
}
