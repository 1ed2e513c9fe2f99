//! A participant in a graph of ROS: what robots with their own interfaces, and a K1 behind its topics, are spoken to through.
//!
//! Owns the graph that was joined and the threads on which subscriptions run, so that neither needs the runtime of its
//! caller. Messages are types of ours that name the fields they use; the whole of each type is a text
//! (`interfaces/vendors.txt`). Publishing never blocks. A publisher is ready when a reader has been there for 200 ms: an
//! earlier message is lost, because the reader does not know the writer yet. Read [`Participant`].

pub mod asked;
pub mod booster;
pub(crate) mod latest;
mod number;
mod participant;
pub(crate) mod shout;
pub mod unitree;

pub(crate) use self::number::radians;
pub use self::participant::{Participant, Publisher};
