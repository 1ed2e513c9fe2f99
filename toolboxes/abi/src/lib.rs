//! The C boundary between the service and a toolbox: `toolbox.h`, mirrored in Rust.
//!
//! Owns only the layout: no dependencies, no behaviour. The header is the authority; the assertions below and
//! `tests/layout.rs` (which runs a C compiler) compare the mirror with it. The contracts of the functions are
//! documented only in the header, so that there is one version. Read [`Toolbox`] first.
#![doc = include_str!("../README.md")]
#![no_std]

pub mod status;

use core::ffi::{c_char, c_int, c_void};

pub use status::Status;

/// The levels of [`Host::log`].
pub mod level {
    /// `TB_LOG_ERROR`
    pub const ERROR: u32 = 1;
    /// `TB_LOG_WARN`
    pub const WARN: u32 = 2;
    /// `TB_LOG_INFO`
    pub const INFO: u32 = 3;
    /// `TB_LOG_DEBUG`
    pub const DEBUG: u32 = 4;
    /// `TB_LOG_TRACE`
    pub const TRACE: u32 = 5;
}

/// `tb_str`: borrowed UTF-8, valid until the call returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Str {
    /// May be null when `len` is 0.
    pub ptr: *const c_char,
    /// In bytes.
    pub len: usize,
}

/// `tb_bytes`: owned by its receiver, which calls `release` exactly once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// May be null when `len` is 0.
    pub ptr: *const c_char,
    /// In bytes.
    pub len: usize,
    /// First argument of `release`.
    pub owner: *mut c_void,
    /// Null when there is nothing to release.
    pub release: Option<unsafe extern "C" fn(owner: *mut c_void, ptr: *const c_char, len: usize)>,
}

/// `tb_host`: what the host offers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "toolbox.h documents each function")]
pub struct Host {
    pub size: u64,
    pub ctx: *mut c_void,
    pub log: Option<unsafe extern "C" fn(ctx: *mut c_void, level: u32, target: Str, message: Str)>,
    pub complete: Option<unsafe extern "C" fn(ctx: *mut c_void, run: u64, status: Status, json: Bytes)>,
    pub progress: Option<unsafe extern "C" fn(ctx: *mut c_void, run: u64, json: Str)>,
    pub event: Option<unsafe extern "C" fn(ctx: *mut c_void, json: Str)>,
    pub request:
        Option<unsafe extern "C" fn(ctx: *mut c_void, topic: Str, json: Str, timeout_ms: u32) -> u64>,
}

/// `tb_toolbox`: what a toolbox offers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "toolbox.h documents each function")]
pub struct Toolbox {
    pub size: u64,
    pub manifest: Str,
    pub open: Option<
        unsafe extern "C" fn(
            host: *const Host,
            config: Str,
            instance: *mut *mut c_void,
            error: *mut Bytes,
        ) -> Status,
    >,
    pub tools: Option<unsafe extern "C" fn(instance: *mut c_void, out: *mut Bytes) -> Status>,
    pub plan:
        Option<unsafe extern "C" fn(instance: *mut c_void, tool: Str, args: Str, out: *mut Bytes) -> Status>,
    pub start:
        Option<unsafe extern "C" fn(instance: *mut c_void, run: u64, json: Str, error: *mut Bytes) -> Status>,
    pub cancel: Option<unsafe extern "C" fn(instance: *mut c_void, run: u64)>,
    pub conclude: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            tool: Str,
            args: Str,
            report: Str,
            out: *mut Bytes,
        ) -> Status,
    >,
    pub halt: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            subsystems: Str,
            emergency: u32,
            error: *mut Bytes,
        ) -> Status,
    >,
    pub resume: Option<unsafe extern "C" fn(instance: *mut c_void, error: *mut Bytes) -> Status>,
    pub message: Option<unsafe extern "C" fn(instance: *mut c_void, topic: Str, json: Str)>,
    pub on_response:
        Option<unsafe extern "C" fn(instance: *mut c_void, request: u64, status: Status, json: Str)>,
    pub may_close: Option<unsafe extern "C" fn(instance: *mut c_void, error: *mut Bytes) -> Status>,
    pub safe_stop: Option<unsafe extern "C" fn(config: Str, error: *mut Bytes) -> Status>,
    pub close: Option<unsafe extern "C" fn(instance: *mut c_void)>,
}

/// `toolbox_entry_v1`.
pub type Entry = unsafe extern "C" fn() -> *const Toolbox;

/// `toolbox_role_v1`.
pub type RoleEntry = unsafe extern "C" fn(role: Str, leash: c_int) -> Status;

/// The smallest `size` of a version 1 table: everything up to and including `close`.
///
/// A constant rather than `size_of::<Toolbox>()`, which grows when a field is appended. 128 where pointers have 64 bits,
/// 68 where they have 32 (the compiler pads that to 72).
pub const TOOLBOX_SIZE_V1_0: u64 = if cfg!(target_pointer_width = "64") {
    128
} else {
    68
};

const _: () =
    assert!(core::mem::offset_of!(Toolbox, close) + size_of::<*const ()>() == TOOLBOX_SIZE_V1_0 as usize);
const _: () = assert!(core::mem::offset_of!(Toolbox, manifest) == 8);
const _: () = assert!(size_of::<Host>() == if cfg!(target_pointer_width = "64") { 56 } else { 32 });
const _: () = assert!(size_of::<Bytes>() == size_of::<*const ()>() * 4);
