//! The websocket under the bus: sockets, the opening handshake, and frames to and from bytes.
//!
//! There are two reasons not to use the connection type of a library. A text frame that is not UTF-8 must
//! be dropped without closing the connection (the Python bus relays binary frames as text frames). The embedded bus
//! encodes each frame once for all its clients. [`frame`] and [`origin`] are pure; [`handshake`] and [`socket`] do the IO.
//! Start with [`frame::FrameReader`].

pub(super) mod frame;
pub(super) mod handshake;
pub(super) mod origin;
pub(super) mod socket;
