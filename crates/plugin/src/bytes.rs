//! Text and bytes that cross the boundary.
//!
//! Owns the only places where a foreign pointer becomes a slice, and the rule that foreign bytes are released exactly
//! once. Never keeps foreign memory: what outlives the call is a copy. Read [`Owned`] first.
#![expect(
    unsafe_code,
    reason = "the boundary's (pointer, length) pairs become slices here"
)]

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr;

use ovos_toolbox_abi as abi;

/// Why foreign text cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("is a null pointer with a length of {len} bytes")]
    Null { len: usize },
    #[error("is {len} bytes; the limit is {limit}")]
    TooLong { len: usize, limit: usize },
    #[error("is not UTF-8 (byte {at})")]
    NotUtf8 { at: usize },
}

/// Lends text to the other side for the length of one call.
pub(crate) fn lend(text: &str) -> abi::Str {
    abi::Str {
        ptr: text.as_ptr().cast::<c_char>(),
        len: text.len(),
    }
}

/// An empty value, which a call fills in.
pub(crate) const EMPTY: abi::Bytes = abi::Bytes {
    ptr: ptr::null(),
    len: 0,
    owner: ptr::null_mut(),
    release: None,
};

/// Reads text that the other side lends.
///
/// # Safety
/// Where `text.ptr` is not null, `text.len` bytes are readable behind it and stay unchanged for `'a`.
pub(crate) unsafe fn borrow<'a>(text: abi::Str, limit: usize) -> Result<&'a str, Unreadable> {
    let abi::Str { ptr, len } = text;
    if len == 0 {
        return Ok("");
    }
    if ptr.is_null() {
        return Err(Unreadable::Null { len });
    }
    // Also keeps the length below isize::MAX, which a slice requires.
    if len > limit.min(isize::MAX as usize) {
        return Err(Unreadable::TooLong { len, limit });
    }
    // SAFETY: not null, and readable for `len` bytes by this function's contract (toolbox.h, tb_str);
    // tests/process_isolation/misbehaviour.rs sends null pointers, bad UTF-8 and too long texts.
    let bytes = unsafe { std::slice::from_raw_parts(ptr.cast::<u8>(), len) };
    std::str::from_utf8(bytes).map_err(|e| Unreadable::NotUtf8 { at: e.valid_up_to() })
}

/// Bytes that the other side handed over: released once, when this is dropped.
#[derive(Debug)]
pub(crate) struct Owned {
    bytes: abi::Bytes,
    // Foreign memory with a foreign release: stays on the thread that received it.
    _thread: PhantomData<*mut ()>,
}

impl Owned {
    /// Takes over the bytes.
    ///
    /// # Safety
    /// `bytes` is [`EMPTY`] or was written by the other side as toolbox.h says: readable for `len` bytes until
    /// `release` is called, and nothing else calls `release`.
    pub(crate) unsafe fn new(bytes: abi::Bytes) -> Self {
        Self {
            bytes,
            _thread: PhantomData,
        }
    }

    /// The text in it.
    pub(crate) fn text(&self, limit: usize) -> Result<&str, Unreadable> {
        let abi::Bytes { ptr, len, .. } = self.bytes;
        // SAFETY: readable until release, which only `drop` calls, so for as long as the borrow of self.
        unsafe { borrow(abi::Str { ptr, len }, limit) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let abi::Bytes {
            ptr,
            len,
            owner,
            release,
        } = self.bytes;
        if let Some(release) = release {
            // SAFETY: the receiver calls release exactly once with the three values it was given (toolbox.h,
            // tb_bytes); a drop runs once. The `releases` fixture counts them.
            unsafe { release(owner, ptr, len) }
        }
    }
}
