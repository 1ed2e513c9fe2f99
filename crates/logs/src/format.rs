//! The line format of every OVOS service: `2026-01-31 12:34:56.789 - ovos_tools - ovos_tools.bus.client:connect:42 -
//! INFO - message key=value`. `ovos-logs` reads it. The innermost span takes the place of the function.

use std::fmt::{self, Write};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use client::text::is_unseen;
use config::SERVICE_NAME;

/// Formats events as OVOS does.
#[derive(Debug, Clone, Copy)]
pub struct OvosFormat;

impl<S, N> FormatEvent<S, N> for OvosFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let time = jiff::Zoned::now();
        write!(
            out,
            "{} - {SERVICE_NAME} - ",
            time.strftime("%Y-%m-%d %H:%M:%S.%3f")
        )?;
        let span = context.lookup_current();
        let place = span.as_ref().map_or("-", |span| span.name());
        write!(
            out,
            "{}:{place}:{} - ",
            metadata.target().replace("::", "."),
            metadata.line().unwrap_or(0)
        )?;
        out.write_str(match *metadata.level() {
            Level::ERROR => "ERROR",
            Level::WARN => "WARNING",
            Level::INFO => "INFO",
            // Python has no level below DEBUG.
            Level::DEBUG | Level::TRACE => "DEBUG",
        })?;
        out.write_str(" - ")?;

        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span
                .extensions()
                .get::<FormattedFields<N>>()
                .filter(|fields| !fields.is_empty())
            {
                write!(text, " {fields}")?;
            }
        }
        write_on_one_line(&mut out, &text)?;
        out.write_char('\n')
    }
}

/// Escapes characters that a person does not see. Texts come from the bus and from toolboxes, and must neither forge a log line
/// nor control the terminal that shows it.
fn write_on_one_line(out: &mut Writer<'_>, text: &str) -> fmt::Result {
    for letter in text.chars() {
        if is_unseen(letter) && letter != '\t' {
            write!(out, "{}", letter.escape_default())?;
        } else {
            out.write_char(letter)?;
        }
    }
    Ok(())
}
