//! The MCP door with real clients from PyPI, in both eras of the protocol and over both transports, against the real service.

mod browser;
mod clients;
mod conformance;
mod door;
mod find;
mod forms;
mod frozen;
mod gate;
mod list_size;
mod order;
mod patience;
mod run;
mod rust_sdk;
mod sessions;
mod signing_in;
