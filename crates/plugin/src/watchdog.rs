//! Notices calls into a toolbox that do not return.
//!
//! One thread for the process looks at all toolboxes, and only while one of them is busy: an idle service has no timer
//! here, and a call pays two atomic stores. It logs, and never interferes. Read [`Meter`] first.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often the thread looks at busy toolboxes.
const TICK: Duration = Duration::from_millis(100);

/// A function of a toolbox, for the log.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum ToolboxFunction {
    Open,
    Tools,
    Plan,
    Start,
    Conclude,
    Message,
    Response,
    MayClose,
    Close,
    Cancel,
    Halt,
    Resume,
}

const NAMES: [&str; 12] = [
    "open",
    "tools",
    "plan",
    "start",
    "conclude",
    "message",
    "on_response",
    "may_close",
    "close",
    "cancel",
    "halt",
    "resume",
];

/// Knows whether a thread is inside a toolbox, and since when.
#[derive(Debug)]
pub(crate) struct Meter {
    toolbox: String,
    generation: u64,
    limit: Duration,
    /// When the call began, in milliseconds on the process's clock; 0 while nothing is called.
    since: AtomicU64,
    calling: AtomicU8,
    warned: AtomicBool,
}

impl Meter {
    /// A meter whose calls are logged if they take longer than `limit`.
    pub(crate) fn new(toolbox: &str, generation: u64, limit: Duration) -> Arc<Self> {
        let meter = Arc::new(Self {
            toolbox: toolbox.to_owned(),
            generation,
            limit,
            since: AtomicU64::new(0),
            calling: AtomicU8::new(0),
            warned: AtomicBool::new(false),
        });
        WATCH.add(&meter);
        meter
    }

    /// Measures `call`.
    pub(crate) fn during<T>(&self, calling: ToolboxFunction, call: impl FnOnce() -> T) -> T {
        self.calling.store(calling as u8, Ordering::Relaxed);
        self.since.store(now(), Ordering::SeqCst);
        WATCH.arm();
        let result = call();
        let since = self.since.swap(0, Ordering::SeqCst);
        if self.warned.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                toolbox = self.toolbox,
                generation = self.generation,
                function = NAMES[calling as usize],
                elapsed_ms = now().saturating_sub(since),
                "the toolbox returned late from a call that must not block"
            );
        }
        result
    }

    /// Whether a call is under way.
    pub(crate) fn is_inside(&self) -> bool {
        self.since.load(Ordering::SeqCst) > 0
    }

    /// The call that has been under way for longer than `limit`. Opening and closing have limits of their own.
    pub(crate) fn overdue(&self, limit: Duration) -> Option<&'static str> {
        let since = self.since.load(Ordering::SeqCst);
        let calling = self.calling.load(Ordering::Relaxed);
        let is_late = since > 0 && u128::from(now().saturating_sub(since)) > limit.as_millis();
        let is_ours = calling != ToolboxFunction::Open as u8 && calling != ToolboxFunction::Close as u8;
        (is_late && is_ours).then(|| NAMES[usize::from(calling) % NAMES.len()])
    }

    /// Logs a call that takes too long; true while a call is under way.
    fn look(&self) -> bool {
        let since = self.since.load(Ordering::SeqCst);
        if since == 0 {
            return false;
        }
        let elapsed = now().saturating_sub(since);
        if u128::from(elapsed) >= self.limit.as_millis() && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                toolbox = self.toolbox,
                generation = self.generation,
                function = NAMES[usize::from(self.calling.load(Ordering::Relaxed)) % NAMES.len()],
                elapsed_ms = elapsed,
                "the toolbox has not returned from a call that must not block; its other calls wait"
            );
        }
        true
    }
}

/// Milliseconds since the first look at the clock, counted from 1.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
}

static WATCH: Watch = Watch {
    meters: Mutex::new(Vec::new()),
    armed: AtomicBool::new(false),
    thread: OnceLock::new(),
};

struct Watch {
    meters: Mutex<Vec<Weak<Meter>>>,
    armed: AtomicBool,
    /// `None` if the thread could not be started: then nothing is watched.
    thread: OnceLock<Option<Thread>>,
}

impl Watch {
    fn add(&'static self, meter: &Arc<Meter>) {
        self.meters.lock().push(Arc::downgrade(meter));
        self.thread.get_or_init(|| {
            let spawned = thread::Builder::new()
                .name("tb-watchdog".to_owned())
                .spawn(|| self.run());
            match spawned {
                Ok(handle) => Some(handle.thread().clone()),
                Err(error) => {
                    tracing::error!(%error, "cannot start the watchdog thread: toolboxes that hang will not be noticed");
                    None
                }
            }
        });
    }

    fn arm(&self) {
        if !self.armed.load(Ordering::SeqCst)
            && !self.armed.swap(true, Ordering::SeqCst)
            && let Some(Some(thread)) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self) {
        loop {
            if self.armed.load(Ordering::SeqCst) {
                thread::park_timeout(TICK);
            } else {
                thread::park();
                continue;
            }
            if !self.look() {
                self.armed.store(false, Ordering::SeqCst);
                // A call that began between the look and the store saw `armed` and did not wake us: look again.
                if self.look() {
                    self.armed.store(true, Ordering::SeqCst);
                }
            }
        }
    }

    fn look(&self) -> bool {
        let mut meters = self.meters.lock();
        let mut busy = false;
        meters.retain(|meter| match meter.upgrade() {
            Some(meter) => {
                busy |= meter.look();
                true
            }
            None => false,
        });
        busy
    }
}
