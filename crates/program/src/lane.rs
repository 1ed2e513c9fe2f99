//! One end of a lane between the service and a toolbox's process, and the bytes that wait to be sent there.
//!
//! Sends at once, from any thread, and never blocks it: bytes that the socket does not take are kept, and the thread of
//! the lane sends them. Handles bytes only, not the content of frames. Read [`LaneSocket`].

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// If this many bytes wait, messages that may be lost (log lines, progress, bus messages) are dropped.
const MAX_CHATTER: usize = 1 << 20;

/// If this many bytes wait, nothing new is begun: calls are refused as when there are too many of them.
const MAX_BACKLOG: usize = 64 << 20;

/// How often the time limit is checked.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Sending never blocks, although the socket may be blocking for the thread that reads it. A peer that is gone causes
/// an error, never a signal.
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Wakes a thread that polls it.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new one, without a signal.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new() -> std::io::Result<Arc<Self>> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self(fd)))
    }

    /// Wakes the thread.
    pub fn signal(&self) {
        // Fails only after 2^64 signals without a read.
        _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Clears all signals since the last call.
    pub fn clear(&self) {
        let mut count = [0; 8];
        _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Sends bytes without ever blocking.
#[derive(Debug)]
pub struct LaneSocket {
    stream: UnixStream,
    state: Mutex<State>,
    /// The number of starts that were sent. Outside the lock, because a control lane must not wait for that.
    starts: AtomicU64,
    wake: Arc<EventFd>,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes that the socket did not take yet. The senders bound them: `MAX_BACKLOG` for starts and questions,
    /// `MAX_CHATTER` for messages that may be lost. A process that does not answer its control orders is killed. A
    /// process that several toolboxes share is not; for it, `Members` bounds the control orders.
    backlog: Vec<u8>,
    sent: usize,
    broken: bool,
}

impl LaneSocket {
    /// `wake` wakes the thread that calls [`LaneSocket::flush`] or [`LaneSocket::wait`].
    pub fn new(stream: UnixStream, wake: Arc<EventFd>) -> Self {
        Self {
            stream,
            state: Mutex::default(),
            starts: AtomicU64::new(0),
            wake,
        }
    }

    /// Sends bytes after those that were sent before.
    pub fn send(&self, bytes: &[u8]) {
        self.send_under(bytes, &mut self.state.lock());
    }

    /// Sends bytes that may be lost; false if they were dropped.
    pub fn chatter(&self, bytes: &[u8]) -> bool {
        let mut state = self.state.lock();
        let fits = state.backlog.len() - state.sent < MAX_CHATTER;
        if fits {
            self.send_under(bytes, &mut state);
        }
        fits
    }

    /// Sends a start, and counts it before another thread can send an order that refers to it.
    pub fn start(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        self.starts.fetch_add(1, Ordering::SeqCst);
        self.send_under(bytes, &mut state);
    }

    /// Whether so many bytes wait for the socket that nothing new should be begun.
    pub fn is_full(&self) -> bool {
        self.unsent() >= MAX_BACKLOG
    }

    /// The number of starts that were sent so far.
    pub fn starts(&self) -> u64 {
        self.starts.load(Ordering::SeqCst)
    }

    /// The bytes that wait for the socket.
    pub fn unsent(&self) -> usize {
        let state = self.state.lock();
        state.backlog.len() - state.sent
    }

    /// Whether something waits for the socket.
    pub fn is_behind(&self) -> bool {
        let state = self.state.lock();
        !state.broken && state.sent < state.backlog.len()
    }

    /// Sends the waiting bytes, as far as the socket takes them.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        let State {
            backlog,
            sent,
            broken,
            ..
        } = &mut *state;
        while *sent < backlog.len() && !*broken {
            match send(&self.stream, &backlog[*sent..], FLAGS) {
                Ok(count) => *sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The reader of this socket finds out and ends the connection.
                Err(_) => *broken = true,
            }
        }
        *backlog = Vec::new();
        *sent = 0;
    }

    /// Sends the waiting bytes; waits for the socket for at most `limit`.
    pub fn flush_within(&self, limit: Duration) {
        let until = Instant::now() + limit;
        while self.is_behind() && Instant::now() < until {
            let mut fds = [PollFd::new(&self.stream, PollFlags::OUT)];
            _ = poll(&mut fds, Some(&LOOK));
            self.flush();
        }
    }

    /// Waits until there is something to read (or the other end is gone), or the lane is woken. Meanwhile sends the
    /// waiting bytes as soon as the socket takes them. False if there is nothing to read.
    pub fn wait(&self) -> bool {
        let behind = if self.is_behind() {
            PollFlags::OUT
        } else {
            PollFlags::empty()
        };
        let mut fds = [
            PollFd::new(&self.stream, PollFlags::IN | behind),
            PollFd::new(&*self.wake, PollFlags::IN),
        ];
        _ = poll(&mut fds, None);
        let (stream, wake) = (fds[0].revents(), fds[1].revents());
        if !wake.is_empty() {
            self.wake.clear();
        }
        if stream.contains(PollFlags::OUT) {
            self.flush();
        }
        stream.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
    }

    /// Wakes the thread of the lane.
    pub fn wake(&self) {
        self.wake.signal();
    }

    /// What wakes the lane.
    pub fn woken(&self) -> &Arc<EventFd> {
        &self.wake
    }

    /// The socket from which the lane is read.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    fn send_under(&self, bytes: &[u8], state: &mut State) {
        if state.broken {
            return;
        }
        let mut rest = bytes;
        while state.sent == state.backlog.len() && !rest.is_empty() {
            match send(&self.stream, rest, FLAGS) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    state.broken = true;
                    return;
                }
            }
        }
        if !rest.is_empty() {
            let sent = state.sent;
            state.backlog.drain(..sent);
            state.sent = 0;
            state.backlog.extend_from_slice(rest);
            self.wake.signal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_the_socket_does_not_take_follows_in_order_and_no_sender_waits() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let socket = Arc::new(LaneSocket::new(ours, EventFd::new().unwrap()));
        let block = vec![7u8; 300_000];
        for number in 0..10u8 {
            socket.send(&[number]);
            socket.send(&block);
        }
        assert!(socket.is_behind());
        assert!(!socket.chatter(b"lost"), "too much waits already");
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            let mut piece = vec![0; 65_536];
            while all.len() < 10 * 300_001 {
                let count = theirs.read(&mut piece).unwrap();
                all.extend_from_slice(&piece[..count]);
            }
            all
        });
        while socket.is_behind() {
            socket.flush();
            std::thread::yield_now();
        }
        let all = reader.join().unwrap();
        for (number, piece) in all.chunks(300_001).enumerate() {
            assert_eq!(usize::from(piece[0]), number);
        }
    }

    #[test]
    fn what_waits_is_bounded_in_bytes() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let socket = LaneSocket::new(ours, EventFd::new().unwrap());
        let block = vec![7u8; MAX_BACKLOG / 4];
        let mut sent = 0;
        while !socket.is_full() {
            socket.start(&block);
            sent += 1;
            assert!(sent <= 5, "it is never full");
        }
        assert!(sent >= 4, "it is full with {sent} of 4 blocks");
    }

    #[test]
    fn a_socket_whose_other_end_is_gone_swallows() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let socket = LaneSocket::new(ours, EventFd::new().unwrap());
        socket.send(b"to a closed socket");
        assert!(!socket.is_behind());
    }
}
