//! File descriptors: how many this process may open, and a reserve that only stops and `safe_stop` use.
//!
//! Whatever uses descriptors up (clients of the embedded bus, a leak in a library), what brings a machine to rest and
//! records it still gets some. Children get the limit that this process had: programs that use `select`, or that close
//! every possible descriptor, do not expect a large one. Read [`raise`] and [`spare`].

use std::fs::File;
use std::io;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The largest limit that this process gives itself.
const MOST: u64 = 65_536;

/// How many descriptors are kept in reserve, and how many each use of it gets: the start of a process takes four.
const RESERVE: usize = 24;
const EACH: usize = 6;

/// The limit before it was raised.
static FORMER: OnceLock<Rlimit> = OnceLock::new();

/// The reserve.
static RESERVED: Mutex<Reserve> = Mutex::new(Reserve {
    held: Vec::new(),
    uses: 0,
});

struct Reserve {
    /// Open files that are closed when their descriptors are needed.
    held: Vec<File>,
    /// How many parts of it are in use.
    uses: usize,
}

impl Reserve {
    fn fill(&mut self) -> io::Result<()> {
        let full = RESERVE.saturating_sub(self.uses * EACH);
        while self.held.len() < full {
            self.held.push(File::open("/dev/null")?);
        }
        Ok(())
    }
}

/// Raises the soft limit of descriptors to the hard one and fills the reserve. Returns the limit in force. Call it once,
/// before any toolbox is started; later calls change nothing.
///
/// # Errors
/// The limit cannot be raised, or there is no descriptor for the reserve. The limit before stays in force then.
pub fn raise() -> io::Result<usize> {
    let limit = *FORMER.get_or_init(|| getrlimit(Resource::Nofile));
    let hard = limit.maximum.unwrap_or(MOST).min(MOST);
    if limit.current.is_some_and(|soft| soft < hard) {
        let current = Some(hard);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    }
    RESERVED.lock().fill()?;
    Ok(at_present())
}

/// The limit in force.
#[must_use]
pub fn at_present() -> usize {
    let soft = getrlimit(Resource::Nofile).current.unwrap_or(MOST);
    usize::try_from(soft.min(MOST)).unwrap_or(usize::MAX)
}

/// A part of the reserve that is free to be used until this is dropped. It is a promise between the parts of this
/// process, not one of the kernel: whatever else opens a file at that moment may take it.
#[derive(Debug)]
#[must_use]
pub struct Spare(());

/// Frees a part of the reserve, for a stop or for what brings a machine to rest.
pub fn spare() -> Spare {
    let mut reserve = RESERVED.lock();
    reserve.uses += 1;
    let left = reserve.held.len().saturating_sub(EACH);
    let freed = reserve.held.split_off(left);
    drop(freed);
    Spare(())
}

impl Drop for Spare {
    fn drop(&mut self) {
        let mut reserve = RESERVED.lock();
        reserve.uses -= 1;
        if FORMER.get().is_some()
            && let Err(error) = reserve.fill()
        {
            // The next use of the reserve tries again.
            tracing::debug!(%error, "the reserve of descriptors is not full");
        }
    }
}

/// Gives a child of this process the limit that this process had before it raised its own.
pub(crate) fn give_back(child: u32) {
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let (Some(former), Some(pid)) = (FORMER.get(), pid) {
        // Refused only if the child has become another user's, and then it keeps the larger limit.
        _ = prlimit(Some(pid), Resource::Nofile, *former);
    }
}
