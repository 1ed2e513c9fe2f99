//! The service's suites once more, with toolboxes inside the service (`"isolation": "in_process"`), which makes no
//! difference for the engine and the bus.
#![allow(
    clippy::duplicate_mod,
    reason = "each suite names its helpers itself, as the program that it otherwise is"
)]

#[path = "service_emergency_stop.rs"]
mod service_emergency_stop;
#[path = "service_faults.rs"]
mod service_faults;
#[path = "service_reload.rs"]
mod service_reload;
#[path = "service_shutdown.rs"]
mod service_shutdown;
#[path = "service_user_stop.rs"]
mod service_user_stop;
