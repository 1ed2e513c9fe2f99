//! The OVOS messagebus: messages, a client that reconnects, and a small embedded bus.
//!
//! Owns everything between a TCP socket and a [`Message`]; knows no tool and no other part of the service. A frame
//! arrives as text. [`Envelope`] locates its type, data and context; only a reader that answers the frame builds a
//! [`Message`] from it.
#![doc = include_str!("../README.md")]

mod client;
mod envelope;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod in_process_link;
mod message;
mod server;
mod shown;
mod websocket;

pub use client::{AnswerError, BusClient, BusHandler, ClientConfig, ClientCounters, Connection, DialError};
pub use envelope::{Envelope, MAX_DEPTH, MessageError, Part};

pub use in_process_link::InProcessLink;
pub use message::{DEFAULT_SESSION_ID, Message, OWN_KEY};
pub use server::{BindError, EmbeddedBus, ServerConfig, reachable};
pub use shown::shown;
pub use tungstenite::Utf8Bytes;
