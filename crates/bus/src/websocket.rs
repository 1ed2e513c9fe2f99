//! The websocket under the bus: sockets, the opening handshake, and frames to and from bytes.
//!
//! Written here and not taken whole from a library for two reasons: a text frame that is not UTF-8 (the
//! Python bus turns binary frames into such) must cost the frame and not the connection, and the embedded bus
//! encodes a frame once for all its clients. [`frame`] is pure; [`handshake`] and [`socket`] do the IO. Start
//! with [`frame::FrameReader`].

pub(super) mod frame;
pub(super) mod handshake;
pub(super) mod socket;
