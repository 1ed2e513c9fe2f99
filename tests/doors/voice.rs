//! The voice door against local servers of the speech services' protocols, on the real service.

mod bus;
mod calls;
mod cuts;
mod deadman;
mod joins;
mod openai;
mod order;
mod speech;
mod stage;
mod vendors;
