//! Conversion of text at the C boundary.
//!
//! Owns the two conversions, `tb_str` to `&str` and `String` to `tb_bytes`. Borrowed text does not outlive its call,
//! and text handed out is freed here, by its own release function.

use std::ffi::{c_char, c_void};

use ovos_toolbox_abi::{Bytes, Str};

use crate::ToolError;

/// Borrows the text of a `tb_str`.
///
/// # Errors
/// The text is not UTF-8, or its pointer is null and its length is not 0.
///
/// # Safety
/// `text.ptr` is null, or valid for `text.len` bytes until the function of the table has returned.
pub(crate) unsafe fn text<'a>(text: Str) -> Result<&'a str, ToolError> {
    if text.len == 0 {
        return Ok("");
    }
    if text.ptr.is_null() {
        return Err(ToolError::bad_args("the text is null"));
    }
    // SAFETY: toolbox.h: a tb_str is borrowed UTF-8 of `len` bytes, alive until the call returns; the null case was
    // taken above. Tested in tests/contract (`text_that_is_not_utf8`).
    let bytes = unsafe { std::slice::from_raw_parts(text.ptr.cast::<u8>(), text.len) };
    std::str::from_utf8(bytes).map_err(|_| ToolError::bad_args("the text is not UTF-8"))
}

/// Lends a text for the duration of a call.
pub(crate) fn lend(text: &str) -> Str {
    Str {
        ptr: text.as_ptr().cast::<c_char>(),
        len: text.len(),
    }
}

/// Hands over a text; the receiver releases it.
pub(crate) fn give(text: String) -> Bytes {
    let bytes: Box<[u8]> = text.into_bytes().into_boxed_slice();
    let len = bytes.len();
    Bytes {
        ptr: Box::into_raw(bytes).cast::<c_char>().cast_const(),
        len,
        owner: std::ptr::null_mut(),
        release: Some(release),
    }
}

/// An empty `tb_bytes`.
pub(crate) fn nothing() -> Bytes {
    Bytes {
        ptr: std::ptr::null(),
        len: 0,
        owner: std::ptr::null_mut(),
        release: None,
    }
}

unsafe extern "C" fn release(_owner: *mut c_void, ptr: *const c_char, len: usize) {
    let bytes = std::ptr::slice_from_raw_parts_mut(ptr.cast_mut().cast::<u8>(), len);
    // SAFETY: toolbox.h: release is called exactly once with the ptr and len of the tb_bytes, which `give` made from
    // a box of exactly that length. Tested by the harness, which releases everything it receives.
    drop(unsafe { Box::from_raw(bytes) });
}

/// Takes over a text: copies it and releases the original.
///
/// # Errors
/// The text is not UTF-8.
///
/// # Safety
/// `bytes` follows toolbox.h and was not released yet.
pub(crate) unsafe fn take(bytes: Bytes) -> Result<String, ToolError> {
    let borrowed = Str {
        ptr: bytes.ptr,
        len: bytes.len,
    };
    // SAFETY: the owner keeps `len` bytes alive until release is called, below. Tested by every harness test.
    let copied = unsafe { text(borrowed) }.map(str::to_owned);
    if let Some(release) = bytes.release {
        // SAFETY: toolbox.h: called once, with the values the tb_bytes came with. Tested by every harness test.
        unsafe { release(bytes.owner, bytes.ptr, bytes.len) };
    }
    copied
}
