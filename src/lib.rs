//! ovos-tools: runs tools for a voice assistant.
//!
//! # The story of a call
//!
//! 1. A frame comes from the bus. `bus::BusClient` reads it; the service's router reads only its type and passes it
//!    to a task. A stop goes to a task of its own instead, so that it waits for no other request.
//! 2. [`api::Api::handle`] parses the request, finds the tool in the [`registry`]'s snapshot, and prepares the arguments
//!    with the tool's `schema`: coerced, defaults filled in, validated.
//!    The [`policy`] decides whether it runs, is refused, or has to be confirmed first.
//! 3. `engine::Engine::call` asks the toolbox for a plan, checks its graph (`engine::Plan`), takes the call's
//!    subsystems (`engine::Reservations`) and runs wave after wave against `engine::Toolbox`.
//! 4. `host::Hosted` is that toolbox: it sends the engine's orders to the toolbox's own process, where a server turns them
//!    into calls of a C table in a library that the `host::Manager` staged and greeted.
//! 5. The report goes back through the toolbox's `conclude` and the output schema into one answer, in the context of the
//!    request, and `bus::BusClient` keeps it until it has arrived.
//!
//! Each step hands over to the next by a type, and each type has tests that need none of the steps before it. `ARCHITECTURE.md` is
//! the map.
//!
//! ```
//! use ovos_tools::api::{Topic, Urgent};
//!
//! assert_eq!(Topic::of("ovos.tools.list", false), Some(Topic::List));
//! assert_eq!(Topic::of("ovos.tools.stop", false), None, "a stop is in no queue of requests");
//! assert_eq!(Urgent::of("ovos.tools.stop"), Some(Urgent::EmergencyStop));
//! ```
#![deny(unsafe_code)]

pub mod api;
mod content;
pub mod export;
pub mod names;
#[cfg(test)]
mod names_tests;
pub mod policy;
pub mod registry;
pub mod service;
