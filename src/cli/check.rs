//! `ovos-tools check`: tells the author of a plugin what is wrong with it.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::context::Context;
use super::error::CliError;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools check target/debug/libhello.so
  ovos-tools check plugins/libmath.so --json

Needs no service and no bus. The file is loaded in a child process: it runs code of the plugin.")]
pub struct Arguments {
    /// The plugin
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(super) fn run(arguments: &Arguments, _: &mut Context<'_, '_>) -> Result<(), CliError> {
    Err(CliError::Refused(format!(
        "{}: this build cannot inspect plugins",
        arguments.file.display()
    )))
}
