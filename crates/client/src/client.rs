//! A client of the tools API: sends requests under topics and waits for their answers.

mod answers;
mod connection;
mod topics;

pub use self::connection::{Address, Client};
pub(crate) use self::connection::{FOREVER, deadline};
pub use self::topics::RELOAD_WAIT;
