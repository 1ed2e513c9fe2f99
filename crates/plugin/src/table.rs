//! The function table of a loaded toolbox and its instance: every call across the boundary.
//!
//! Keeps the rules of when each function may be called, and turns statuses and bytes into results. Keeps no queue and no
//! thread: `host_thread` and `control` decide who calls. Read [`Instance`] first.
#![expect(unsafe_code, reason = "calls the functions of a foreign library")]

use std::ffi::c_void;
use std::ptr;

use ovos_toolbox_abi::{self as abi, Bytes, Status, Str, status};
use ovos_toolbox_wire::{Conclusion, Failure, Plan, ToolList};
use program::payload::{broken, no_list};
use protocol::{Functions, Raw};

use crate::answer;
use crate::bytes::{EMPTY, Owned, lend};

/// Proves that the control lane makes no call into a toolbox any more. Only the control lane makes this value, when it has
/// ended.
#[derive(Debug)]
pub(crate) struct LaneClosed(pub(super) ());

type OpenFn = unsafe extern "C" fn(*const abi::Host, Str, *mut *mut c_void, *mut Bytes) -> Status;
type ToolsFn = unsafe extern "C" fn(*mut c_void, *mut Bytes) -> Status;
type PlanFn = unsafe extern "C" fn(*mut c_void, Str, Str, *mut Bytes) -> Status;
type StartFn = unsafe extern "C" fn(*mut c_void, u64, Str, *mut Bytes) -> Status;
type CancelFn = unsafe extern "C" fn(*mut c_void, u64);
type ConcludeFn = unsafe extern "C" fn(*mut c_void, Str, Str, Str, *mut Bytes) -> Status;
type HaltFn = unsafe extern "C" fn(*mut c_void, Str, u32, *mut Bytes) -> Status;
type AskFn = unsafe extern "C" fn(*mut c_void, *mut Bytes) -> Status;
type MessageFn = unsafe extern "C" fn(*mut c_void, Str, Str);
type ResponseFn = unsafe extern "C" fn(*mut c_void, u64, Status, Str);
type SafeStopFn = unsafe extern "C" fn(Str, *mut Bytes) -> Status;
type CloseFn = unsafe extern "C" fn(*mut c_void);

/// The functions of a toolbox, with the required ones present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    open: OpenFn,
    tools: ToolsFn,
    plan: Option<PlanFn>,
    start: StartFn,
    cancel: CancelFn,
    conclude: Option<ConcludeFn>,
    halt: Option<HaltFn>,
    resume: AskFn,
    message: Option<MessageFn>,
    on_response: Option<ResponseFn>,
    may_close: Option<AskFn>,
    safe_stop: Option<SafeStopFn>,
    close: CloseFn,
}

impl Table {
    /// Checks that the table has every required function.
    ///
    /// # Errors
    /// The names of the missing functions.
    pub(crate) fn new(raw: &abi::Toolbox) -> Result<Self, Vec<&'static str>> {
        let (Some(open), Some(tools), Some(start), Some(cancel), Some(resume), Some(close)) =
            (raw.open, raw.tools, raw.start, raw.cancel, raw.resume, raw.close)
        else {
            let required = [
                ("open", raw.open.is_none()),
                ("tools", raw.tools.is_none()),
                ("start", raw.start.is_none()),
                ("cancel", raw.cancel.is_none()),
                ("resume", raw.resume.is_none()),
                ("close", raw.close.is_none()),
            ];
            return Err(required
                .iter()
                .filter(|(_, missing)| *missing)
                .map(|(name, _)| *name)
                .collect());
        };
        Ok(Self {
            open,
            tools,
            plan: raw.plan,
            start,
            cancel,
            conclude: raw.conclude,
            halt: raw.halt,
            resume,
            message: raw.message,
            on_response: raw.on_response,
            may_close: raw.may_close,
            safe_stop: raw.safe_stop,
            close,
        })
    }

    pub(crate) fn functions(&self) -> Functions {
        Functions {
            plan: self.plan.is_some(),
            conclude: self.conclude.is_some(),
            message: self.message.is_some(),
            halt: self.halt.is_some(),
            safe_stop: self.safe_stop.is_some(),
        }
    }

    /// Opens an instance whose results may have at most `limit` bytes. Host thread.
    pub(crate) fn open(
        &self,
        host: &'static abi::Host,
        config: &str,
        limit: usize,
    ) -> Result<Instance, Failure> {
        let mut instance = ptr::null_mut();
        // SAFETY: the table was checked by `load` and its library is never unloaded; the host table lives as long as
        // the process, so also longer than an abandoned toolbox.
        let filled = unsafe { fill(|out| (self.open)(host, lend(config), &raw mut instance, out)) };
        match filled {
            (status::OK, _) => Ok(Instance {
                table: *self,
                instance,
                limit,
            }),
            (code, message) => Err(answer::failure(code, &message, "open()")),
        }
    }

    /// Brings the hardware to rest without an instance; `None` where the toolbox cannot. Any thread.
    pub(crate) fn safe_stop(&self, config: &str) -> Option<Result<(), Failure>> {
        let safe_stop = self.safe_stop?;
        // SAFETY: needs no instance; the library is never unloaded.
        let filled = unsafe { fill(|out| safe_stop(lend(config), out)) };
        Some(check_status(filled, "safe_stop()"))
    }
}

/// An open toolbox.
///
/// The functions marked "host thread" are called by one thread, one at a time; the others by any thread, beside them,
/// but never after [`Instance::close`]: `host_thread` waits for `control` to end before it closes.
#[derive(Debug)]
pub(crate) struct Instance {
    table: Table,
    instance: *mut c_void,
    limit: usize,
}

// SAFETY: the pointer is opaque to us, and toolbox.h says which functions may be called beside each other; the types
// of `host_thread` and `control` keep to it. tests/process_isolation/halts.rs drives both threads at once.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// The list of tools. Host thread.
    pub(crate) fn tools(&self) -> Result<Raw<ToolList>, Failure> {
        // SAFETY: open instance, host thread (type docs).
        let filled = unsafe { fill(|out| (self.table.tools)(self.instance, out)) };
        match filled {
            (status::OK, out) => {
                let text = out.text(self.limit);
                let text = text.map_err(|e| broken("the tool list", e))?;
                Raw::from_text(text.to_owned()).map_err(|e| no_list(&e))
            }
            (code, message) => Err(answer::failure(code, &message, "tools()")),
        }
    }

    /// The actions of a call. Host thread.
    pub(crate) fn plan(&self, tool: &str, args: &str) -> Result<Raw<Option<Plan>>, Failure> {
        let Some(plan) = self.table.plan else {
            return Ok(Raw::of(&None));
        };
        // SAFETY: open instance, host thread (type docs).
        let filled = unsafe { fill(|out| plan(self.instance, lend(tool), lend(args), out)) };
        match filled {
            (status::OK, out) => answer::unread("the plan", out.text(self.limit)),
            (status::UNKNOWN_TOOL, _) => Ok(Raw::of(&None)),
            (code, message) => Err(answer::failure(code, &message, "plan()")),
        }
    }

    /// Starts an action. Host thread.
    pub(crate) fn start(&self, run: u64, json: &str) -> Result<(), Failure> {
        // SAFETY: open instance, host thread (type docs).
        let filled = unsafe { fill(|out| (self.table.start)(self.instance, run, lend(json), out)) };
        check_status(filled, "start()")
    }

    /// Asks a run to end. Any thread.
    pub(crate) fn cancel(&self, run: u64) {
        // SAFETY: open instance, any thread (type docs).
        unsafe { (self.table.cancel)(self.instance, run) }
    }

    /// The answer of a call. Host thread.
    pub(crate) fn conclude(
        &self,
        tool: &str,
        args: &str,
        report: &str,
    ) -> Result<Raw<Option<Conclusion>>, Failure> {
        let Some(conclude) = self.table.conclude else {
            return Ok(Raw::of(&None));
        };
        // SAFETY: open instance, host thread (type docs).
        let filled =
            unsafe { fill(|out| conclude(self.instance, lend(tool), lend(args), lend(report), out)) };
        match filled {
            (status::OK, out) => answer::unread("the conclusion", out.text(self.limit)),
            (status::UNKNOWN_TOOL, _) => Ok(Raw::of(&None)),
            (code, message) => Err(answer::failure(code, &message, "conclude()")),
        }
    }

    /// Sends the command that ends motion; does nothing if the toolbox has no `halt`. Any thread.
    pub(crate) fn halt(&self, subsystems: &str, emergency: bool) -> Result<(), Failure> {
        let Some(halt) = self.table.halt else {
            return Ok(());
        };
        // SAFETY: open instance, any thread (type docs).
        let filled = unsafe { fill(|out| halt(self.instance, lend(subsystems), u32::from(emergency), out)) };
        check_status(filled, "halt()")
    }

    /// Asks whether the latch may be lifted. Any thread.
    pub(crate) fn resume(&self) -> Result<(), Failure> {
        // SAFETY: open instance, any thread (type docs).
        let filled = unsafe { fill(|out| (self.table.resume)(self.instance, out)) };
        check_status(filled, "resume()")
    }

    /// Hands over a message to which the toolbox subscribed. Host thread.
    pub(crate) fn message(&self, topic: &str, json: &str) {
        if let Some(message) = self.table.message {
            // SAFETY: open instance, host thread (type docs).
            unsafe { message(self.instance, lend(topic), lend(json)) }
        }
    }

    /// Hands over the answer to a request. Host thread.
    pub(crate) fn on_response(&self, request: u64, code: Status, json: &str) {
        if let Some(on_response) = self.table.on_response {
            // SAFETY: open instance, host thread (type docs).
            unsafe { on_response(self.instance, request, code, lend(json)) }
        }
    }

    /// Asks whether the toolbox may be closed now; only `BUSY` refuses. Host thread.
    pub(crate) fn may_close(&self) -> Result<Raw<()>, Failure> {
        let Some(may_close) = self.table.may_close else {
            return Ok(Raw::of(&()));
        };
        // SAFETY: open instance, host thread (type docs).
        let filled = unsafe { fill(|out| may_close(self.instance, out)) };
        match filled {
            (code @ status::BUSY, message) => Err(answer::failure(code, &message, "may_close()")),
            _ => Ok(Raw::of(&())),
        }
    }

    /// Ends the instance. The last call of the host thread.
    pub(crate) fn close(&self, _: LaneClosed) {
        // SAFETY: `LaneClosed` says that the control lane ended, and this is the host thread's last call (type docs).
        unsafe { (self.table.close)(self.instance) }
    }
}

/// Calls a function that may write bytes, and takes over these bytes.
///
/// # Safety
/// The call itself is sound, and writes what toolbox.h says, or nothing.
unsafe fn fill(call: impl FnOnce(*mut Bytes) -> Status) -> (Status, Owned) {
    let mut bytes = EMPTY;
    let code = call(&raw mut bytes);
    // SAFETY: written by the function, or still EMPTY.
    (code, unsafe { Owned::new(bytes) })
}

fn check_status(filled: (Status, Owned), what: &str) -> Result<(), Failure> {
    match filled {
        (status::OK, _) => Ok(()),
        (code, message) => Err(answer::failure(code, &message, what)),
    }
}
