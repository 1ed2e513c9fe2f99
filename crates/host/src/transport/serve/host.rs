//! What the threads of a toolbox's process share, and the thread of its data socket. Read [`Host`].

use std::convert::Infallible;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_abi::level;
use ovos_toolbox_wire::Failure;
use parking_lot::Mutex;
use protocol::{Functions, MAX_DATA, Notice, Opening, Order};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::runtime::Handle;

use super::outlets::Outlets;
use super::{LOOK, kill_self};
use crate::contract::services::Limits;
use crate::ffi::in_process::Open;
use crate::ffi::load::Library;
use crate::ffi::server::{Notices, Server};
use crate::transport::frame::Cutter;

/// What the threads of the process share.
pub(super) struct Host {
    pub(super) file: PathBuf,
    pub(super) outlets: Arc<Outlets>,
    pub(super) server: Arc<Server>,
    pub(super) silence_ms: AtomicU64,
    pub(super) config: Mutex<String>,
    pub(super) leaving: AtomicBool,
    /// Why the process could not be confined as it should be. Nothing is loaded then.
    unconfined: Option<String>,
}

impl Host {
    /// `unconfined`: why the process could not be confined as it should be.
    pub(super) fn new(
        file: &Path,
        outlets: Arc<Outlets>,
        runtime: &Handle,
        unconfined: Option<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            server: Server::new(outlets.clone(), runtime.clone()),
            outlets,
            silence_ms: AtomicU64::new(500),
            config: Mutex::default(),
            leaving: AtomicBool::new(false),
            unconfined,
        }
    }

    /// Says something in the log about this process.
    pub(super) fn warn(&self, message: &str) {
        self.outlets.log(level::WARN, "toolbox_host", message.to_owned());
    }

    /// Reads the data socket until it ends.
    pub(super) fn read_data(&self, stream: UnixStream, runtime: &Handle) {
        let Err(error) = self.try_read_data(stream, runtime);
        // Whatever it is (a service that dies resets the connection), what moves is brought to rest first.
        self.warn(&format!("the data connection ended: {error}"));
        self.leave();
    }

    fn try_read_data(&self, mut stream: UnixStream, runtime: &Handle) -> std::io::Result<Infallible> {
        let mut cutter = Cutter::new(MAX_DATA);
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => cutter.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            while let Some(order) = cutter.read().map_err(std::io::Error::other)? {
                match order {
                    Order::Open(opening) => {
                        let seq = opening.seq;
                        let answer = runtime.block_on(self.open(opening)).into();
                        self.outlets.data(&Notice::Opened { seq, answer });
                    }
                    Order::Close { seq } => runtime.block_on(self.close(seq)),
                    order => self.server.data(order),
                }
            }
        }
    }

    /// Has the control thread bring everything to rest and end the process.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.outlets.bell.ring();
    }

    async fn open(&self, opening: Opening) -> Result<Functions, Failure> {
        let Opening {
            seq: _,
            generation,
            config,
            stop_epoch,
            max_result_bytes,
            max_queued,
            max_messages,
            max_requests,
            open_ms,
            close_ms,
            silence_ms,
        } = opening;
        if let Some(reason) = &self.unconfined {
            return Err(Failure::new("PermissionError", reason));
        }
        self.silence_ms.store(silence_ms, Ordering::SeqCst);
        let config = config.into_text();
        self.config.lock().clone_from(&config);
        let file = self.file.clone();
        let loading = tokio::task::spawn_blocking(move || Library::load(&file, &file));
        let loaded = loading
            .await
            .map_err(|e| Failure::new("InternalError", e.to_string()))?;
        let library = Arc::new(loaded.map_err(|e| Failure::new("ToolboxError", e.to_string()))?);
        let limits = Limits {
            max_result_bytes,
            max_queued,
            max_messages,
            max_requests,
            open: Duration::from_millis(open_ms),
            close: Duration::from_millis(close_ms),
            // The service waits for the answer to a halt, and decides what it means when none comes.
            halt: Duration::from_secs(10),
            silence: Duration::from_millis(silence_ms),
        };
        let open = Open {
            generation,
            config,
            stop_epoch,
            limits,
        };
        let functions = library.functions();
        self.server.open(library, open).await?;
        Ok(functions)
    }

    async fn close(&self, seq: u64) {
        let in_time = self.server.close().await;
        self.outlets.data(&Notice::Closed { seq, in_time });
        let data = &self.outlets.data;
        let until = Instant::now() + Duration::from_secs(1);
        while data.is_behind() && Instant::now() < until {
            let socket = data.as_fd();
            let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
            _ = poll(&mut fds, Some(&timespec(LOOK)));
            data.flush();
        }
        if in_time {
            std::process::exit(0);
        }
        // A function of the toolbox is still running, and destructors would run beside it.
        kill_self()
    }
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
