//! One connection with a server, from its first list of tools to its end. Read [`serve`].

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::{Peer, RoleClient};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::shared::{FIRST_RETRY, LAST_RETRY, Shared, State, WHY};
use crate::connect::{Connection, Era, list};
use crate::peer::Notifications;
use crate::process::ServerProcess;

/// How long a server with a URL must have had no call before the program checks whether it is still there.
const CHECK: Duration = Duration::from_secs(30);

/// How long such a check may take, and also the check after a call without an answer.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// Changes of the tools within this time count as one.
const SETTLE: Duration = Duration::from_millis(100);

/// The shortest time between two requests for the tools of a server that reports changes.
const PACE: Duration = Duration::from_secs(1);

/// Serves a connection to its end. Returns why it ended; `None` if the mount is closed.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    states: &watch::Sender<State>,
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
            watch_changes(&peer, &shared.notifications).await;
        }
        // `service.waiting()` notices the end of the connection.
        std::future::pending().await
    };
    let mut ended = Box::pin(service.waiting());
    // A process needs no checks: its end is noticed, and calls without an answer show that it hangs.
    let is_checked = process.is_none();
    let why = tokio::select! {
        () = shared.end.cancelled() => None,
        reason = renew(shared, states, &peer, &version, is_checked) => Some(reason),
        reason = process_end(&mut process) => Some(reason),
        _ = &mut ended => Some("it closed the connection".to_owned()),
        reason = watches => reason,
    };
    // If the process has ended, that is the reason for every other error, but it may be noticed last.
    let why = match why {
        None => None,
        Some(reason) => match timeout(WHY / 2, process_end(&mut process)).await {
            Ok(end) => Some(end),
            Err(_) => Some(reason),
        },
    };
    // This closes the input of the server, which may then end by itself.
    drop(ended);
    drop(peer);
    if let Some(process) = process {
        process.end().await;
    }
    why
}

/// Waits for the end of a server that is a process.
async fn process_end(process: &mut Option<ServerProcess>) -> String {
    match process {
        Some(process) => process.ended().await,
        // Nothing shows the end of a server without a process.
        None => std::future::pending().await,
    }
}

/// Asks for the tools at the beginning, when they have changed and when a call was not answered; and from time to time if nothing
/// else shows the end of the server. Returns why the server gave no list.
async fn renew(
    shared: &Shared,
    states: &watch::Sender<State>,
    peer: &Peer<RoleClient>,
    version: &str,
    is_checked: bool,
) -> String {
    let startup = Duration::from_secs_f64(shared.config.startup_timeout);
    let mut limit = startup;
    loop {
        let start = Instant::now();
        tokio::select! {
            listed = list(peer) => match listed {
                Ok(listed) => shared.publish(&listed, version),
                Err(refused) if refused.challenge.is_some() && shared.config.credentials.is_some() => {
                    return refused.into_reason(&shared.id);
                }
                Err(refused) => return format!("it does not list its tools: {}", refused.reason),
            },
            () = shared.idle_for(limit) => {
                return format!("it did not list its tools within {} s", limit.as_secs_f64());
            }
        }
        if !matches!(*states.borrow(), State::Ready(_)) {
            states.send_replace(State::Ready(peer.clone()));
        }
        limit = tokio::select! {
            () = shared.notifications.changed.notified() => {
                sleep(SETTLE).await;
                sleep_until(start + PACE).await;
                startup
            }
            () = shared.unanswered.notified() => CHECK_LIMIT,
            () = shared.missed.notified(), if is_checked => CHECK_LIMIT,
            () = shared.idle_for(CHECK), if is_checked => CHECK_LIMIT,
        };
    }
}

/// Notes each change of the tools that a server of the modern era reports.
async fn watch_changes(peer: &Peer<RoleClient>, notifications: &Notifications) {
    let mut delay = FIRST_RETRY;
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        if let Ok(mut changes) = peer.listen(filter).await {
            while let Ok(Some(change)) = changes.next().await {
                delay = FIRST_RETRY;
                if matches!(change, ServerNotification::ToolListChangedNotification(_)) {
                    notifications.changed.notify_one();
                }
            }
        }
        if peer.is_transport_closed() {
            return;
        }
        sleep(delay).await;
        delay = (delay * 2).min(LAST_RETRY);
        // A change may have been missed meanwhile.
        notifications.changed.notify_one();
    }
}
