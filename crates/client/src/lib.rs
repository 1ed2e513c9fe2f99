//! The tools API as typed calls over the bus. The command line and the doors use it.
//!
//! [`payload`] has the types of requests and answers, [`topic`] the topics with the types that belong to them, and [`Client`] sends
//! requests. The context of a request has a session and an id, so that an answer that arrives late or is meant for another client
//! is never mistaken for its answer. Every wait has a bound. `examples/call.rs` is a whole program.
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod arguments;
mod call;
mod client;
pub mod control;
mod error;
mod events;
mod pages;
pub mod payload;
mod pulse;
mod received;
mod requests;
mod routes;
mod statuses;
pub mod text;
pub mod topic;

pub use arguments::{ArgumentsError, read_arguments};
pub use call::{Call, Patience, Step};
pub use client::{Address, Client, RELOAD_WAIT};
pub use error::{ClientError, Refusal};
pub use events::{Events, News};
pub use pages::Paged;
pub use received::Received;
pub use requests::{Request, Requests};
