//! The program: parses the arguments, starts a runtime and returns the exit code of the subcommand. The rest is `ovos_tools::cli`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use ovos_tools::cli::{self, Cli, CliError, Options, Output};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(refused) => match cli::become_door(&refused, &arguments) {
            Some(error) => {
                Output::of_process(&Options::default()).error(&error.to_string());
                return ExitCode::from(error.exit_code());
            }
            None => refused.exit(),
        },
    };
    // The process of a toolbox needs no runtime, and a runtime could break when the toolbox misbehaves.
    if let Some(code) = cli.host_toolbox() {
        return code;
    }
    let mut output = Output::of_process(&cli.options);
    match run(&cli, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The text of a CliError names its causes; a chain would name them again.
            let (text, code) = match error.downcast_ref::<CliError>() {
                Some(known) => (known.to_string(), known.exit_code()),
                None => (format!("{error:#}"), cli::EXIT_MACHINE),
            };
            output.error(&text);
            ExitCode::from(code)
        }
    }
}

fn run(cli: &Cli, output: &mut Output<'_>) -> anyhow::Result<()> {
    let mut runtime = if cli.is_server() {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = runtime.enable_all().build().context("start the async runtime")?;
    let ran = runtime.block_on(cli::run(cli, output));
    // Without this, a thread that waits for a disk would keep the process alive.
    runtime.shutdown_background();
    Ok(ran?)
}
