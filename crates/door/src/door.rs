//! What all clients of a door share: the bus, the list of tools, the calls under way.

use std::sync::Arc;
use std::time::Duration;

use client::payload::{ExportRequest, StatusResponse};
use client::{Client, ClientError, News, Request};
use config::{Asker, Rule, Toolset, refused_work};
use ovos_toolbox_wire::{FailureKind, Object};
use tokio::sync::{Mutex, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::turn::Order;
use crate::{Arrivals, Calls, Guide, Listing};

/// How often the door checks whether the service or its toolboxes changed without an event, as after a crash.
const POLL: Duration = Duration::from_secs(2);

/// How long a client that lists the tools waits for the service. After that it gets the last list.
const LIST_WAIT: Duration = Duration::from_secs(2);

/// Shared by all clients of a door.
pub struct Door {
    /// The bus.
    pub client: Client,
    toolset: Toolset,
    /// The rules of who may have the door work for them.
    rules: Vec<Rule>,
    own: Vec<&'static str>,
    listing: watch::Sender<Arc<Listing>>,
    /// What was loaded when the list was asked for. The holder of the lock asks.
    loaded: Mutex<Option<Loaded>>,
    /// The calls under way.
    pub calls: Calls,
    pub(crate) order: Order,
    /// The owner of the door's tasks.
    pub tasks: TaskTracker,
    /// Cancelled when the door closes.
    pub shutdown: CancellationToken,
}

impl Door {
    /// Creates a door that shows the tools that `toolset` permits. `own` are the names of further tools that the door shows
    /// besides these and the two stops. `rules` say who may have it work for them.
    #[must_use]
    pub fn new(
        client: Client,
        toolset: Toolset,
        rules: Vec<Rule>,
        own: &[&'static str],
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            toolset,
            rules,
            own: own.to_vec(),
            listing: watch::Sender::default(),
            loaded: Mutex::new(None),
            calls: Calls::new(),
            order: Order::default(),
            tasks: TaskTracker::new(),
            shutdown,
        })
    }

    /// Decides whether the sender of a request may have this door work for it. `work` is the topic without `ovos.tools.`, such as
    /// `agent.run`. Returns the client with which the calls of that work are made: it says for whom they are, so that the service
    /// decides for that sender, too.
    ///
    /// # Errors
    /// The error with which to answer the request: it says for whom it asks in a way that cannot be read, or a rule refuses it.
    pub fn client_for(&self, request: &Request, work: &str) -> Result<Client, String> {
        let asker = Asker::of(request.context());
        let asker = asker.map_err(|unclear| format!("{}: {unclear}", FailureKind::ValueError))?;
        if let Some(refused) = refused_work(&self.rules, &asker, work) {
            return Err(format!("{}: {refused}", FailureKind::PermissionError));
        }
        let mut context = Object::new();
        asker.mark(&mut context);
        Ok(self.client.with_context(context))
    }

    /// The requests of a new connection. What one connection sends begins in the order of arrival.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        self.order.arrivals()
    }

    /// Returns the list of tools as it was last received.
    #[must_use]
    pub fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.borrow())
    }

    /// Returns the list of tools, and every change of it from now on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.subscribe()
    }

    /// Returns the tools as they are now. Asks the service what is loaded, and for the tools only if that has changed. Returns the
    /// last list if the service does not answer.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn refreshed(&self) -> Arc<Listing> {
        self.refreshed_by(async {
            let now = Loaded::of(&self.client.status().await?);
            let mut loaded = self.loaded.lock().await;
            if loaded.as_ref() != Some(&now) {
                self.refresh().await?;
                *loaded = Some(now);
            }
            Ok(())
        })
        .await
    }

    /// Returns the tools as they are now, after an event that says that they changed.
    async fn renewed(&self) -> Arc<Listing> {
        self.refreshed_by(async {
            let mut loaded = self.loaded.lock().await;
            *loaded = None;
            self.refresh().await
        })
        .await
    }

    async fn refreshed_by(&self, asking: impl Future<Output = Result<(), ClientError>>) -> Arc<Listing> {
        match timeout(LIST_WAIT, asking).await {
            Ok(Ok(())) => {}
            // That the bus is away is said where it is noticed.
            Ok(Err(error @ ClientError::NotSent { .. })) => {
                tracing::debug!(%error, "the list of tools may be out of date")
            }
            Ok(Err(error)) => tracing::warn!(%error, "the list of tools may be out of date"),
            Err(_) => tracing::warn!("the list of tools may be out of date: the service does not answer"),
        }
        self.listing()
    }

    /// Asks for the tools.
    async fn refresh(&self) -> Result<(), ClientError> {
        let exported = ExportRequest {
            format: Some("mcp".to_owned()),
            detail: true,
            ..ExportRequest::default()
        };
        let (exported, status) = tokio::try_join!(self.client.export(&exported), self.client.guides())?;
        let listing = Listing::new(&exported.tools, &self.toolset, &self.own);
        self.set(listing.with_guides(status.toolboxes.iter().map(Guide::new).collect()));
        Ok(())
    }

    fn set(&self, listing: Listing) {
        let changed = self.listing.send_if_modified(|seen| {
            let differs = **seen != listing;
            if differs {
                *seen = Arc::new(listing);
            }
            differs
        });
        if changed {
            tracing::info!(tools = self.listing().tools().len(), "the list of tools");
        }
    }

    /// Keeps the list up to date until the door closes.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn follow(&self) {
        let mut events = self.client.events();
        let mut poll = interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = None;
        loop {
            let news = tokio::select! {
                () = self.shutdown.cancelled() => return,
                news = events.next() => match news {
                    Some(news) => Some(news),
                    None => return,
                },
                _ = poll.tick() => None,
            };
            match news {
                Some(News::Reloaded | News::Connected | News::Missed(_)) => {
                    self.renewed().await;
                }
                Some(News::Event(event)) if event.kind == "tools_changed" => {
                    self.renewed().await;
                }
                Some(_) => {}
                None => {
                    let Some(status) = self.client.recent_status(POLL).await else {
                        continue;
                    };
                    let now = Some(Loaded::of(&status));
                    if now != seen {
                        seen = now;
                        self.renewed().await;
                    }
                }
            }
        }
    }
}

/// The parts of a status that change when the tools do.
#[derive(PartialEq)]
struct Loaded {
    pid: u32,
    toolboxes: Vec<(String, String, u64, usize)>,
}

impl Loaded {
    fn of(status: &StatusResponse) -> Self {
        let toolboxes = status.toolboxes.iter().map(|toolbox| {
            (
                toolbox.toolbox_id.clone(),
                toolbox.state.clone(),
                toolbox.generation,
                toolbox.tools,
            )
        });
        Self {
            pid: status.service.pid,
            toolboxes: toolboxes.collect(),
        }
    }
}
