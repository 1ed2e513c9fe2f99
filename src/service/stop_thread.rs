//! The thread that serves stops. Read [`StopThread`].

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A thread that does little else than to serve stops, so that it sleeps most of the time: on a machine whose processors are busy the
/// system runs such a thread at once, and lets the others wait for their turn. It ends when this is dropped.
pub(super) struct StopThread {
    handle: Handle,
    _end: DropGuard,
}

impl StopThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread, or no descriptor to wait with.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let over = end.clone();
        thread::Builder::new()
            .name("stops".to_owned())
            .spawn(move || runtime.block_on(over.cancelled()))?;
        Ok(Self {
            handle,
            _end: end.drop_guard(),
        })
    }

    /// Where tasks of this thread are spawned.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}
