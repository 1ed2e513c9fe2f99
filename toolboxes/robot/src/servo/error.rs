//! Why a job on a bus failed. The texts name the bus, the servo, and what to look at.

use std::time::Duration;

/// Why a job on a bus failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ServoError {
    /// The port is gone or was never there.
    #[error(
        "bus {bus}: cannot open {path}: {reason}; check the cable, the power and the permission to open the port"
    )]
    NoPort {
        bus: String,
        path: String,
        reason: String,
    },
    /// The port was there and is not any more.
    #[error("bus {bus}: {path} is gone: {reason}; check the cable, it is opened again by itself")]
    PortLost {
        bus: String,
        path: String,
        reason: String,
    },
    /// No answer in time.
    #[error(
        "servo {id} on bus {bus} does not answer within {waited:?}, asked three times; check its cable, its power and its \
         id; where it answers at other times, raise channels.answer_ms"
    )]
    Silent { bus: String, id: u8, waited: Duration },
    /// The port is there, and not one servo answers.
    #[error(
        "bus {bus}: {path} is open, and the robot is silent: no servo answers; check the power of the servos and the cable \
         between them and the adapter"
    )]
    Mute { bus: String, path: String },
    /// Every answer was garbled.
    #[error(
        "servo {id} on bus {bus} answers garbled ({reason}); check its cable and that no other servo has this id"
    )]
    Garbled { bus: String, id: u8, reason: String },
    /// A value that does not fit its register.
    #[error("servo {id} on bus {bus}: {reason}")]
    Value { bus: String, id: u8, reason: String },
    /// The servo turns at a speed and does not go to positions.
    #[error(
        "servo {id} on bus {bus} is in wheel mode (operating mode {mode}) and would turn without an end; check that the \
         ports are not swapped, then recover_servo with action reconfigure makes it a joint"
    )]
    Turns { bus: String, id: u8, mode: i64 },
    /// A stop was sent, and these servos did not say in time what became of it.
    #[error(
        "bus {bus}: servos {ids} answer too slowly for a stop: {what}; cut their power if they still move"
    )]
    Unconfirmed {
        bus: String,
        ids: String,
        what: &'static str,
    },
    /// A stop was sent, and another program can send something after it.
    #[error(
        "bus {bus}: {holder} has {path} open, too, and may move the servos again; end it, or cut the power of the servos"
    )]
    Shared {
        bus: String,
        path: String,
        holder: String,
    },
    /// A stop waits for what the bus does at the moment, and will be sent.
    #[error("bus {bus} is still busy: the stop is sent next; cut the power of the servos if they still move")]
    Unsent { bus: String },
    /// A stop came before the command was sent, or before its servo had answered.
    #[error("bus {bus}: ended by a stop")]
    Stopped { bus: String },
    /// The queue is full.
    #[error("bus {bus}: {waiting} commands are waiting; its servos answer too slowly")]
    Busy { bus: String, waiting: usize },
    /// Another program has the port.
    #[error("bus {bus}: its port is with a program that moves the robot; it comes back when that has ended")]
    Lent { bus: String },
    /// The bus is being closed.
    #[error("bus {bus}: closed")]
    Closed { bus: String },
}
