//! `ovos-tools completions`: prints the script with which a shell completes our arguments.

use clap::{Args, Command};
use clap_complete::Shell;

use cli::{CliError, Context};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools completions bash > ~/.local/share/bash-completion/completions/ovos-tools
  ovos-tools completions zsh > ~/.zfunc/_ovos-tools
  ovos-tools completions fish > ~/.config/fish/completions/ovos-tools.fish")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(super) fn run(
    arguments: &Arguments,
    mut program: Command,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "ovos-tools", &mut script);
    context.output.document(&String::from_utf8_lossy(&script))
}
