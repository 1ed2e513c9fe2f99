//! `ovos-tools-mounts`: servers of the Model Context Protocol (MCP) as toolboxes.
//!
//! This is a program of ovos-tools (`docs/protocol.md`) and a client of MCP. The service starts it. It reads no configuration: the
//! order `open` contains the mount. Read [`program`] (the service's side), [`mount`] (the server's side), [`keeper`] (processes).
//!
//! ```json
//! {"service": {"mounts": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/shared"]}}}}
//! ```
#![forbid(unsafe_code)]

mod complaint;
mod connect;
mod keeper;
mod mount;
mod mount_toolbox;
mod peer;
mod process;
mod program;
mod reporter;
mod result;
mod schemas;
mod secrets;
mod server_files;
mod tools;

use std::ffi::OsString;
use std::process::ExitCode;

use ovos_toolbox_wire::is_toolbox_id;

const HELP: &str = "ovos-tools-mounts: MCP servers as toolboxes of ovos-tools

ovos-tools starts this program for each server in `service.mounts` of its configuration
(docs/mounts.md). It is not meant to be run by hand.

  ovos-tools-mounts --alone ID             one mount, which is the toolbox ID
  ovos-tools-mounts --safe-stop            nothing: a mount moves nothing
  ovos-tools-mounts --keep PARENT -- CMD   runs a server, and ends it with its descendants
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
    match words.as_slice() {
        [.., "--safe-stop"] => ExitCode::SUCCESS,
        ["--keep", parent, "--", ..] => keeper::keep(parent, arguments.get(3..).unwrap_or_default()),
        ["--alone", id] if is_toolbox_id(id) => program::run(id),
        ["--version"] => print_and_exit(&format!("ovos-tools-mounts {}\n", env!("CARGO_PKG_VERSION")), 0),
        ["--help" | "-h"] => print_and_exit(HELP, 0),
        _ => print_and_exit(HELP, 2),
    }
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "for the person who started it by hand"
)]
fn print_and_exit(text: &str, status: u8) -> ExitCode {
    if status == 0 {
        print!("{text}");
    } else {
        eprint!("{text}");
    }
    ExitCode::from(status)
}
