//! Write a toolbox for ovos-tools in Rust.
//!
//! A tool is an ordinary async function with typed arguments and a typed result; a toolbox is a type that implements
//! [`Toolbox`] and is exported with [`export_toolbox!`]. This crate owns everything between that and the C boundary:
//! the instance's tokio runtime, schemas, cancellation, panics, logging. It decides no policy: waves, reservation,
//! timeouts and the emergency stop belong to the service.
#![doc = include_str!("../README.md")]

// With panic = "abort" a panic cannot be caught and would end the service.
#[cfg(panic = "abort")]
compile_error!(
    "a toolbox must be built with panic = \"unwind\": with \"abort\" one panic ends the whole service"
);

#[doc(hidden)]
pub mod boundary;
mod bytes;
mod context;
mod error;
mod essential;
mod gate;
mod halt;
mod host;
mod instance;
#[cfg(feature = "bigint")]
mod integer;
mod job;
mod log;
mod role;
mod run;
mod schema;
pub mod sentence;
pub mod testing;
mod tool;
mod toolbox;
mod units;

pub use context::Context;
pub use error::ToolError;
pub use essential::Essential;
pub use halt::Halt;
pub use host::Host;
#[cfg(feature = "bigint")]
pub use integer::Integer;
pub use role::{Leash, Mouth, RoleEvent, RoleProcess};
pub use schema::{argument_schema, output_schema};
pub use tool::{ActionHandler, Tool};
pub use toolbox::{NoConfig, Options, Toolbox};
pub use units::{UnitError, Units, optional_unit};

pub use ovos_toolbox_abi as abi;
pub use ovos_toolbox_wire as wire;
pub use {schemars, serde, serde_json, tokio, tracing};

/// The listings of the page for authors are compiled with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-toolbox.md")]
pub struct WritingAToolbox;

/// Everything a toolbox usually needs: `use ovos_toolbox_sdk::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "bigint")]
    pub use crate::Integer;
    pub use crate::wire::{
        Action, Audience, Content, ContentKind, Effect, Event, Manifest, Object, Report, Severity,
    };
    pub use crate::{
        ActionHandler, Context, Halt, Host, NoConfig, Options, Tool, ToolError, Toolbox, Units,
        export_toolbox, manifest, no_motion,
    };
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Value, json};
    pub use std::time::Duration;
}

/// Makes the manifest of the crate it is called in: `manifest!("my_toolbox")`.
///
/// Version, description and licence are those of its Cargo.toml. For the rest:
/// `Manifest { exclusive: true, ..manifest!("my_toolbox") }`.
#[macro_export]
macro_rules! manifest {
    ($id:expr) => {
        $crate::wire::Manifest {
            id: ($id).to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            description: env!("CARGO_PKG_DESCRIPTION").to_string(),
            licence: env!("CARGO_PKG_LICENSE").to_string(),
            ..::core::default::Default::default()
        }
    };
}

/// Implements `halt`, inside `impl Toolbox`, for a toolbox in which nothing moves.
///
/// The service then refuses its tools of effect motion, safe and stop.
#[macro_export]
macro_rules! no_motion {
    () => {
        const HALTS: bool = false;

        fn halt(&self, _: &$crate::Halt) -> ::core::result::Result<(), $crate::ToolError> {
            ::core::result::Result::Ok(())
        }
    };
}

/// Exports a [`Toolbox`] as the library's `toolbox_entry_v1`. Use it once per library.
///
/// With `roles`, it also exports the work of the processes that the toolbox starts with [`RoleProcess`], each a
/// `fn(Leash)`: `export_toolbox!(Cameras, roles: ["worker" => worker::run]);`
#[macro_export]
macro_rules! export_toolbox {
    ($toolbox:ty) => {
        /// The exported symbol: the table of this toolbox. Null if its manifest cannot be made.
        #[unsafe(no_mangle)]
        pub extern "C" fn toolbox_entry_v1() -> *const $crate::abi::Toolbox {
            static TABLE: ::std::sync::OnceLock<$crate::boundary::Table> = ::std::sync::OnceLock::new();
            TABLE
                .get_or_init($crate::boundary::Table::of::<$toolbox>)
                .as_ptr()
        }
    };
    ($toolbox:ty, roles: [$($name:literal => $work:path),+ $(,)?]) => {
        $crate::export_toolbox!($toolbox);

        /// The exported symbol: the work of a process of this toolbox in a role.
        #[unsafe(no_mangle)]
        pub extern "C" fn toolbox_role_v1(role: $crate::abi::Str, leash: ::std::ffi::c_int) -> $crate::abi::Status {
            $crate::boundary::role(role, leash, &[$(($name, $work)),+])
        }
    };
}
