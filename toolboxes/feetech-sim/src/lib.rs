//! A serial bus of simulated Feetech STS3215 servos on a pseudo terminal.
//!
//! Owns the wire format, each servo's register table and a plain model of its motion: full speed at once, a load
//! only where something is in the way, no gravity. It writes down every instruction it hears, and it fails on demand. It never helps a client: a servo whose
//! torque goes on moves to whatever stands in its goal register, as the real one does. Read [`Line`].
//!
//! ```
//! use feetech_sim::{Line, Servo};
//!
//! let line = Line::start([Servo::new(1), Servo::new(2)]).unwrap();
//! println!("a client opens {}", line.path().display());
//! assert!(line.frames().is_empty());
//! ```

#![forbid(unsafe_code)]

mod fault;
mod frame;
mod line;
mod servo;
mod terminal;

pub use fault::Fault;
pub use frame::{BROADCAST, Frame, Instruction};
pub use line::Line;
pub use servo::{Servo, register};
