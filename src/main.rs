//! The program: parses the arguments, starts a runtime and returns the exit code of the subcommand. The rest is in `program`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Parser;

mod program;

use cli::{CliError, Options, Output};
use program::Cli;

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
    limit_arenas(&cli, &arguments);
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

/// How many arenas glibc's allocator may make for a server.
const ARENAS: &str = "2";

/// The variable that tells glibc's allocator so. It is read before `main`.
const ARENAS_VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Executes this program again where it is a server, with few arenas for its allocator. glibc makes up to eight for each core, and
/// memory that one thread allocates and another frees leaves holes in all of them: under a mix of calls and reloads the resident memory
/// of the service went on growing, with 2 MB in use; with two arenas it stays. Goes on without where that fails.
fn limit_arenas(cli: &Cli, arguments: &[OsString]) {
    if !cli.is_server() || std::env::var_os(ARENAS_VARIABLE).is_some() {
        return;
    }
    let (Some((name, rest)), Ok(program)) = (arguments.split_first(), std::env::current_exe()) else {
        return;
    };
    // It keeps the process, its id and its descriptors, so that whatever started it notices nothing. It returns only if it fails.
    let error = Command::new(program)
        .arg0(name)
        .args(rest)
        .env(ARENAS_VARIABLE, ARENAS)
        .exec();
    drop(error);
}

fn run(cli: &Cli, output: &mut Output<'_>) -> anyhow::Result<()> {
    let mut runtime = if cli.is_server() {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = runtime.enable_all().build().context("start the async runtime")?;
    let ran = runtime.block_on(program::run(cli, output));
    // Without this, a thread that waits for a disk would keep the process alive.
    runtime.shutdown_background();
    Ok(ran?)
}
