//! The host's functions, with a guard that prevents calls after `close`.
//!
//! Owns a copy of the host's table. Only [`Gate::shut`] blocks: it waits for the calls in progress. Read [`Gate`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ovos_toolbox_abi as abi;
use ovos_toolbox_wire::{Event, Progress};

use crate::bytes::{give, lend};

/// Access to the host, from `open` until `close` returns.
pub(crate) struct Gate {
    host: abi::Host,
    inside: AtomicU64,
    shut: AtomicBool,
}

// SAFETY: toolbox.h: every function of tb_host may be called from any thread, and `ctx` is only ever passed back to
// them. Tested in tests/contract (`a_thousand_runs_at_once`), whose runs complete on several threads.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl Gate {
    /// Copies the host's table, up to the size that the host has.
    ///
    /// # Safety
    /// `host` is null or points to a `tb_host` whose first field is its size, and its functions may be called until
    /// [`Gate::shut`] has returned.
    pub(crate) unsafe fn new(host: *const abi::Host) -> Option<Self> {
        if host.is_null() {
            return None;
        }
        // SAFETY: toolbox.h: a table begins with its size, whatever its length; read through a raw pointer because a
        // reference would claim all of our tb_host. Tested in tests/contract (`an_older_host`).
        let size = unsafe { std::ptr::addr_of!((*host).size).read() };
        let mut copy = abi::Host {
            size: 0,
            ctx: std::ptr::null_mut(),
            log: None,
            complete: None,
            progress: None,
            event: None,
            request: None,
        };
        let length = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .min(size_of::<abi::Host>());
        // SAFETY: the host's table has at least `known` bytes and so has ours; all fields are plain data for which
        // any prefix followed by zeroes (None, null) is a valid value. Same test.
        unsafe {
            std::ptr::copy_nonoverlapping(
                host.cast::<u8>(),
                std::ptr::addr_of_mut!(copy).cast::<u8>(),
                length,
            );
        }
        Some(Self {
            host: copy,
            inside: AtomicU64::new(0),
            shut: AtomicBool::new(false),
        })
    }

    /// Writes to the host's log.
    pub(crate) fn log(&self, level: u32, target: &str, message: &str) {
        self.pass(|host| {
            if let Some(log) = host.log {
                // SAFETY: toolbox.h: any thread; the strings live until the call returns; `pass` ensures that the call
                // returns before close does. Tested in tests/logging.rs.
                unsafe { log(host.ctx, level, lend(target), lend(message)) };
            }
        });
    }

    /// Completes a run. The caller ensures that this happens once.
    pub(crate) fn complete(&self, run: u64, status: abi::Status, json: String) {
        self.pass(|host| {
            if let Some(complete) = host.complete {
                // SAFETY: toolbox.h: any thread; the host releases the bytes. Tested in tests/contract.
                unsafe { complete(host.ctx, run, status, give(json)) };
            }
        });
    }

    /// Reports progress of a run.
    pub(crate) fn progress(&self, run: u64, progress: &Progress) {
        let Ok(json) = serde_json::to_string(progress) else {
            return;
        };
        self.pass(|host| {
            if let Some(report) = host.progress {
                // SAFETY: as in `log`. Tested in tests/contract (`progress_reaches_the_host`).
                unsafe { report(host.ctx, run, lend(&json)) };
            }
        });
    }

    /// Reports an event.
    pub(crate) fn event(&self, event: &Event) {
        let Ok(json) = serde_json::to_string(event) else {
            return;
        };
        self.pass(|host| {
            if let Some(report) = host.event {
                // SAFETY: as in `log`. Tested in tests/contract (`events_reach_the_host`).
                unsafe { report(host.ctx, lend(&json)) };
            }
        });
    }

    /// Sends a request to a bus topic; returns 0 if the host refuses it.
    pub(crate) fn request(&self, topic: &str, json: &str, timeout_ms: u32) -> u64 {
        self.pass(|host| match host.request {
            // SAFETY: as in `log`. Tested in tests/contract (`a_request_is_answered`).
            Some(request) => unsafe { request(host.ctx, lend(topic), lend(json), timeout_ms) },
            None => 0,
        })
        .unwrap_or(0)
    }

    /// Refuses further calls and waits until the last one has returned. Host functions never block, so this is short.
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        while self.inside.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    /// Counts itself in before it checks whether the gate is shut: either `shut` waits for this call, or this call sees
    /// that it is shut.
    fn pass<R>(&self, call: impl FnOnce(&abi::Host) -> R) -> Option<R> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let result = (!self.shut.load(Ordering::SeqCst)).then(|| call(&self.host));
        self.inside.fetch_sub(1, Ordering::SeqCst);
        result
    }
}
