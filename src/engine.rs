//! The execution engine: turns a call into a graph of actions and runs it in waves.
//!
//! It runs against [`Toolbox`] and knows neither the bus nor plugins.

mod toolbox;

pub use toolbox::{Ended, Halt, ProgressSink, RunId, Toolbox};
