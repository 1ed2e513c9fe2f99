//! Whether the service that took a call is still there: the status, asked for every second while calls run. All calls of a
//! client share the answers.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::client::Client;
use crate::statuses::{Said, WAIT, Word};

/// From a call, or from the last answer, to the next question.
const EVERY: Duration = Duration::from_secs(1);

/// What is known since the last question.
pub(crate) enum Beat {
    /// The service that took the call runs.
    Alive,
    /// The service has never answered, as the published one does not: it cannot be asked.
    Mute,
    /// It answered before, and has not for this long.
    Gone(Duration),
    /// It began after the call was sent.
    Restarted,
}

/// The questions beside one call.
pub(crate) struct Pulse {
    sent: Instant,
    next: Instant,
    answers: bool,
}

impl Pulse {
    /// For a call that is sent now.
    pub(crate) fn new() -> Self {
        let sent = Instant::now();
        Self {
            sent,
            next: sent + EVERY,
            answers: false,
        }
    }

    /// Waits for the next word of the service.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn beat(&mut self, client: &Client) -> Beat {
        sleep_until(self.next).await;
        let before = self.next.checked_sub(EVERY).unwrap_or(self.sent);
        let word = client.status_after(before).await;
        self.next = Instant::now() + EVERY;
        // Where the bus is away, the call itself is told.
        let Some(Word { asked, said, .. }) = word else {
            return Beat::Alive;
        };
        match said {
            Said::Status(status) => {
                self.answers = true;
                // A service that took the call has run at least since it was sent.
                let must = asked
                    .saturating_duration_since(self.sent)
                    .saturating_sub(Duration::from_millis(1));
                if Duration::from_millis(status.service.uptime_ms) < must {
                    Beat::Restarted
                } else {
                    Beat::Alive
                }
            }
            // Asked before the service had this call.
            Said::Nothing if asked < self.sent => Beat::Alive,
            Said::Nothing if self.answers => Beat::Gone(WAIT),
            Said::Nothing | Said::Other => Beat::Mute,
        }
    }
}
