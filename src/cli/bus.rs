//! `ovos-tools bus`: a messagebus of our own, until SIGTERM or Ctrl-C.

use clap::Args;

use super::context::Context;
use super::error::CliError;

/// Arguments of `bus`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools bus
  ovos-tools bus --port 8182
  ovos-tools bus --host 0.0.0.0      for the whole network: the bus asks nobody who they are")]
pub struct Arguments {
    /// Address to bind [default: embedded_bus_host of the configuration, else 127.0.0.1]
    #[arg(long)]
    host: Option<String>,
    /// Port; 0 takes a free one [default: that of the configured bus, 8181]
    #[arg(long)]
    port: Option<u16>,
    /// Path [default: that of the configured bus, /core]
    #[arg(long)]
    route: Option<String>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let config = context.config()?;
    let _ = (arguments, config);
    Err(CliError::Refused("this build has no bus".to_owned()))
}
