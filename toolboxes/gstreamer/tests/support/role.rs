//! Stands in for `ovos-tools toolbox-host --role` in the tests: the processes of the toolbox are this program.
#![allow(clippy::unwrap_used, reason = "a program for tests")]

mod played;
mod vendor;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::var_os(played::DEVICES).is_some() {
        gst::init().unwrap();
        played::register();
    }
    if std::env::var_os(vendor::VENDOR).is_some() {
        gst::init().unwrap();
        vendor::await_install();
    }
    ovos_toolbox_sdk::testing::stand_in(gstreamer_toolbox::toolbox_role_v1)
}
