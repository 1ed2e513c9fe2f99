//! The history: the facts of the service in an SQLite database, with a row for each call.
//!
//! [`store`] writes it and keeps it small, [`intake`] follows the service, [`query`] reads, and [`timeline`] draws a call as text.
//! The tables are documented in `docs/history.md`.

pub(crate) mod intake;
pub(crate) mod query;
pub(crate) mod store;
pub(crate) mod timeline;
