//! The stand-in host of a harness: its functions, and what the toolbox sent to them.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_abi as abi;
use ovos_toolbox_abi::{Bytes, Status, Str};
use ovos_toolbox_wire::{Event, Failure, Progress};
use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use super::outcome::{CloseReport, RunOutcome};
use crate::bytes::{take, text};

/// A line of the host's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// One of the values of [`abi::level`].
    pub level: u32,
    /// The log target.
    pub target: String,
    /// The text.
    pub message: String,
}

/// The script that answers requests for a topic; if it returns `None`, the request gets no answer.
pub type Responder = Arc<dyn Fn(Value) -> Option<Result<Value, Failure>> + Send + Sync>;

/// What the toolbox has sent.
#[derive(Default)]
pub(super) struct Received {
    pub(super) ended: HashMap<u64, RunOutcome>,
    pub(super) progress: HashMap<u64, Vec<Progress>>,
    pub(super) events: Vec<Event>,
    pub(super) logs: Vec<LogLine>,
    expected: HashSet<u64>,
    strays: usize,
    closed: bool,
    after_close: usize,
    scripts: HashMap<String, Responder>,
    requests: u64,
    answers: Vec<(u64, Result<Value, Failure>)>,
}

/// The host's side. The pointer in its table keeps it alive forever, so that a call after close is counted instead of
/// crashing.
#[derive(Default)]
pub(super) struct Peer {
    seen: Mutex<Received>,
    changed: Condvar,
}

impl Peer {
    /// The table to pass to `open`.
    pub(super) fn host(self: &Arc<Self>) -> abi::Host {
        abi::Host {
            size: size_of::<abi::Host>() as u64,
            ctx: Arc::into_raw(Arc::clone(self)).cast_mut().cast::<c_void>(),
            log: Some(log),
            complete: Some(complete),
            progress: Some(progress),
            event: Some(event),
            request: Some(request),
        }
    }

    pub(super) fn see<R>(&self, look: impl FnOnce(&Received) -> R) -> R {
        look(&self.seen.lock())
    }

    /// Waits until `look` finds something.
    pub(super) fn wait<R>(&self, at_most: Duration, look: impl Fn(&Received) -> Option<R>) -> Option<R> {
        let mut found = None;
        let mut seen = self.seen.lock();
        let looks = |seen: &mut Received| {
            found = look(seen);
            found.is_none()
        };
        self.changed.wait_while_for(&mut seen, looks, at_most);
        found
    }

    pub(super) fn expect(&self, run: u64) {
        self.seen.lock().expected.insert(run);
    }

    pub(super) fn refused(&self, run: u64) {
        self.seen.lock().expected.remove(&run);
    }

    pub(super) fn script(&self, topic: &str, script: Responder) {
        self.seen.lock().scripts.insert(topic.to_string(), script);
    }

    pub(super) fn take_answers(&self) -> Vec<(u64, Result<Value, Failure>)> {
        std::mem::take(&mut self.seen.lock().answers)
    }

    pub(super) fn close(&self) {
        self.seen.lock().closed = true;
    }

    pub(super) fn closed(&self) -> CloseReport {
        let seen = self.seen.lock();
        let mut unfinished: Vec<u64> = seen
            .expected
            .iter()
            .filter(|run| !seen.ended.contains_key(run))
            .copied()
            .collect();
        unfinished.sort_unstable();
        CloseReport {
            unfinished,
            stray_completions: seen.strays,
            calls_after_close: seen.after_close,
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut Received) -> R) -> R {
        let mut seen = self.seen.lock();
        if seen.closed {
            seen.after_close += 1;
        }
        let result = change(&mut seen);
        self.changed.notify_all();
        result
    }
}

/// Runs a host function: converts the toolbox's pointer to the peer and catches panics.
///
/// # Safety
/// `ctx` came from [`Peer::host`].
unsafe fn on_peer<R>(ctx: *mut c_void, fallback: R, work: impl FnOnce(&Peer) -> R) -> R {
    // SAFETY: the pointer holds a count of the Arc that is never given back.
    let peer = unsafe { &*ctx.cast::<Peer>() };
    catch_unwind(AssertUnwindSafe(|| work(peer))).unwrap_or(fallback)
}

/// The text that a toolbox sent. If it is not UTF-8, which is the toolbox's fault, the test sees "(not UTF-8)" instead.
fn readable(text: Result<&str, crate::ToolError>) -> &str {
    text.unwrap_or("(not UTF-8)")
}

unsafe extern "C" fn log(ctx: *mut c_void, level: u32, target: Str, message: Str) {
    // SAFETY: toolbox.h: ctx is ours, and the strings live until this function returns.
    unsafe {
        on_peer(ctx, (), |peer| {
            let target = readable(text(target)).to_string();
            let message = readable(text(message)).to_string();
            peer.change(|seen| {
                seen.logs.push(LogLine {
                    level,
                    target,
                    message,
                })
            });
        });
    }
}

unsafe extern "C" fn complete(ctx: *mut c_void, run: u64, status: Status, json: Bytes) {
    // SAFETY: toolbox.h: ctx is ours, and the bytes are ours to release, which `take` does.
    unsafe {
        on_peer(ctx, (), |peer| {
            let text = take(json).unwrap_or_else(|_| "(not UTF-8)".to_string());
            peer.change(|seen| {
                if !seen.expected.contains(&run) || seen.ended.contains_key(&run) {
                    seen.strays += 1;
                } else {
                    seen.ended.insert(run, RunOutcome { status, text });
                }
            });
        });
    }
}

unsafe extern "C" fn progress(ctx: *mut c_void, run: u64, json: Str) {
    // SAFETY: toolbox.h: ctx is ours, and the string lives until this function returns.
    unsafe {
        on_peer(ctx, (), |peer| {
            if let Ok(progress) = serde_json::from_str(readable(text(json))) {
                peer.change(|seen| seen.progress.entry(run).or_default().push(progress));
            }
        });
    }
}

unsafe extern "C" fn event(ctx: *mut c_void, json: Str) {
    // SAFETY: toolbox.h: ctx is ours, and the string lives until this function returns.
    unsafe {
        on_peer(ctx, (), |peer| {
            if let Ok(event) = serde_json::from_str(readable(text(json))) {
                peer.change(|seen| seen.events.push(event));
            }
        });
    }
}

unsafe extern "C" fn request(ctx: *mut c_void, topic: Str, json: Str, _timeout_ms: u32) -> u64 {
    // SAFETY: toolbox.h: ctx is ours, and the strings live until this function returns.
    unsafe {
        on_peer(ctx, 0, |peer| {
            let topic = readable(text(topic)).to_string();
            let Ok(data) = serde_json::from_str(readable(text(json))) else {
                return 0;
            };
            let Some(script) = peer.see(|seen| seen.scripts.get(&topic).cloned()) else {
                return 0;
            };
            let answer = script(data);
            peer.change(|seen| {
                seen.requests += 1;
                let id = seen.requests;
                seen.answers.extend(answer.map(|answer| (id, answer)));
                id
            })
        })
    }
}
