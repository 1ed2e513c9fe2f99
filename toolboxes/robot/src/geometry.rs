//! Where the links of an arm are for its joint angles, and which angles bring its hand to a point.
//!
//! Owns what a robot's file says of an arm's shape: a URDF, and what in it is which joint of the arm. Metres in the frame of the
//! arm's base, x ahead, y to the left, z upwards; angles are the robot's own, in degrees. Pure. Read [`Geometry`].

mod chain;
mod search;
mod urdf;

pub use self::chain::{End, Geometry, Lowest};
pub use self::search::{Posture, ReachError, Search};
