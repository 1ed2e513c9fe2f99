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
mod credentials;
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
mod sign_in;
mod tools;

use std::ffi::OsString;
use std::process::ExitCode;

use ::program::print_and_exit;
use ovos_toolbox_wire::is_toolbox_id;

const HELP: &str = "ovos-tools-mounts: MCP servers as toolboxes of ovos-tools

ovos-tools starts this program for each server in `service.mounts` of its configuration
(docs/mounts.md). By hand, as the user of the service, `ovos-tools mounts` runs

  ovos-tools-mounts sign-in NAME           signs in at a server that asks for it, in a browser
      --client-id ID                       the id of a client that you registered at the issuer; an ID that is a URL
                                           is the address of the client's metadata
      --client-secret-env VARIABLE         the variable of the environment that has its secret
      --issuer URL                         sign in at this issuer only; needed with a secret, which goes to no other one
      --device                             with a code that you type on another machine, if the issuer supports it;
                                           this is the default on a machine without a browser
      --config FILE                        with this configuration

The service runs

  ovos-tools-mounts --alone ID             one mount, which is the toolbox ID
  ovos-tools-mounts --safe-stop            nothing: a mount moves nothing
  ovos-tools-mounts --keep PARENT -- CMD   runs a server, and ends it with its descendants
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
    match words.as_slice() {
        ["sign-in", name, options @ ..] if !name.starts_with('-') => sign_in::run(name, options),
        ["--config", file, "sign-in", name, options @ ..] => {
            sign_in::run(name, &[&["--config", file][..], options].concat())
        }
        [.., "--safe-stop"] => ExitCode::SUCCESS,
        ["--keep", parent, "--", ..] => keeper::keep(parent, arguments.get(3..).unwrap_or_default()),
        ["--alone", id] if is_toolbox_id(id) => program::run(id),
        ["--version"] => print_and_exit(&format!("ovos-tools-mounts {}\n", env!("CARGO_PKG_VERSION")), 0),
        ["--help" | "-h"] => print_and_exit(HELP, 0),
        _ => print_and_exit(HELP, 2),
    }
}
