//! A serial bus of simulated Feetech STS3215 servos, or of Dynamixel's XL430-W250 and XL330-M288, on a pseudo terminal.
//!
//! Owns the wire format, each servo's register table and a simple model of its motion: full speed at once, weights that pull at its
//! horn, ends, and the alarms of what it cannot bear. It records every instruction, and it fails on demand: a
//! servo ([`Fault`]), or the way of the answers to the client ([`Delivery`]). It never corrects a client: a
//! servo whose torque is switched on moves to the value in its goal register, like the real one. [`Bus`] is the same without a
//! terminal, in the time of its caller. Read [`Line`].
//!
//! ```
//! use feetech_sim::{Line, Servo};
//!
//! let line = Line::start([Servo::new(1), Servo::new(2)]).unwrap();
//! println!("a client opens {}", line.path().display());
//! assert!(line.frames().is_empty());
//! ```

#![forbid(unsafe_code)]

mod bus;
mod delivery;
mod dynamixel;
mod fault;
mod frame;
mod line;
mod packet;
mod servo;
mod terminal;

pub use bus::Bus;
pub use delivery::{Delivery, Lateness};
pub use dynamixel::{ControlTable, Dynamixel, Model, control};
pub use fault::Fault;
pub use frame::{BROADCAST, Frame, Instruction};
pub use line::Line;
pub use servo::{Servo, register};
