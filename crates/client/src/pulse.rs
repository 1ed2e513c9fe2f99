//! Finds out whether the service that took a call still runs: while calls run, the client asks for the status every second. All
//! calls of a client share the answers.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::client::Client;
use crate::statuses::{StatusAnswer, StatusResult, WAIT};

/// The time from a call, or from the last answer, to the next status request.
const EVERY: Duration = Duration::from_secs(1);

/// What the last status request showed.
pub(crate) enum Beat {
    /// The service that took the call runs.
    Alive,
    /// The service has never answered a status request (the published service does not know them), so this check is impossible.
    Mute,
    /// The service answered before, and has not answered for this long.
    Gone(Duration),
    /// The service started after the call was sent.
    Restarted,
}

/// The status requests for one call.
pub(crate) struct Pulse {
    sent: Instant,
    next: Instant,
    answers: bool,
}

impl Pulse {
    /// Starts the status requests for a call that is sent now.
    pub(crate) fn new() -> Self {
        let sent = Instant::now();
        Self {
            sent,
            next: sent + EVERY,
            answers: false,
        }
    }

    /// Waits for the next result of a status request.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn beat(&mut self, client: &Client) -> Beat {
        sleep_until(self.next).await;
        let before = self.next.checked_sub(EVERY).unwrap_or(self.sent);
        let result = client.status_after(before).await;
        self.next = Instant::now() + EVERY;
        // If the bus is away, the call itself gets that error.
        let Some(StatusResult { asked_at, answer, .. }) = result else {
            return Beat::Alive;
        };
        match answer {
            StatusAnswer::Status(status) => {
                self.answers = true;
                // A service that took the call has been running at least since the call was sent.
                let must = asked_at
                    .saturating_duration_since(self.sent)
                    .saturating_sub(Duration::from_millis(1));
                if Duration::from_millis(status.service.uptime_ms) < must {
                    Beat::Restarted
                } else {
                    Beat::Alive
                }
            }
            // The request was sent before the service had this call.
            StatusAnswer::Nothing if asked_at < self.sent => Beat::Alive,
            StatusAnswer::Nothing if self.answers => Beat::Gone(WAIT),
            StatusAnswer::Nothing | StatusAnswer::Other => Beat::Mute,
        }
    }
}
