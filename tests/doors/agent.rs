//! The agent with a model that plays a script, against the real service: goals that are reached, models that misbehave, people who
//! stop it.

mod bursts;
mod bus;
mod drone;
mod ends;
mod gstreamer;
mod misbehaving;
mod model;
mod options;
mod order;
mod records;
mod robot;
mod stage;
mod terminal;
