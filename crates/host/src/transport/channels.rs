//! A toolbox in this process: passes orders directly to its server, and its notices to the callers that wait.
//!
//! Orders wait in the queues of the toolbox's two threads, one for each lane, so sending an order never waits for the
//! toolbox. Read [`Hosted::in_process`].

use std::sync::{Arc, OnceLock, Weak};

use ovos_toolbox_wire::{Failure, Start};
use protocol::{Notice, Order, Raw};

use crate::contract::services::HostServices;
use crate::contract::tools::Maker;
use crate::ffi::load::Library;
use crate::ffi::plugin::Open;
use crate::ffi::server::{Notices, Server, moves};
use crate::transport::hosted::Hosted;
use crate::transport::lanes::Lanes;
use crate::transport::peer::{End, Peer};

impl Hosted {
    /// Opens a toolbox in this process.
    ///
    /// ```text
    ///  Peer ── start, plan, conclude ──> Server ──> host thread ────> toolbox
    ///       ── cancel, halt, resume ───> Server ──> control thread ─> toolbox
    ///  Peer <── Ear <── notices, on the threads of the toolbox
    /// ```
    ///
    /// # Errors
    /// The toolbox's own failure, or that it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// When the future is dropped, the toolbox is closed as soon as it is open.
    pub async fn in_process(
        library: Arc<Library>,
        open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        let limit = open.limits.open;
        let ear = Arc::new(Ear::default());
        let server = Arc::new(Server::new(ear.clone()));
        let lanes = Arc::new(Channels(server.clone()));
        let peer = Arc::new(Peer::new(&open, library.manifest().clone(), services, lanes));
        _ = ear.0.set(Arc::downgrade(&peer));
        let toolbox = Self {
            peer: peer.clone(),
            maker: Maker::Plugin,
            content_dir: None,
        };
        let is_open = peer.will_open(0)?;
        let functions = library.functions();
        let opener = peer.clone();
        let opened = Box::new(move |said: Result<(), Failure>| {
            let answer = said.map(|()| functions).into();
            opener.hear(Notice::Opened { seq: 0, answer });
        });
        // The toolbox's thread owns the peer, so the peer exists as long as the toolbox can send a notice.
        let closed = move || {
            peer.ended(End::Closed(true));
            peer.rested.send_replace(true);
        };
        server.open(library, open, opened, closed)?;
        let opened = toolbox.await_open(is_open, limit).await;
        opened.unwrap_or_else(|| Err(toolbox.late("open()", limit)))?;
        Ok(toolbox)
    }
}

/// Passes notices to the peer. Weak, because the peer owns the toolbox's server.
#[derive(Default)]
struct Ear(OnceLock<Weak<Peer>>);

impl Notices for Ear {
    fn data(&self, notice: Notice) {
        if let Some(peer) = self.0.get().and_then(Weak::upgrade) {
            peer.hear(notice);
        }
    }

    fn control(&self, notice: Notice) {
        self.data(notice);
    }
}

/// Both lanes to a server in this process.
struct Channels(Arc<Server>);

impl Lanes for Channels {
    fn start(&self, run: u64, start: &Start, progress: bool) -> Result<(), Failure> {
        let moves = moves(start.action.effect);
        self.0
            .start(run, start.call.stop_epoch, moves, Raw::of(start), progress);
        Ok(())
    }

    fn data(&self, order: Order) -> Result<(), Failure> {
        self.0.data(order);
        Ok(())
    }

    fn chatter(&self, order: Order) -> bool {
        self.0.data(order);
        true
    }

    fn control(&self, order: Order) {
        self.0.control(order);
    }

    fn close(&self, _: u64) {
        self.0.close();
    }
}
