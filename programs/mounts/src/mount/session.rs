//! One connection with a server, from its first list of tools to its end. Read [`serve`].

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::{Peer, RoleClient};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{FIRST_RETRY, LAST_RETRY, Shared, State, WHY};
use crate::connect::{Connection, Era, list};
use crate::peer::Heard;
use crate::process::ServerProcess;

/// How long a server with a URL has had no call when it is asked whether it is still there.
const CHECK: Duration = Duration::from_secs(30);

/// How long such a question may take, and the one after a call that was not answered.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// Several changes of the tools within this time are one.
const SETTLE: Duration = Duration::from_millis(100);

/// The shortest time between two lists of a server that says that its tools have changed.
const PACE: Duration = Duration::from_secs(1);

/// Serves a connection to its end. Returns why it ended; nothing if the mount is closed.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    says: &watch::Sender<State>,
    connection: Connection,
) -> Option<String> {
    let Connection {
        service,
        mut process,
        era,
        version,
    } = connection;
    let peer = service.peer().clone();
    let changes = service.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        tools.is_some_and(|tools| tools.list_changed == Some(true))
    });
    let watches = async {
        if era == Era::Modern && changes {
            watch_changes(&peer, &shared.heard).await;
        }
        // The end of the connection is noticed otherwise.
        std::future::pending().await
    };
    let mut ended = Box::pin(service.waiting());
    // The end of a process is noticed. That it hangs shows in its calls.
    let is_checked = process.is_none();
    let why = tokio::select! {
        () = shared.end.cancelled() => None,
        reason = renew(shared, says, &peer, &version, is_checked) => Some(reason),
        reason = gone(&mut process) => Some(reason),
        _ = &mut ended => Some("it closed the connection".to_owned()),
        reason = watches => reason,
    };
    // The end of a process is the reason for all else, and may be noticed last.
    let why = match why {
        None => None,
        Some(reason) => match timeout(WHY / 2, gone(&mut process)).await {
            Ok(end) => Some(end),
            Err(_) => Some(reason),
        },
    };
    // Closes its input; then it may end by itself.
    drop(ended);
    drop(peer);
    if let Some(process) = process {
        process.end().await;
    }
    why
}

/// Waits for the end of a server that is a process.
async fn gone(process: &mut Option<ServerProcess>) -> String {
    match process {
        Some(process) => process.ended().await,
        // It is never known.
        None => std::future::pending().await,
    }
}

/// Asks for the tools: now, when they have changed, when a call was not answered, and, of a server whose end is not noticed, from
/// time to time. Returns why there is no list of them.
async fn renew(
    shared: &Shared,
    says: &watch::Sender<State>,
    peer: &Peer<RoleClient>,
    version: &str,
    is_checked: bool,
) -> String {
    let startup = Duration::from_secs_f64(shared.config.startup_timeout);
    let mut limit = startup;
    loop {
        let asked = Instant::now();
        tokio::select! {
            listed = list(peer) => match listed {
                Ok(listed) => shared.publish(&listed, version),
                Err(error) => return format!("it does not say its tools: {error}"),
            },
            () = shared.idle_for(limit) => {
                return format!("it did not say its tools within {} s", limit.as_secs_f64());
            }
        }
        if !matches!(*says.borrow(), State::Ready(_)) {
            says.send_replace(State::Ready(peer.clone()));
        }
        limit = tokio::select! {
            () = shared.heard.changed.notified() => {
                sleep(SETTLE).await;
                sleep_until(asked + PACE).await;
                startup
            }
            () = shared.unanswered.notified() => CHECK_LIMIT,
            () = shared.missed.notified(), if is_checked => CHECK_LIMIT,
            () = shared.idle_for(CHECK), if is_checked => CHECK_LIMIT,
        };
    }
}

/// Hears of changed tools from a server of the modern era.
async fn watch_changes(peer: &Peer<RoleClient>, heard: &Heard) {
    let mut delay = FIRST_RETRY;
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        if let Ok(mut changes) = peer.listen(filter).await {
            while let Ok(Some(change)) = changes.next().await {
                delay = FIRST_RETRY;
                if matches!(change, ServerNotification::ToolListChangedNotification(_)) {
                    heard.changed.notify_one();
                }
            }
        }
        if peer.is_transport_closed() {
            return;
        }
        sleep(delay).await;
        delay = (delay * 2).min(LAST_RETRY);
        // A change may have been missed meanwhile.
        heard.changed.notify_one();
    }
}
