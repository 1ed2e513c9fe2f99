//! The tools API as typed calls over the bus: what the command line and doors are made of.
//!
//! [`payload`] has the types of requests and answers, [`topic`] the topics with the types that belong to them, and
//! [`Client`] sends requests. The context of a request has a session and an id, so that an answer which arrives late
//! or is meant for another client is never taken for the answer to it. Every wait has a bound. `examples/call.rs` is
//! a whole program.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use ovos_tools_client::payload::{InvokeRequest, ListRequest};
//! use ovos_tools_client::{Address, Client, Patience};
//!
//! let address = Address { url: "ws://127.0.0.1:8181/core".parse()?, certificate: None };
//! let client = Client::connect(address, "my-program", Duration::from_secs(5)).await?;
//! for tool in client.list(&ListRequest::default()).await? {
//!     println!("{}: {}", tool.name, tool.description);
//! }
//! let request = InvokeRequest { name: "ping".to_owned(), ..InvokeRequest::default() };
//! let answer = client.invoke(request, Patience::WhileItRuns)?.answer().await?.good()?;
//! println!("{:?}", answer.result);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod call;
mod client;
mod error;
mod events;
pub mod payload;
mod pulse;
mod received;
mod requests;
mod routes;
mod statuses;
pub mod topic;

pub use call::{Call, Patience, Step};
pub use client::{Address, Client, RELOAD_WAIT};
pub use error::{ClientError, Refusal};
pub use events::{Events, News};
pub use received::Received;
pub use requests::{Request, Requests};
