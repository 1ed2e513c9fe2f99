//! Where a base stands, and where it can be sent.
//!
//! Owns the pose of a base: metres and degrees in a frame that has a name. Numbers of two frames mean nothing to each other.
//! Pure. Read [`Spot`].
//!
//! A driver that knows where its base is says so with `Services::position` and answers
//! [`Adapter::fix`](crate::adapter::Adapter::fix). A driver whose robot finds its own way (Nav2) adds `Services::navigates` and takes
//! [`Motion::GoTo`](crate::action::Motion::GoTo). The others are sent to a spot by drives, from one fix to the next.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A point in a frame, and the way to face there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spot {
    /// The frame, such as `map`. The same name is the same frame for as long as places are remembered: a frame that begins
    /// somewhere else after a restart (dead reckoning) has another name then.
    pub frame: String,
    /// Metres along the first axis of the frame.
    pub x: f64,
    /// Metres along the second axis, which is to the left of the first.
    pub y: f64,
    /// Degrees counter-clockwise from the first axis, above -180 to 180.
    pub heading: f64,
}

impl Spot {
    /// As results show it.
    #[must_use]
    pub fn shown(&self) -> Value {
        json!({"frame": self.frame, "x_m": self.x, "y_m": self.y, "heading_degrees": self.heading})
    }
}

/// A point of a hand as results show it, in the frame of the arm's base.
#[must_use]
pub fn metres(at: [f64; 3]) -> Value {
    let [x, y, z] = at.map(|metres| (metres * 10_000.0).round() / 10_000.0 + 0.0);
    json!({"x_m": x, "y_m": y, "z_m": z})
}

/// Where a base was found to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// Where it was.
    pub spot: Spot,
    /// How long ago it was measured. A base that stands and measures its own wheels has an age of zero.
    pub age: Duration,
}
