//! Stands in for `ovos-tools toolbox-host --role` in the tests: the processes of the toolbox are this program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ovos_toolbox_sdk::testing::stand_in(robot::toolbox_role_v1)
}
