//! Watches the bus for what ends a run: stops, latches, people who take over, and its time.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use client::payload::StatusResponse;
use client::{Client, Events, News};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::end::{End, Spent};
use crate::interrupt::Interrupt;

/// How often the status is looked at: stops that are no message of the bus are seen there.
const LOOK: Duration = Duration::from_secs(1);

/// The event by which a toolbox says that a person flies or drives.
const TAKEOVER: &str = "pilot_override";

/// The event by which a toolbox latches itself.
const LATCHED: &str = "latched";

/// Watches the bus for one run.
pub(crate) struct Watch<'a> {
    client: &'a Client,
    interrupt: &'a Interrupt,
    /// The session of the client that asked for the run, whose stops end it, too.
    session_id: Option<String>,
    /// The stops that held when the run began, by toolbox.
    before: Latches,
    /// For [`check`](Self::check), beside those of [`follow`](Self::follow).
    arrived: Mutex<Events>,
}

/// The stop that holds a toolbox; "" for everything.
type Latches = BTreeMap<String, Option<String>>;

fn latches(status: &StatusResponse) -> Latches {
    let all = status.all_latched.iter();
    let all = all.map(|all| (String::new(), Some(all.stop_id.clone())));
    let each = status.toolboxes.iter().filter(|toolbox| toolbox.latched);
    let each = each.map(|toolbox| (toolbox.toolbox_id.clone(), toolbox.stop_id.clone()));
    all.chain(each).collect()
}

impl<'a> Watch<'a> {
    /// From now on. `session_id` is that of the client that asked for the run.
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
        loop {
            tokio::select! {
                news = events.next() => match news {
                    Some(news) => self.note(&news),
                    None => self.interrupt.raise(End::Service("the connection to the bus is closed".to_owned())),
                },
                _ = look.tick() => {
                    if let Some(status) = self.client.recent_status(LOOK / 2).await {
                        self.see(&status);
                    }
                }
                () = sleep_until(deadline) => {
                    self.interrupt.raise(End::Budget(Spent::Time));
                    std::future::pending().await
                }
            }
            if self.interrupt.raised().is_some() {
                // Nothing more to find out.
                std::future::pending().await
            }
        }
    }

    /// Looks now: at the status, and at everything that the bus sent before its answer.
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
            self.note(&news);
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

    fn note(&self, news: &News) {
        match news {
            News::UserStop { session_id } => {
                let ours = [Some(self.client.session_id()), self.session_id.as_deref()];
                if session_id.is_none() || ours.contains(&session_id.as_deref()) {
                    self.interrupt.raise(End::UserStop);
                }
            }
            News::EmergencyStop => self
                .interrupt
                .raise(End::Latched("it was asked for on the bus".to_owned())),
            News::Event(event) if event.kind == TAKEOVER => {
                let what = format!("{} says {TAKEOVER}", event.toolbox_id);
                self.interrupt.raise(End::Takeover(what));
            }
            News::Event(event) if event.kind == LATCHED => {
                let what = format!("{} has stopped itself", event.toolbox_id);
                self.interrupt.raise(End::Latched(what));
            }
            _ => {}
        }
    }
}
