//! MAVSDK's gRPC interface: the services and messages that this toolbox uses.
//!
//! The build generates it from `proto/`. The server traits are included for the fake MAVSDK in the tests.

#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

macro_rules! package {
    ($($name:ident),*) => {
        $(
            pub mod $name {
                include!(concat!(env!("OUT_DIR"), "/mavsdk.rpc.", stringify!($name), ".rs"));
            }
        )*
        /// The encoded `FileDescriptorSet` of the messages above.
        pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    };
}

package!(
    core,
    info,
    action,
    offboard,
    mission,
    geofence,
    camera,
    events,
    mavlink_direct,
    param,
    telemetry
);
