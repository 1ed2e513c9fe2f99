//! A substitute for the service's `toolbox-host` in the processes that a toolbox under test starts. Read [`stand_in`].

use std::ffi::OsString;
use std::os::fd::{AsFd as _, IntoRawFd as _};
use std::path::PathBuf;
use std::process::ExitCode;

use ovos_toolbox_abi::{Status, Str, status};

use crate::bytes::lend;
use crate::role::host_program::HOST_PROGRAM;

/// Makes every [`RoleProcess`](crate::RoleProcess) of this process start `program`, which calls [`stand_in`]:
/// `role_host(env!("CARGO_BIN_EXE_my-role"))`.
pub fn role_host(program: impl Into<PathBuf>) {
    HOST_PROGRAM.lock().instead = Some(program.into());
}

/// Adds a variable to the environment of those processes.
pub fn role_env(name: impl Into<OsString>, value: impl Into<OsString>) {
    HOST_PROGRAM.lock().env.push((name.into(), value.into()));
}

/// The `main` of a program that stands in for `ovos-tools toolbox-host --role`, with the `toolbox_role_v1` of the toolbox.
#[must_use]
pub fn stand_in(entry: extern "C" fn(Str, std::ffi::c_int) -> Status) -> ExitCode {
    let role = std::env::args().nth(3).unwrap_or_default();
    let Ok(leash) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    if entry(lend(&role), leash.into_raw_fd()) == status::OK {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
