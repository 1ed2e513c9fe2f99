//! Watches the bus for everything that ends a run: stops, latches, people who take over, and the end of its time.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use client::payload::StatusResponse;
use client::{Client, Events, News};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::end::{BudgetKind, End};
use crate::interrupt::Interrupt;

/// How often the status is requested. It shows the stops that are not messages on the bus.
const LOOK: Duration = Duration::from_secs(1);

/// The event by which a toolbox reports that a person flies or drives.
const TAKEOVER: &str = "pilot_override";

/// The event by which a toolbox latches itself.
const LATCHED: &str = "latched";

/// Watches the bus for one run.
pub(crate) struct Watch<'a> {
    client: &'a Client,
    interrupt: &'a Interrupt,
    /// The session of the client that asked for the run. Its stops end the run, too.
    session_id: Option<String>,
    /// The stops in force when the run began, by toolbox.
    before: Latches,
    /// The events for [`check`](Self::check); [`follow`](Self::follow) has its own.
    arrived: Mutex<Events>,
}

/// The stop that holds each toolbox. The key "" stands for a stop of everything.
type Latches = BTreeMap<String, Option<String>>;

fn latches(status: &StatusResponse) -> Latches {
    let all = status.all_latched.iter();
    let all = all.map(|all| (String::new(), Some(all.stop_id.clone())));
    let each = status.toolboxes.iter().filter(|toolbox| toolbox.latched);
    let each = each.map(|toolbox| (toolbox.toolbox_id.clone(), toolbox.stop_id.clone()));
    all.chain(each).collect()
}

impl<'a> Watch<'a> {
    /// Starts to watch. `session_id` is that of the client that asked for the run.
    ///
    /// # Errors
    /// The service does not answer.
    pub(crate) async fn new(
        client: &'a Client,
        interrupt: &'a Interrupt,
        session_id: Option<String>,
    ) -> Result<Self, End> {
        let arrived = Mutex::new(client.events());
        let status = client.status().await;
        let status = status.map_err(|error| End::Service(error.to_string()))?;
        Ok(Self {
            client,
            interrupt,
            session_id,
            before: latches(&status),
            arrived,
        })
    }

    /// Watches until it is dropped.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn follow(&self, deadline: Instant) -> Infallible {
        let mut events = self.client.events();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut in_time = true;
        // It goes on after an end, because a person who takes over, or a stop, changes what happens to the calls.
        loop {
            tokio::select! {
                news = events.next() => match news {
                    Some(news) => self.handle_news(&news),
                    None => {
                        self.interrupt.raise(End::Service("the connection to the bus is closed".to_owned()));
                        // There are no more events.
                        std::future::pending().await
                    }
                },
                _ = look.tick() => {
                    if let Some(status) = self.client.recent_status(LOOK / 2).await {
                        self.see(&status);
                    }
                }
                () = sleep_until(deadline), if in_time => {
                    self.interrupt.raise(End::Budget(BudgetKind::Time));
                    in_time = false;
                }
            }
        }
    }

    /// Checks now: the status, and everything that the bus sent before the answer.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn check(&self) -> Option<End> {
        match self.client.status().await {
            Ok(status) => self.see(&status),
            Err(error) => self.interrupt.raise(End::Service(error.to_string())),
        }
        let mut arrived = self.arrived.lock().await;
        while let Some(news) = arrived.arrived() {
            self.handle_news(&news);
        }
        self.interrupt.raised()
    }

    fn see(&self, status: &StatusResponse) {
        for (toolbox, stop_id) in latches(status) {
            if self.before.get(&toolbox) != Some(&stop_id) {
                let what = if toolbox.is_empty() {
                    "everything"
                } else {
                    &toolbox
                };
                self.interrupt
                    .raise(End::Latched(format!("{what} was stopped during the run")));
            }
        }
    }

    fn handle_news(&self, news: &News) {
        let ours = [Some(self.client.session_id()), self.session_id.as_deref()];
        match meaning(news, &ours) {
            None => {}
            Some(Meaning::End(end)) => self.interrupt.raise(end),
            Some(Meaning::Taken { toolbox_id, how }) => self.interrupt.take_over(toolbox_id, &how),
        }
    }
}

/// What a piece of news means for a run.
#[derive(Debug, PartialEq)]
enum Meaning<'a> {
    End(End),
    /// A person has taken over a machine of this toolbox.
    Taken {
        toolbox_id: &'a str,
        how: String,
    },
}

/// Returns what an item of news means for a run. `ours` are the sessions whose stops end the run.
fn meaning<'a>(news: &'a News, ours: &[Option<&str>]) -> Option<Meaning<'a>> {
    let end = match news {
        News::UserStop { session_id } if session_id.is_none() || ours.contains(&session_id.as_deref()) => {
            End::UserStop
        }
        News::EmergencyStop => End::Latched("requested on the bus".to_owned()),
        News::Event(event) if event.kind == TAKEOVER => {
            return Some(Meaning::Taken {
                toolbox_id: &event.toolbox_id,
                how: format!("{} says {TAKEOVER}", event.toolbox_id),
            });
        }
        News::Event(event) if event.kind == LATCHED => {
            End::Latched(format!("{} has stopped itself", event.toolbox_id))
        }
        // The lost news may include the user's stop, which the status does not show.
        News::Missed(lost) => End::Service(format!(
            "missed {lost} messages of the bus, which may include a stop"
        )),
        _ => return None,
    };
    Some(Meaning::End(end))
}

#[cfg(test)]
mod tests {
    use client::payload::EventMessage;
    use serde_json::json;

    use super::*;

    #[test]
    fn news_end_a_run_where_they_are_or_may_be_a_stop() {
        let event = |kind: &str| -> News {
            let event =
                json!({"toolbox_id": "drone", "kind": kind, "severity": "info", "data": null, "ts": 1.0});
            News::Event(serde_json::from_value::<EventMessage>(event).expect("an event"))
        };
        let stop = |session: Option<&str>| News::UserStop {
            session_id: session.map(str::to_owned),
        };
        for (news, expected) in [
            (stop(None), Some("user_stop")),
            (stop(Some("own")), Some("user_stop")),
            (stop(Some("asker")), Some("user_stop")),
            (stop(Some("other")), None),
            (News::EmergencyStop, Some("latched")),
            (event("latched"), Some("latched")),
            (event("pilot_override"), Some("takeover")),
            (event("backend"), None),
            (News::Missed(3), Some("service")),
            (News::Reloaded, None),
        ] {
            let meant = meaning(&news, &[Some("own"), Some("asker")]);
            let word = meant.map(|meant| match meant {
                Meaning::End(end) => end.as_str(),
                Meaning::Taken { toolbox_id, .. } => {
                    assert_eq!(toolbox_id, "drone");
                    "takeover"
                }
            });
            assert_eq!(word, expected, "{news:?}");
        }
    }
}
