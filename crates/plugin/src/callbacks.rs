//! The functions that a toolbox calls: log, complete, progress, event, request.
//!
//! Owns the C side of `tb_host`. Each callback reads its arguments, hands them to [`Plugin`] and returns; none blocks,
//! and none lets a panic out. The table and its context live as long as the process, since an abandoned toolbox may
//! call at any later time: then the plugin is gone and the call does nothing. Read [`table_for`] first.
#![expect(unsafe_code, reason = "functions that a foreign library calls")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ovos_toolbox_abi::{self as abi, Bytes, Status, Str};
use program::message_limits::MAX_SMALL_BYTES;

use crate::bytes::{Owned, Unreadable, borrow};
use crate::plugin::Plugin;

struct Context {
    plugin: Weak<Plugin>,
}

/// Makes the host's table for one instance. It is never freed (module docs): 64 bytes for each instance.
pub(crate) fn table_for(plugin: &Arc<Plugin>) -> &'static abi::Host {
    let context: &'static Context = Box::leak(Box::new(Context {
        plugin: Arc::downgrade(plugin),
    }));
    Box::leak(Box::new(abi::Host {
        size: size_of::<abi::Host>() as u64,
        ctx: std::ptr::from_ref(context).cast_mut().cast::<c_void>(),
        log: Some(log),
        complete: Some(complete),
        progress: Some(progress),
        event: Some(event),
        request: Some(request),
    }))
}

/// Runs `body` with the plugin behind `ctx`; returns `missing` if the plugin is gone or `body` panics.
fn with_plugin<T>(ctx: *mut c_void, missing: T, body: impl FnOnce(&Plugin) -> T) -> T {
    if ctx.is_null() {
        return missing;
    }
    // SAFETY: `ctx` is the pointer that `table_for` put into the table and never frees; toolbox.h says that it is
    // passed back unchanged. Only shared access happens through it, from any thread (`Weak` is Sync).
    let context = unsafe { &*ctx.cast_const().cast::<Context>() };
    let Some(plugin) = context.plugin.upgrade() else {
        return missing;
    };
    // A panic would abort the process at the `extern "C"` boundary.
    match catch_unwind(AssertUnwindSafe(|| body(&plugin))) {
        Ok(value) => value,
        Err(_) => {
            tracing::error!(
                toolbox = plugin.id(),
                "bug in the service: a callback of the toolbox panicked"
            );
            missing
        }
    }
}

/// # Safety
/// As `borrow`, for the length of the callback.
unsafe fn small<'a>(text: Str) -> Result<&'a str, Unreadable> {
    // SAFETY: by this function's contract.
    unsafe { borrow(text, MAX_SMALL_BYTES) }
}

unsafe extern "C" fn log(ctx: *mut c_void, level: u32, target: Str, message: Str) {
    with_plugin(ctx, (), |plugin| {
        // SAFETY: both are readable until this callback returns (toolbox.h, tb_str).
        let (target, message) = unsafe { (small(target), small(message)) };
        plugin.link.limits().log(level, target.unwrap_or(""), message);
    });
}

unsafe extern "C" fn complete(ctx: *mut c_void, run: u64, status: Status, json: Bytes) {
    // SAFETY: we are the receiver of these bytes and nothing else releases them (toolbox.h, tb_bytes). Taken over before
    // anything else, so that they are released on every way out.
    let json = unsafe { Owned::new(json) };
    with_plugin(ctx, (), |plugin| plugin.complete(run, status, &json));
}

unsafe extern "C" fn progress(ctx: *mut c_void, run: u64, json: Str) {
    with_plugin(ctx, (), |plugin| {
        // SAFETY: readable until this callback returns (toolbox.h, tb_str).
        plugin.progress(run, unsafe { small(json) });
    });
}

unsafe extern "C" fn event(ctx: *mut c_void, json: Str) {
    with_plugin(ctx, (), |plugin| {
        // SAFETY: readable until this callback returns (toolbox.h, tb_str).
        plugin.link.event_text(unsafe { small(json) });
    });
}

unsafe extern "C" fn request(ctx: *mut c_void, topic: Str, json: Str, timeout_ms: u32) -> u64 {
    with_plugin(ctx, 0, |plugin| {
        // SAFETY: both are readable until this callback returns (toolbox.h, tb_str).
        let (topic, json) = unsafe { (small(topic), small(json)) };
        plugin.request(topic, json, Duration::from_millis(u64::from(timeout_ms)))
    })
}
