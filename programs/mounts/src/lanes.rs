//! The two sockets to the service, and the threads that read and write them. Read [`Lanes::take`].
//!
//! The control lane has a thread that answers `beat`, `halt` and `resume` by itself: nothing that a server does, and nothing
//! that the rest of this program does, delays it. A mount moves nothing, so a halt has nothing to do.

use std::io::{BufReader, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use protocol::{Answer, MAX_CONTROL, MAX_DATA, Notice, Order};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use tokio::sync::mpsc;

use crate::frames::{self, frame};

/// The descriptors of the sockets, as the service sets them.
const DATA: i32 = 3;
const CONTROL: i32 = 4;

/// If this many bytes wait for the data lane, notices that may be lost are dropped.
const FULL: usize = 1 << 20;

/// The input from the lanes.
pub(crate) enum Brought {
    /// An order of the data lane, or an order of the control lane about a run.
    Order(Order),
    /// A lane has ended, so the program ends: the service is gone, or a frame could not be read.
    End(Option<String>),
}

/// The two sockets.
pub(crate) struct Lanes {
    data: UnixStream,
    control: UnixStream,
}

impl Lanes {
    /// Takes the sockets from descriptors 3 and 4. The processes that this one starts do not inherit them, because the service
    /// waits for the end of both.
    ///
    /// # Errors
    /// The descriptors are not sockets.
    pub(crate) fn take() -> std::io::Result<Self> {
        // This is the only safe way to take a descriptor of which only the number is known.
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        // If one of these descriptors was free, the call above has just taken it, and it already has an owner.
        if [DATA, CONTROL].contains(&own.as_raw_fd()) {
            return Err(std::io::ErrorKind::NotConnected.into());
        }
        let take = |number: i32| -> std::io::Result<UnixStream> {
            let owned: OwnedFd = pidfd_getfd(&own, number, PidfdGetfdFlags::empty())?;
            nix::unistd::close(number)?;
            let socket = UnixStream::from(owned);
            socket.peer_addr()?;
            Ok(socket)
        };
        Ok(Self {
            data: take(DATA)?,
            control: take(CONTROL)?,
        })
    }

    /// Sends the first notice, `hello`, and starts the threads.
    ///
    /// # Errors
    /// The service is gone.
    pub(crate) fn serve(
        self,
        hello: &Notice,
    ) -> std::io::Result<(NoticeSender, mpsc::UnboundedReceiver<Brought>)> {
        let Self { data, control } = self;
        (&data).write_all(&frame(hello))?;
        // The channel needs no limit: the service waits for answers, and holds back starts beyond `max_queued`.
        let (brings, brought) = mpsc::unbounded_channel();
        let notices = NoticeSender::start(data.try_clone()?);
        spawn("control", brings.clone(), |brings| serve_control(control, brings))?;
        spawn("data", brings, |brings| {
            read(data, MAX_DATA, |order| {
                // This fails only when the program ends.
                _ = brings.send(Brought::Order(order));
                Ok(())
            })
        })?;
        Ok((notices, brought))
    }
}

/// Starts the thread of a lane. If the thread ends, even by a panic, the program ends.
fn spawn(
    lane: &'static str,
    brings: mpsc::UnboundedSender<Brought>,
    serve: impl FnOnce(&mpsc::UnboundedSender<Brought>) -> Option<String> + Send + 'static,
) -> std::io::Result<()> {
    thread::Builder::new().name(lane.to_owned()).spawn(move || {
        let end = catch_unwind(AssertUnwindSafe(|| serve(&brings)));
        let end = end.unwrap_or_else(|_| Some("a bug of ovos-tools: its thread panicked".to_owned()));
        // This fails only when the program ends.
        _ = brings.send(Brought::End(end.map(|why| format!("the {lane} lane: {why}"))));
    })?;
    Ok(())
}

/// Serves only the control lane. Returns the error at its end, if there was one.
fn serve_control(socket: UnixStream, brings: &mpsc::UnboundedSender<Brought>) -> Option<String> {
    let answers = socket.try_clone();
    match answers {
        Err(error) => Some(error.to_string()),
        Ok(mut answers) => read(socket, MAX_CONTROL, |order| {
            let answer = match order {
                Order::Beat { seq } => Notice::Beat { seq },
                Order::Halt {
                    seq,
                    emergency,
                    stop_epoch,
                    ..
                } => {
                    if emergency {
                        _ = brings.send(Brought::Order(Order::Epoch { stop_epoch }));
                    }
                    Notice::Halted {
                        seq,
                        answer: Answer::Ok(()),
                    }
                }
                Order::Resume { seq } => Notice::Resumed {
                    seq,
                    answer: Answer::Ok(()),
                },
                other => {
                    _ = brings.send(Brought::Order(other));
                    return Ok(());
                }
            };
            answers.write_all(&frame(&answer))
        }),
    }
}

/// Reads orders until the end of the lane. Returns the error, if there was one.
fn read(
    socket: UnixStream,
    limit: usize,
    mut take: impl FnMut(Order) -> std::io::Result<()>,
) -> Option<String> {
    let mut from = BufReader::new(socket);
    loop {
        match frames::read(&mut from, limit) {
            Ok(Some(order)) => {
                if let Err(error) = take(order) {
                    return Some(error.to_string());
                }
            }
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// Writes notices to the data lane in a thread of its own, because the service may read slowly.
#[derive(Clone)]
pub(crate) struct NoticeSender {
    frames: Sender<WriterItem>,
    waiting: Arc<AtomicUsize>,
}

enum WriterItem {
    Frame(Vec<u8>),
    /// Reports when everything before it is written.
    Flush(Sender<()>),
}

impl NoticeSender {
    pub(crate) fn start(socket: UnixStream) -> Self {
        // The channel needs no limit: `waiting` limits the notices that may be lost, and there are no more answers than orders.
        let (frames, written) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counts = waiting.clone();
        // If the thread cannot be started, nothing is written, and the service ends the program.
        _ = thread::Builder::new()
            .name("notices".to_owned())
            .spawn(move || write(socket, &written, &counts));
        Self { frames, waiting }
    }

    /// Queues a notice that must arrive.
    pub(crate) fn say(&self, notice: &Notice) {
        let frame = frame(notice);
        self.waiting.fetch_add(frame.len(), Ordering::Relaxed);
        // This fails only when the program ends.
        _ = self.frames.send(WriterItem::Frame(frame));
    }

    /// Queues a notice that may be lost. Returns `false` if it was dropped.
    pub(crate) fn say_or_drop(&self, notice: &Notice) -> bool {
        let room = self.waiting.load(Ordering::Relaxed) < FULL;
        if room {
            self.say(notice);
        }
        room
    }

    /// Waits until everything is written, but not longer than `limit`. Blocks.
    pub(crate) fn flush(&self, limit: Duration) {
        let (done, is_done) = channel();
        if self.frames.send(WriterItem::Flush(done)).is_ok() {
            _ = is_done.recv_timeout(limit);
        }
    }
}

fn write(mut socket: UnixStream, written: &Receiver<WriterItem>, waiting: &AtomicUsize) {
    for next in written {
        match next {
            WriterItem::Frame(frame) => {
                waiting.fetch_sub(frame.len(), Ordering::Relaxed);
                if socket.write_all(&frame).is_err() {
                    // The thread that reads the lane ends the program.
                    return;
                }
            }
            WriterItem::Flush(done) => _ = done.send(()),
        }
    }
}
