//! The state that all clients of the door share.

use std::collections::HashMap;
use std::sync::Arc;

use config::{Config, McpDoor, Principal};
use door::{Finder, Listing};
use parking_lot::Mutex;
use rmcp::model::Tool;

use crate::call_request::Calls;
use crate::content;
use crate::listing::{self, Owner};
use crate::results::Results;

/// Shared by all clients.
pub(crate) struct Door {
    /// The bus, the list of tools, the calls under way.
    pub(crate) link: Arc<door::Door>,
    pub(crate) config: McpDoor,
    pub(crate) content: content::Folder,
    /// Whole results of which clients were given a part.
    pub(crate) results: Results,
    /// The calls that go on for the clients that have no session, by the principal for whom their tokens count. All that show the
    /// owner's own token are one.
    without_session: Mutex<HashMap<Option<Principal>, Arc<Calls>>>,
    /// The tools as clients see them, of this list.
    shown: Mutex<(Arc<Listing>, Arc<Vec<Tool>>)>,
    /// What searches the tools, of this list.
    finder: Mutex<Option<(Arc<Listing>, Arc<Finder>)>>,
}

impl Door {
    pub(crate) fn new(link: Arc<door::Door>, config: &Config) -> Arc<Self> {
        Arc::new(Self {
            link,
            config: config.doors.mcp.clone(),
            content: content::Folder::new(config.service.answered_content_dir()),
            results: Results::default(),
            without_session: Mutex::default(),
            shown: Mutex::default(),
            finder: Mutex::default(),
        })
    }

    /// The calls that go on for the clients without a session whose tokens count for this principal. The owner has written each of
    /// these, so there are few.
    pub(crate) fn calls_without_session(&self, principal: Option<&Principal>) -> Arc<Calls> {
        let mut calls = self.without_session.lock();
        let calls = calls.entry(principal.cloned());
        Arc::clone(calls.or_insert_with(|| Arc::new(Calls::new(self.config.lease))))
    }

    /// Returns the owner of the tool with this name, in the current list or in a newer one.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn owner(&self, name: &str) -> Option<Owner> {
        let of = |listing: Arc<Listing>| listing::owner(&listing, &self.config, name);
        match of(self.link.listing()) {
            Some(owner) => Some(owner),
            None => of(self.link.refreshed().await),
        }
    }

    /// Returns the tools of a list as clients see them.
    pub(crate) fn tools(&self, listing: &Arc<Listing>) -> Arc<Vec<Tool>> {
        let mut shown = self.shown.lock();
        let (of, tools) = &*shown;
        if !Arc::ptr_eq(of, listing) || tools.is_empty() {
            *shown = (
                Arc::clone(listing),
                Arc::new(listing::tools(listing, &self.config)),
            );
        }
        Arc::clone(&shown.1)
    }

    /// Returns what searches the tools as they are now.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn finder(&self) -> Arc<Finder> {
        let listing = self.link.refreshed().await;
        let mut kept = self.finder.lock();
        match &*kept {
            Some((of, finder)) if Arc::ptr_eq(of, &listing) => Arc::clone(finder),
            _ => {
                let finder = Arc::new(Finder::new(listing.searchable(), listing.guides()));
                *kept = Some((listing, Arc::clone(&finder)));
                finder
            }
        }
    }

    /// Keeps the list up to date until the door closes, and warns if it is large.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn follow(&self) {
        let warn = async {
            let mut changes = self.link.changes();
            loop {
                let listing = Arc::clone(&changes.borrow_and_update());
                let tools = self.tools(&listing);
                if let Some(warning) = listing::too_large(&tools, &self.config) {
                    tracing::warn!("{warning}");
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.link.follow() => {}
            () = warn => {}
        }
    }
}
