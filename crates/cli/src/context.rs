//! What every subcommand uses: the options, the configuration, a way to the bus, and the output.

use std::sync::Arc;
use std::time::Duration;

use super::error::CliError;
use super::options::Options;
use super::output::Output;
use client::{Address, Client, Received};
use config::{Config, LogLevel, Overrides, ProcessEnvironment};
use logs::{LogOptions, Logs};

/// The name of the sender in the requests of the command line, and the id of their session. All runs of the program share it, so
/// that an operator's approval of a call also holds for the next run of the program.
const SOURCE: &str = "ovos-tools-cli";

/// The default time to wait for the bus, and for an answer to most requests.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);

/// Shared by all subcommands.
pub struct Context<'a, 'o> {
    /// The options of the command line.
    pub options: &'a Options,
    /// What is written.
    pub output: &'a mut Output<'o>,
    logs: Option<Logs>,
}

/// Returns the address of the bus in a configuration.
#[must_use]
pub fn address(config: &Config) -> Address {
    Address {
        url: config.bus.url.clone(),
        certificate: config.bus.ssl_cert.clone(),
    }
}

/// Connects to the bus.
pub(super) async fn connect(address: Address, wait: Duration) -> Result<Client, CliError> {
    Ok(Client::connect_in(SOURCE.to_owned(), address, SOURCE, wait).await?)
}

impl<'a, 'o> Context<'a, 'o> {
    /// What the subcommands share.
    #[must_use]
    pub fn new(options: &'a Options, output: &'a mut Output<'o>) -> Self {
        Self {
            options,
            output,
            logs: None,
        }
    }

    /// The options that override the files.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.options.config.clone(),
            bus: self.options.bus.clone(),
            ..Overrides::default()
        }
    }

    /// The configuration in force.
    ///
    /// # Errors
    /// It cannot be read, or is invalid.
    pub fn config(&self) -> Result<Arc<Config>, CliError> {
        Ok(Config::load(&ProcessEnvironment, &self.overrides(), None)?)
    }

    /// Returns how long to wait, for a subcommand without a default of its own.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.options.timeout.unwrap_or(DEFAULT_WAIT)
    }

    /// Connects to the bus.
    ///
    /// # Errors
    /// The configuration is wrong, or there is no bus.
    pub async fn client(&mut self) -> Result<Client, CliError> {
        let config = self.config()?;
        if self.options.verbose > 0 && self.logs.is_none() {
            let options = LogOptions {
                json: false,
                file: false,
            };
            self.logs = Some(self.start_logs(&config, options)?);
        }
        connect(address(&config), self.wait()).await
    }

    /// Returns `Err` if the answer is an error; with `--json` the answer is printed anyway.
    pub(super) fn refuse_error<A>(&mut self, answer: &Received<A>) -> Result<(), CliError> {
        let accepted = answer.accepted();
        if accepted.is_err() {
            self.output.result(&answer.data, |_| String::new())?;
        }
        Ok(accepted?)
    }

    /// Starts the logs, at the level the options ask for.
    ///
    /// # Errors
    /// The process already has logs.
    pub fn start_logs(&self, config: &Config, options: LogOptions) -> Result<Logs, CliError> {
        let mut logging = config.logging.clone();
        match (self.options.quiet, self.options.verbose) {
            (true, _) => logging.level = LogLevel::Error,
            (false, 0) => {}
            (false, 1) => logging.level = logging.level.min(LogLevel::Debug),
            (false, _) => logging.level = LogLevel::Trace,
        }
        let logs = logs::start(&logging, options)?;
        for notice in &config.notices {
            tracing::warn!("{notice}");
        }
        Ok(logs)
    }
}
