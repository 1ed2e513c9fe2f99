//! The C table of a toolbox: every function a host can call, each behind `catch_unwind`.
//!
//! Owns the pointers: checks them on entry and turns them into references, so that `Instance` sees only text. No panic
//! crosses the boundary, no memory of the host is kept, and the host frees none of ours. Read [`Table`].

use std::ffi::c_void;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ovos_toolbox_abi as abi;
use ovos_toolbox_abi::{Bytes, Status, Str, status};

use crate::bytes::{give, lend, nothing, text};
use crate::gate::Gate;
use crate::instance::{Instance, log_failure, on, parse_config};
use crate::role::Leash;
use crate::{ToolError, Toolbox};

/// The table of a toolbox; lives as long as the library.
pub struct Table {
    table: Option<Box<abi::Toolbox>>,
    _manifest: String,
}

// SAFETY: the table is never written after `of`, and its pointers are to functions and to `_manifest`, which lives
// beside it. Tested in tests/contract (`two_instances_do_not_mix`), which uses one table from several threads.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Makes the table of `T`. If the manifest of `T` panics, the result holds no table.
    #[must_use]
    pub fn of<T: Toolbox>() -> Self {
        let manifest = shield(|| {
            let mut manifest = T::manifest();
            if manifest.config_schema.is_none() {
                manifest.config_schema = Some(crate::schema::argument_schema::<T::Config>());
            }
            Ok(serde_json::to_string(&manifest)?)
        })
        .ok();
        let table = manifest.as_deref().map(|text| {
            Box::new(abi::Toolbox {
                size: size_of::<abi::Toolbox>() as u64,
                manifest: lend(text),
                open: Some(open::<T>),
                tools: Some(tools::<T>),
                plan: Some(plan::<T>),
                start: Some(start::<T>),
                cancel: Some(cancel::<T>),
                conclude: Some(conclude::<T>),
                halt: if T::HALTS { Some(halt::<T>) } else { None },
                resume: Some(resume::<T>),
                message: Some(message::<T>),
                on_response: Some(on_response::<T>),
                may_close: Some(may_close::<T>),
                safe_stop: Some(safe_stop::<T>),
                close: Some(close::<T>),
            })
        });
        Self {
            table,
            _manifest: manifest.unwrap_or_default(),
        }
    }

    /// The return value of `toolbox_entry_v1`: the table, or null if there is none because the manifest panicked.
    #[must_use]
    pub fn as_ptr(&self) -> *const abi::Toolbox {
        self.table.as_deref().map_or(std::ptr::null(), std::ptr::from_ref)
    }
}

/// The work of a role.
pub type RoleWork = fn(Leash);

/// Does the work of a role; `toolbox_role_v1` of [`export_toolbox!`](crate::export_toolbox).
#[must_use]
pub fn role(role: Str, leash: std::ffi::c_int, roles: &[(&str, RoleWork)]) -> Status {
    // SAFETY: toolbox.h: the socket is this function's to close, and nothing else uses it.
    let leash = Leash::new(unsafe { OwnedFd::from_raw_fd(leash) }.into());
    // SAFETY: toolbox.h: a tb_str lives until the call returns.
    let Ok(name) = (unsafe { text(role) }) else {
        return status::BAD_ARGS;
    };
    let Some((_, work)) = roles.iter().find(|(known, _)| *known == name) else {
        return status::UNKNOWN_TOOL;
    };
    match catch_unwind(AssertUnwindSafe(|| work(leash))) {
        Ok(()) => status::OK,
        Err(_) => status::PANIC,
    }
}

/// Runs `work` and turns a panic into an error.
fn shield<R>(work: impl FnOnce() -> Result<R, ToolError>) -> Result<R, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(ToolError::panic(payload)))
}

/// Writes the output or the failure to `out` and returns the status.
///
/// # Safety
/// `out` is null or valid for one write.
unsafe fn report(out: *mut Bytes, result: Result<Option<String>, ToolError>) -> Status {
    let (status, text) = match result {
        Ok(output) => (status::OK, output),
        Err(error) => (error.status(), Some(error.json())),
    };
    if let Some(text) = text
        && !out.is_null()
    {
        // SAFETY: toolbox.h: `out` and `error` are the caller's and are written before the function returns. Tested
        // in tests/contract (`bad_arguments_are_refused`).
        unsafe { out.write(give(text)) };
    }
    status
}

/// # Safety
/// `instance` came from `open::<T>` and `close` has not been called.
unsafe fn instance<'a, T: Toolbox>(instance: *mut c_void) -> Result<&'a Instance<T>, ToolError> {
    if instance.is_null() {
        return Err(ToolError::bad_args("the instance is null"));
    }
    // SAFETY: toolbox.h: every function but open and safe_stop is called with what open returned, and before close;
    // only shared references are made, so calls from several threads may overlap. Tested in tests/contract
    // (`a_thousand_runs_at_once`).
    Ok(unsafe { &*instance.cast::<Instance<T>>() })
}

/// Calls into an open instance and writes the answer to `out`.
///
/// # Safety
/// See `report` and `instance`.
unsafe fn call<T: Toolbox>(
    ptr: *mut c_void,
    out: *mut Bytes,
    work: impl FnOnce(&Instance<T>) -> Result<Option<String>, ToolError>,
) -> Status {
    let result = shield(|| {
        // SAFETY: the caller's duty, passed on.
        let instance = unsafe { instance::<T>(ptr) }?;
        on(&instance.dispatch, || work(instance))
    });
    // SAFETY: the caller's duty, passed on.
    unsafe { report(out, result) }
}

unsafe extern "C" fn open<T: Toolbox>(
    host: *const abi::Host,
    config: Str,
    instance: *mut *mut c_void,
    error: *mut Bytes,
) -> Status {
    let opened = shield(|| {
        if instance.is_null() {
            return Err(ToolError::bad_args("nowhere to put the instance"));
        }
        // SAFETY: toolbox.h: `host` lives until close has returned, and Instance::close shuts the gate before that.
        let gate = unsafe { Gate::new(host) }.ok_or_else(|| ToolError::bad_args("the host is null"))?;
        // SAFETY: a tb_str, alive until this function returns.
        let config = unsafe { text(config) }?;
        let opened = Box::new(Instance::<T>::open(gate, config)?);
        // SAFETY: not null (checked above) and, by toolbox.h, valid for one write.
        unsafe { instance.write(Box::into_raw(opened).cast::<c_void>()) };
        Ok(None)
    });
    // SAFETY: toolbox.h: `error` may be written.
    unsafe { report(error, opened) }
}

unsafe extern "C" fn tools<T: Toolbox>(instance: *mut c_void, out: *mut Bytes) -> Status {
    // SAFETY: toolbox.h, as documented at `call`.
    unsafe { call::<T>(instance, out, |instance| instance.tools().map(Some)) }
}

unsafe extern "C" fn plan<T: Toolbox>(
    instance: *mut c_void,
    tool: Str,
    args: Str,
    out: *mut Bytes,
) -> Status {
    // SAFETY: toolbox.h, as documented at `call`; the strings live until this function returns.
    unsafe {
        call::<T>(instance, out, |instance| {
            instance.plan(text(tool)?, text(args)?).map(Some)
        })
    }
}

unsafe extern "C" fn start<T: Toolbox>(
    instance: *mut c_void,
    run: u64,
    json: Str,
    error: *mut Bytes,
) -> Status {
    // SAFETY: toolbox.h, as documented at `call`; the string lives until this function returns.
    unsafe {
        call::<T>(instance, error, |instance| {
            instance.start(run, text(json)?).map(|()| None)
        })
    }
}

unsafe extern "C" fn cancel<T: Toolbox>(instance: *mut c_void, run: u64) {
    // SAFETY: toolbox.h, as documented at `call`; nothing is written to null.
    unsafe {
        call::<T>(instance, std::ptr::null_mut(), |instance| {
            instance.cancel(run);
            Ok(None)
        })
    };
}

unsafe extern "C" fn conclude<T: Toolbox>(
    instance: *mut c_void,
    tool: Str,
    args: Str,
    report: Str,
    out: *mut Bytes,
) -> Status {
    // SAFETY: toolbox.h, as documented at `call`; the strings live until this function returns.
    unsafe {
        call::<T>(instance, out, |instance| {
            instance
                .conclude(text(tool)?, text(args)?, text(report)?)
                .map(Some)
        })
    }
}

unsafe extern "C" fn halt<T: Toolbox>(
    instance: *mut c_void,
    subsystems: Str,
    emergency: u32,
    error: *mut Bytes,
) -> Status {
    // SAFETY: toolbox.h, as documented at `call`; the string lives until this function returns.
    unsafe {
        call::<T>(instance, error, |instance| {
            // A stop is never refused: if the text is unreadable, everything is stopped.
            let subsystems = text(subsystems).unwrap_or("[\"all\"]");
            instance.halt(subsystems, emergency != 0).map(|()| None)
        })
    }
}

unsafe extern "C" fn resume<T: Toolbox>(instance: *mut c_void, error: *mut Bytes) -> Status {
    // SAFETY: toolbox.h, as documented at `call`.
    unsafe { call::<T>(instance, error, |instance| instance.resume().map(|()| None)) }
}

unsafe extern "C" fn message<T: Toolbox>(ptr: *mut c_void, topic: Str, json: Str) {
    // SAFETY: toolbox.h, as documented at `call`; the strings live until this function returns.
    unsafe {
        call::<T>(ptr, std::ptr::null_mut(), |instance| {
            if let Err(error) = instance.message(text(topic)?, text(json)?) {
                log_failure(&instance.dispatch, "message", error.failure());
            }
            Ok(None)
        })
    };
}

unsafe extern "C" fn on_response<T: Toolbox>(instance: *mut c_void, request: u64, status: Status, json: Str) {
    // SAFETY: toolbox.h, as documented at `call`; the string lives until this function returns.
    unsafe {
        call::<T>(instance, std::ptr::null_mut(), |instance| {
            instance.on_response(request, status, text(json).unwrap_or(""));
            Ok(None)
        })
    };
}

unsafe extern "C" fn may_close<T: Toolbox>(instance: *mut c_void, error: *mut Bytes) -> Status {
    // SAFETY: toolbox.h, as documented at `call`.
    unsafe { call::<T>(instance, error, |instance| instance.may_close().map(|()| None)) }
}

unsafe extern "C" fn safe_stop<T: Toolbox>(config: Str, error: *mut Bytes) -> Status {
    let result = shield(|| {
        // SAFETY: a tb_str, alive until this function returns.
        let config = parse_config::<T>(unsafe { text(config) }?)?;
        T::safe_stop(config).map(|()| None)
    });
    // SAFETY: toolbox.h: `error` may be written.
    unsafe { report(error, result) }
}

unsafe extern "C" fn close<T: Toolbox>(instance: *mut c_void) {
    if instance.is_null() {
        return;
    }
    let closed = shield(|| {
        // SAFETY: toolbox.h: close is the last call with what open returned, which was a box of this type. Tested in
        // tests/contract (`close_ends_every_run`).
        let instance = unsafe { Box::from_raw(instance.cast::<Instance<T>>()) };
        instance.close();
        Ok(())
    });
    // The error is dropped, not logged: the gate to the host may be shut already.
    drop(closed);
}

/// An empty `tb_bytes` for a caller to pass in.
pub(crate) fn empty() -> Bytes {
    nothing()
}
