//! The C table itself, and hosts that are faulty or older.

use std::ffi::c_void;

use ovos_toolbox_sdk::abi::{self, status};
use ovos_toolbox_sdk::boundary::Table;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

use crate::probe::{Done, Nothing, Probe};

struct Careless;

impl Toolbox for Careless {
    type Config = NoConfig;

    fn manifest() -> Manifest {
        manifest!("careless")
    }

    async fn open(_: Host, _: NoConfig) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::motion("swing", |_: Context<Self>, _: Nothing| async {
            Ok(Done { done: true })
        })]
    }

    no_motion!();
}

#[test]
fn what_moves_has_a_halt() {
    // SAFETY: the pointer is good as long as the table, which the caller has.
    let halts = |table: &Table| unsafe { (*table.as_ptr()).halt.is_some() };
    assert!(!halts(&Table::of::<Careless>()) && halts(&Table::of::<Probe>()));
    let careless = Harness::open::<Careless>(json!({})).unwrap();
    careless.halt(&["all"], true).unwrap();
    let count = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| careless.tools().len()));
    let message = *count.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(
        message,
        "tool swing is of effect motion, and the toolbox has no halt"
    );
}

/// Strings and pointers that only a faulty host sends.
#[test]
fn text_that_is_not_utf8() {
    let table = Table::of::<Probe>();
    // SAFETY: the table was just made and lives to the end of the test.
    let functions = unsafe { &*table.as_ptr() };
    let bad = [0xff_u8, 0xfe];
    let text = abi::Str {
        ptr: bad.as_ptr().cast(),
        len: 2,
    };
    let null = abi::Str {
        ptr: std::ptr::null(),
        len: 2,
    };
    let empty = abi::Str {
        ptr: std::ptr::null(),
        len: 0,
    };
    let host = abi::Host {
        size: size_of::<abi::Host>() as u64,
        ctx: std::ptr::null_mut(),
        log: None,
        complete: None,
        progress: None,
        event: None,
        request: None,
    };
    let mut instance: *mut c_void = std::ptr::null_mut();
    let no_bytes = std::ptr::null_mut();
    // SAFETY: toolbox.h allows null for `error`; the strings live to the end of the test.
    unsafe {
        assert_eq!(
            functions.open.unwrap()(&raw const host, text, &raw mut instance, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.open.unwrap()(&raw const host, null, &raw mut instance, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.open.unwrap()(std::ptr::null(), empty, &raw mut instance, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.open.unwrap()(&raw const host, empty, &raw mut instance, no_bytes),
            status::OK
        );
        assert_eq!(
            functions.start.unwrap()(instance, 1, text, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.plan.unwrap()(instance, text, empty, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.start.unwrap()(std::ptr::null_mut(), 1, empty, no_bytes),
            status::BAD_ARGS
        );
        // A stop is never refused.
        assert_eq!(functions.halt.unwrap()(instance, text, 1, no_bytes), status::OK);
        assert_eq!(functions.halt.unwrap()(instance, empty, 0, no_bytes), status::OK);
        functions.message.unwrap()(instance, text, text);
        functions.on_response.unwrap()(instance, 1, status::OK, text);
        functions.cancel.unwrap()(instance, 1);
        functions.close.unwrap()(instance);
        functions.close.unwrap()(std::ptr::null_mut());
    }
}

/// A host with fewer functions than the SDK knows.
#[test]
fn an_older_host() {
    let table = Table::of::<Probe>();
    // SAFETY: the table was just made and lives to the end of the test.
    let functions = unsafe { &*table.as_ptr() };
    // Only size and ctx; the memory after them is not the host's.
    let host: [u64; 2] = [16, 0];
    let mut instance: *mut c_void = std::ptr::null_mut();
    let empty = abi::Str {
        ptr: std::ptr::null(),
        len: 0,
    };
    // SAFETY: the table begins with its size, which is what this test is about.
    unsafe {
        let opened = functions.open.unwrap()(
            host.as_ptr().cast(),
            empty,
            &raw mut instance,
            std::ptr::null_mut(),
        );
        assert_eq!(opened, status::OK);
        functions.close.unwrap()(instance);
    }
}
