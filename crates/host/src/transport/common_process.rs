//! A process that is several toolboxes. Read [`CommonProcess::start`]; `Hosted::in_common` opens one of them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use protocol::Order;

use crate::contract::services::Open;
use crate::contract::services::{HostServices, Limits};
use crate::contract::tools::Maker;
use crate::transport::child::{
    ANSWERING, KeptProcess, ProcessContent, ProcessSettings, cannot_start, end, greeted, keep, opening,
};
use crate::transport::hosted::Hosted;
use crate::transport::members::Members;
use crate::transport::peer::{Death, Peer};
use crate::transport::sockets::Sockets;

/// How long a toolbox of a shared process may take to answer a halt: it moves nothing, and the process has no thread
/// for it alone.
pub(crate) const HALT: Duration = Duration::from_secs(2);
/// How long a shared process may be silent before the silence is reported.
const SILENCE: Duration = Duration::from_secs(10);

/// A process that is several toolboxes. Dropping it closes them all in the background.
pub(crate) struct CommonProcess {
    peer: Arc<Peer>,
    sockets: Arc<Sockets>,
    pub(crate) members: Arc<Members>,
}

impl CommonProcess {
    /// Starts a process and waits for its hello. `name` is the name of its program.
    ///
    /// ```text
    ///  Peer of a toolbox ─┐
    ///  Peer of a toolbox ─┼─> Members ──> Sockets ──> the process
    ///  Peer of the process ───────────────^
    ///  Peers <── Members <── reader task, Keeper thread
    /// ```
    ///
    /// # Errors
    /// The process cannot be started, dies, or is not several toolboxes.
    ///
    /// # Cancel safety
    /// The process ends.
    pub(crate) async fn start(
        process: ProcessSettings,
        name: &str,
        generation: u64,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        let open = Open {
            generation,
            config: "{}".to_owned(),
            stop_epoch: 0,
            limits: Limits {
                halt: HALT,
                silence: SILENCE,
                ..Limits::default()
            },
        };
        let manifest = Arc::new(Manifest {
            id: name.to_owned(),
            ..Manifest::default()
        });
        let (hello, stop) = (process.hello, process.stop.clone());
        let kept = keep(process, name, open.config.clone(), |sockets| ProcessContent {
            peer: Arc::new(Peer::new(&open, manifest, services, sockets.clone())),
            members: Some(Members::new(sockets)),
        });
        let trouble = |error: &dyn std::fmt::Display| cannot_start(&format!("program `{name}`"), error);
        let KeptProcess {
            peer,
            members,
            sockets,
        } = kept.await.map_err(|error| trouble(&error))?;
        let members = members.ok_or_else(|| trouble(&"it has no toolboxes"))?;
        // From here on, a drop of this value ends the process.
        let common = Self {
            peer,
            sockets,
            members,
        };
        let greeted = tokio::select! {
            greeted = greeted(&common.peer, &common.sockets, hello) => greeted,
            () = stop.cancelled() => Err(Failure::new(FailureKind::ToolboxClosed, "its program was ended")),
        };
        if let Err(failure) = greeted {
            end(&common.peer, &common.sockets, &stop).await;
            return Err(failure);
        }
        Ok(common)
    }

    /// Resolves when the process has ended; to a `Death` if it was not asked to end.
    pub(crate) fn died(&self) -> BoxFuture<'static, Option<Death>> {
        self.peer.died()
    }

    /// Kills the process and waits for its end.
    ///
    /// # Cancel safety
    /// The process is killed.
    pub(crate) async fn end_now(&self, why: &str) {
        self.kill(why);
        // An error means that the keeper is gone.
        _ = self.peer.rested.subscribe().wait_for(|rested| *rested).await;
    }

    fn kill(&self, why: &str) {
        self.peer.give_up(why.to_owned());
        self.sockets.wake.signal();
    }

    /// Closes all toolboxes of the process and ends it. A process that does not end in time is killed.
    ///
    /// # Cancel safety
    /// The closing goes on.
    pub(crate) async fn close(&self) {
        self.peer.begin_close();
        // An error means that the keeper is gone.
        _ = self.peer.rested.subscribe().wait_for(|rested| *rested).await;
    }
}

impl Drop for CommonProcess {
    fn drop(&mut self) {
        self.peer.begin_close();
        if !*self.sockets.greeted.borrow() {
            // The process has no toolbox to close, and may hang.
            self.kill("it is not needed any more");
        }
    }
}

impl Hosted {
    /// Opens one of the toolboxes of a process.
    ///
    /// # Errors
    /// The toolbox's own failure; or it took longer than `limits.open`; or the process cannot open this toolbox.
    ///
    /// # Cancel safety
    /// The toolbox is closed.
    pub(crate) async fn in_common(
        process: &CommonProcess,
        manifest: Arc<Manifest>,
        mut open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        open.limits.halt = HALT;
        let id = manifest.id.clone();
        let peer = process
            .members
            .join(&id, |lanes| Peer::new(&open, manifest, services, lanes))?;
        let toolbox = Self {
            peer,
            maker: Maker::Program,
            content_dir: None,
        };
        let seq = toolbox.peer.next_id();
        let is_open = toolbox.peer.will_open(seq)?;
        let opening = opening(&open, seq);
        let opening = opening.map_err(|error| cannot_start(&format!("toolbox `{id}`"), &error))?;
        toolbox.peer.opens();
        toolbox.peer.lanes.data(Order::Open(opening))?;
        let limit = open.limits.open;
        let opened = toolbox.await_open(is_open, limit + ANSWERING).await;
        let opened = opened.unwrap_or_else(|| Err(toolbox.late("open()", limit)));
        if opened.is_err() {
            // Closed completely before it is opened again.
            toolbox.close().await;
        }
        opened.map(|()| toolbox)
    }
}
