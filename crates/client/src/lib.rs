//! The tools API as typed calls over the bus: what the command line and doors are made of.
//!
//! [`payload`] holds what crosses the bus, [`topic`] what is asked and answered where, and [`Client`] asks. A request has a
//! session and an id in its context, so that an answer which comes late or is meant for another client is never taken for
//! its own. Every wait has a bound. `examples/call.rs` is a whole program.
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
mod routes;
pub mod topic;

pub use call::{Call, Patience, Step};
pub use client::{Address, Client, RELOAD_WAIT};
pub use error::{ClientError, Refusal};
pub use events::{Events, News};
pub use received::Received;
