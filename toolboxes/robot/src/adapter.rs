//! The interface between the tools and each kind of robot.
//!
//! Owns the trait, and the outputs, errors and notices that cross it. Tools, graphs, poses, limits and the order of
//! actions are decided before an adapter is asked: each name is resolved and each number is checked by then. Read
//! [`Adapter`].

pub mod around;
pub mod booster_k1;
mod contract;
mod control;
pub mod feetech;
mod part_reading;
pub(crate) mod refused;
mod remote;
pub mod ros_base;
mod seek;
mod stand_in;
pub mod unitree_g1;
pub mod unitree_go2;
mod walker;

pub use self::contract::{ActionOutput, Adapter, BackendState, Notice, Notify, SeenMessage, Sighting};
pub use self::control::{Control, Right};
pub(crate) use self::remote::until;
pub use crate::conduct::Estop;
pub use crate::error::ActionError;
