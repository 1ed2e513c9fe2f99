//! `ovos-tools bus`: runs the embedded messagebus alone, until SIGTERM or Ctrl-C.

use std::sync::Arc;

use clap::Args;
use serde_json::json;

use ::bus::{EmbeddedBus, Envelope, InProcessLink, ServerConfig};
use cli::{CliError, Context, shut_down_on_signal};
use client::topic;
use logs::LogOptions;
use ovos_tools::service::server_config;

/// Arguments of `bus`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools bus
  ovos-tools bus --port 8182
  ovos-tools bus --host 0.0.0.0      for the whole network: the bus does not ask its clients who they are")]
pub(crate) struct Arguments {
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
    if let Err(error) = host::descriptors::raise() {
        tracing::warn!(%error, "the limit of file descriptors stays as it is");
    }
    // No client of this process, but a service somewhere: emergency stops and their answers go before other messages.
    let link = Arc::new(InProcessLink::new());
    link.overtake(|text| {
        let kind = Envelope::kind_of(text);
        kind.is_some_and(|kind| {
            kind == topic::STOP.name() || kind.strip_suffix(".response") == Some(topic::STOP.name())
        })
    });
    let configured = server_config(&config, link);
    let mut hosts = configured.hosts.clone();
    hosts.extend(arguments.host.clone());
    let server = ServerConfig {
        host: arguments.host.clone().unwrap_or(configured.host),
        port: arguments.port.unwrap_or(configured.port),
        route: arguments.route.clone().unwrap_or(configured.route),
        hosts,
        ..configured
    };
    let shutdown = shut_down_on_signal()?;
    let bus = EmbeddedBus::bind(server).await?;
    if !bus.local_addr().ip().is_loopback() {
        context.output.remark(
            "the bus has no authentication: every client that reaches this address can call every tool",
        );
    }
    let data = json!({"url": bus.url()});
    context.output.result(&data, |_| {
        format!("messagebus listening on {} (Ctrl-C to stop)\n", bus.url())
    })?;
    bus.run(shutdown).await;
    Ok(())
}
