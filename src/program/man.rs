//! `ovos-tools man`: writes the manual pages of the program and of its subcommands. `scripts/install.sh` runs it.

use std::path::PathBuf;

use clap::{Args, Command};

use cli::CliError;

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// The folder for the pages; created if missing
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
}

pub(super) fn run(arguments: &Arguments, program: Command) -> Result<(), CliError> {
    let folder = &arguments.folder;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(program, folder));
    written.map_err(|cause| CliError::Machine {
        what: format!("write manual pages to {}", folder.display()),
        cause,
    })
}
