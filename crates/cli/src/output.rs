//! The program's output: results on one stream, errors and progress on the other.
//!
//! If the reader goes away (`ovos-tools list | head`), that is no error: the rest is dropped.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::error::CliError;
use super::options::Options;
use super::paint::{Paint, Tone, plain};
use config::{Environment, ProcessEnvironment};

/// The two streams, and how to write to them.
pub struct Output<'a> {
    results: Box<dyn Write + 'a>,
    remarks: Box<dyn Write + 'a>,
    /// The appearance of results.
    pub paint: Paint,
    remark_paint: Paint,
    json: bool,
    quiet: bool,
    live: bool,
    asks: bool,
}

impl Output<'static> {
    /// Creates the output on stdout and stderr. Colour and a live view are used only on a terminal. `NO_COLOR` and `TERM=dumb`
    /// turn colour off.
    #[must_use]
    pub fn of_process(options: &Options) -> Self {
        let env = ProcessEnvironment;
        let plain_wanted = env.var("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env.var("TERM").is_some_and(|term| term == "dumb");
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let width = comfy_table::Table::new().width().filter(|_| out);
        Self {
            results: Box::new(io::stdout()),
            remarks: Box::new(io::stderr()),
            paint: Paint {
                colour: out && !plain_wanted,
                width,
            },
            remark_paint: Paint {
                colour: err && !plain_wanted,
                width: None,
            },
            json: options.json,
            quiet: options.quiet,
            live: err && !plain_wanted,
            asks: err && io::stdin().is_terminal(),
        }
    }
}

impl<'a> Output<'a> {
    /// Creates the output on any two streams, without colour, without a live view and without a person to ask.
    pub fn new(options: &Options, results: impl Write + 'a, remarks: impl Write + 'a) -> Self {
        Self {
            results: Box::new(results),
            remarks: Box::new(remarks),
            paint: Paint::default(),
            remark_paint: Paint::default(),
            json: options.json,
            quiet: options.quiet,
            live: false,
            asks: false,
        }
    }

    /// Whether results are written as JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether only errors are written.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether remarks go to a terminal that can be drawn on.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether a person reads the remarks and can answer.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Writes a result: the data with `--json`, else the text.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn result<T: serde::Serialize>(
        &mut self,
        data: &T,
        text: impl FnOnce(Paint) -> String,
    ) -> Result<(), CliError> {
        if self.json {
            let line = serde_json::to_string(data).map_err(|error| CliError::output(error.into()))?;
            self.write(&line)
        } else {
            let text = text(self.paint);
            self.text(&text)
        }
    }

    /// Writes text for people: not with `--json` or `--quiet`.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn text(&mut self, text: &str) -> Result<(), CliError> {
        if self.json || self.quiet || text.is_empty() {
            return Ok(());
        }
        self.write(text)
    }

    /// Writes a document unchanged, whatever the options: a graph, completions.
    ///
    /// # Errors
    /// The document cannot be written.
    pub fn document(&mut self, text: &str) -> Result<(), CliError> {
        self.write(text)
    }

    /// Writes a remark to the stream for errors and progress; not with `--quiet`. A failed write is ignored.
    pub fn remark(&mut self, text: &str) {
        if !self.quiet {
            let _ = writeln!(self.remarks, "{}", plain(text));
        }
    }

    /// Writes a question to the stream for errors and progress, whatever the options. The answer is typed in its last line. A
    /// failed write is ignored.
    pub fn question(&mut self, text: &str) {
        let _ = write!(self.remarks, "{}", plain(text)).and_then(|()| self.remarks.flush());
    }

    /// Writes a progress message as a JSON line to the stream for errors and progress.
    pub fn remark_json(&mut self, data: &Value) {
        let _ = writeln!(self.remarks, "{data}");
    }

    /// Writes an error. A failed write is ignored, because there is no other place to report it.
    pub fn error(&mut self, text: &str) {
        let label = self.remark_paint.tone(Tone::Bad, "error:");
        let _ = writeln!(self.remarks, "{label} {}", plain(text));
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        let text = text.trim_end_matches('\n');
        let written = writeln!(self.results, "{text}").and_then(|()| self.results.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::output(error)),
            _ => Ok(()),
        }
    }
}
