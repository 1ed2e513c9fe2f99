//! Whether the service that took a call is still there: asked every second while the call runs.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::client::Client;
use crate::payload::{EmptyRequest, StatusResponse};
use crate::received::Received;
use crate::routes::{Heard, Route};
use crate::topic;

/// From a call, or from the last answer, to the next question.
const EVERY: Duration = Duration::from_secs(1);

/// How long a service that answered before has to answer.
const WAIT: Duration = Duration::from_secs(5);

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
    asked: Option<(Route, Instant)>,
    answers: bool,
}

impl Pulse {
    /// For a call that is sent now.
    pub(crate) fn new() -> Self {
        let sent = Instant::now();
        Self {
            sent,
            next: sent + EVERY,
            asked: None,
            answers: false,
        }
    }

    /// Waits for the next word of the service.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn beat(&mut self, client: &Client) -> Beat {
        loop {
            let Some((route, at)) = &mut self.asked else {
                sleep_until(self.next).await;
                let now = Instant::now();
                self.next = now + EVERY;
                // Where the bus is away, the call itself is told.
                let asked = client.send(topic::STATUS.name(), &EmptyRequest {});
                self.asked = asked.ok().map(|route| (route, now));
                continue;
            };
            let at = *at;
            let heard = timeout_at(at + WAIT, route.next()).await;
            self.asked = None;
            self.next = Instant::now() + EVERY;
            return match heard {
                Ok(Heard::Answer(data)) => {
                    let status: Received<StatusResponse> = Received::new(topic::STATUS.name(), data);
                    match status.good() {
                        // An answer that names no process is none of a service.
                        Ok(status) if status.service.pid > 0 => {
                            self.answers = true;
                            // A service that took the call has run at least since it was sent.
                            let must = (at - self.sent).saturating_sub(Duration::from_millis(1));
                            if Duration::from_millis(status.service.uptime_ms) < must {
                                Beat::Restarted
                            } else {
                                Beat::Alive
                            }
                        }
                        Ok(_) | Err(_) => Beat::Mute,
                    }
                }
                // The call's own route is told what happened.
                Ok(Heard::Progress(_) | Heard::Lost(_)) => Beat::Alive,
                Err(_) if self.answers => Beat::Gone(WAIT),
                Err(_) => Beat::Mute,
            };
        }
    }
}
