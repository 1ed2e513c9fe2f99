//! `ovos-tools-ovos`: the voice, the volume and the media player of an OVOS device as the toolbox `ovos`.
//!
//! This is a program of ovos-tools (`docs/protocol.md`) with a connection of its own to the bus: the service passes neither sessions
//! nor answers under other topics on to toolboxes. `line` is that connection, `speech`, `question`, `volume` and `media` are what the
//! tools do with it, `tools` is the table of them, and `toolbox` serves the runs. docs/ovos.md is its page.
//!
//! ```json
//! {"service": {"programs": {"ovos": {"command": "ovos-tools-ovos"}}}}
//! ```
#![forbid(unsafe_code)]

mod line;
mod media;
mod open_question;
mod question;
mod speech;
mod stray;
mod toolbox;
mod tools;
mod volume;

use std::ffi::OsString;
use std::process::ExitCode;

use config::{Config, Overrides, ProcessEnvironment};
use ovos_toolbox_sdk::manifest;
use ovos_toolbox_wire::{Failure, Manifest};
use program::print_and_exit;

use crate::toolbox::Ovos;

/// The id of the toolbox, by which it is known on the bus, too.
const ID: &str = "ovos";

const HELP: &str = "ovos-tools-ovos: the voice, the volume and the media player of an OVOS device as a toolbox of ovos-tools

ovos-tools starts this program where service.programs names it (docs/ovos.md). It is not meant to be run by hand.

  ovos-tools-ovos [--bus URL] [--config FILE]   the toolbox `ovos`; the bus is that of mycroft.conf
  ovos-tools-ovos --tools                       prints its tools
  ovos-tools-ovos --safe-stop                   nothing: it moves nothing
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
    let mut overrides = Overrides::default();
    let mut rest = words.as_slice();
    loop {
        rest = match rest {
            [] | [.., "--safe-stop"] => break,
            ["--bus", url, rest @ ..] => {
                overrides.bus = Some((*url).to_owned());
                rest
            }
            ["--config", file, rest @ ..] => {
                overrides.config = Some(file.into());
                rest
            }
            ["--tools"] => return print_and_exit(&format!("{:#}\n", serde_json::json!(tools::list())), 0),
            ["--version"] => {
                return print_and_exit(&format!("ovos-tools-ovos {}\n", env!("CARGO_PKG_VERSION")), 0);
            }
            ["--help" | "-h"] => return print_and_exit(HELP, 0),
            _ => return print_and_exit(HELP, 2),
        };
    }
    let manifest = Manifest {
        // The tools of a robot that speaks for itself come first.
        yields: true,
        ..manifest!(ID)
    };
    program::run(&manifest, move |_, _| {
        let config = Config::load(&ProcessEnvironment, &overrides, None);
        let config = config.map_err(|errors| Failure::new("ConfigError", errors.to_string()))?;
        Ovos::open(&config.bus)
    })
}
