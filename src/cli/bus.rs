//! `ovos-tools bus`: runs the embedded messagebus alone, until SIGTERM or Ctrl-C.

use clap::Args;
use serde_json::json;

use super::context::Context;
use super::error::CliError;
use super::serve::shut_down_on_signal;
use crate::logs::LogOptions;
use bus::{EmbeddedBus, ServerConfig};

/// Arguments of `bus`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools bus
  ovos-tools bus --port 8182
  ovos-tools bus --host 0.0.0.0      for the whole network: the bus does not ask its clients who they are")]
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
    let options = LogOptions {
        json: false,
        file: false,
    };
    let _logs = context.start_logs(&config, options)?;
    let defaults = ServerConfig::default();
    let url = &config.bus.url;
    let server = ServerConfig {
        host: arguments
            .host
            .clone()
            .unwrap_or_else(|| config.service.embedded_bus_host.clone()),
        port: arguments
            .port
            .or_else(|| url.port_or_known_default())
            .unwrap_or(defaults.port),
        route: arguments.route.clone().unwrap_or_else(|| url.path().to_owned()),
        max_message: config.bus.max_message_bytes,
        ..defaults
    };
    let shutdown = shut_down_on_signal()?;
    let bus = EmbeddedBus::bind(server).await?;
    if !bus.local_addr().ip().is_loopback() {
        context.output.remark(
            "every client that reaches this address can call every tool: the bus does not ask who it is",
        );
    }
    let data = json!({"url": bus.url()});
    context.output.result(&data, |_| {
        format!("messagebus at {}; Ctrl-C ends it\n", bus.url())
    })?;
    bus.run(shutdown).await;
    Ok(())
}
