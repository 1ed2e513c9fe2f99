//! ovos-tools: gives a voice assistant hands.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [host, probe, file] if host == "toolbox-host" && probe == "--probe" => {
            ovos_tools::plugin::probe::child_main(Path::new(file))
        }
        [host, inspect, file] if host == "toolbox-host" && inspect == "--inspect" => {
            ovos_tools::plugin::inspect::child_main(Path::new(file))
        }
        _ => ExitCode::FAILURE,
    }
}
