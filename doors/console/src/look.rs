//! `ovos-tools history`: calls as a table, one call as a timeline, all of them as JSON lines.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};

use crate::history::query::{CallRow, Filter, History};
use crate::history::store::StoreError;
use crate::history::timeline;

/// The arguments of `history`.
#[derive(Debug, Args)]
#[command(
    after_help = "CALL is the id of a call, or the beginning of one. The database is a public format (docs/history.md): sqlite3 and \
                  datasette read it, too."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Print one line of JSON a call instead of a table or a timeline
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Which calls are shown.
#[derive(Debug, Args)]
struct Which {
    /// Calls since then: 90s, 30m, 2h or 7d ago, or a date such as 2026-11-26 or 2026-11-26T09:30
    #[arg(long, value_name = "TIME", global = true, value_parser = since)]
    since: Option<Timestamp>,
    /// Calls of this tool
    #[arg(long, value_name = "NAME", global = true)]
    tool: Option<String>,
    /// Calls of this toolbox
    #[arg(long, value_name = "ID", global = true)]
    toolbox: Option<String>,
    /// Calls of this session
    #[arg(long, value_name = "ID", global = true)]
    session: Option<String>,
    /// Calls that failed or were refused
    #[arg(long, global = true)]
    failed: bool,
    /// At most this many, the newest; `export` has no limit of its own
    #[arg(long, value_name = "COUNT", global = true)]
    limit: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one call: its waves as a timeline, and what was decided
    Show {
        /// The id of the call, or the beginning of it
        #[arg(value_name = "CALL")]
        call: String,
    },
    /// Print calls with all their facts, the oldest first: one line of JSON a call
    Export,
}

/// How many calls the table has by default.
const ROWS: u32 = 50;

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("the history cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("no call with the id {0} is in the history: `ovos-tools history` lists them")]
    Unknown(String),
    #[error("several calls begin with {id}: {several}; type more of the id")]
    Ambiguous { id: String, several: String },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// How much newer the service's record may be than the history of a console that runs.
const BEHIND_US: i64 = 1_000_000;

/// Prints what is asked for. `record` is the service's record, of which the history may have only a part.
pub(crate) fn run(arguments: &Arguments, file: &Path, record: &Path) -> Result<(), LookError> {
    if let Some(end) = is_behind(&History::open(file)?, record)? {
        // Without stderr there is no note.
        _ = writeln!(
            io::stderr(),
            "note: the history ends at {}, because no console is running; start one with `ovos-tools console`, or have the service start \
             it (`ovos-tools enable console`)",
            time(end)
        );
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let result = show(arguments, file, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        // `| head` has enough.
        Err(LookError::Output(cause)) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The end of the history, if the record has newer facts.
fn is_behind(history: &History, record: &Path) -> Result<Option<i64>, LookError> {
    let Some(end) = history.last_us()? else {
        return Ok(None);
    };
    let modified = record.metadata().and_then(|found| found.modified());
    let modified = modified
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_micros()).ok());
    Ok(modified
        .is_some_and(|modified| modified > end.saturating_add(BEHIND_US))
        .then_some(end))
}

fn show(arguments: &Arguments, file: &Path, out: &mut impl Write) -> Result<(), LookError> {
    let history = History::open(file)?;
    let which = &arguments.which;
    let filter = |limit| Filter {
        since_us: which.since.map(Timestamp::as_microsecond),
        tool: which.tool.clone(),
        toolbox: which.toolbox.clone(),
        session: which.session.clone(),
        failed: which.failed,
        limit,
    };
    match &arguments.command {
        None => {
            let calls = history.calls(&filter(which.limit.or(Some(ROWS))))?;
            if arguments.json {
                for call in &calls {
                    writeln!(out, "{}", serde_json::json!(call))?;
                }
                return Ok(());
            }
            table(&calls, out)
        }
        Some(Command::Show { call }) => {
            let found = history.named(call)?;
            let call = match found.as_slice() {
                [] => return Err(LookError::Unknown(call.clone())),
                [call] => call,
                several => {
                    let several: Vec<&str> = several.iter().map(|call| call.call_id.as_str()).collect();
                    return Err(LookError::Ambiguous {
                        id: call.clone(),
                        several: several.join(", "),
                    });
                }
            };
            let facts = history.facts(call.run, call.call)?;
            if arguments.json {
                writeln!(out, "{}", call.with_facts(&facts))?;
                return Ok(());
            }
            head(call, out)?;
            write!(out, "{}", timeline::draw(call, &facts))?;
            Ok(())
        }
        Some(Command::Export) => {
            let mut calls = history.calls(&filter(which.limit))?;
            calls.reverse();
            for call in &calls {
                let facts = history.facts(call.run, call.call)?;
                writeln!(out, "{}", call.with_facts(&facts))?;
            }
            Ok(())
        }
    }
}

fn table(calls: &[CallRow], out: &mut impl Write) -> Result<(), LookError> {
    let rows: Vec<[String; 6]> = calls
        .iter()
        .map(|call| {
            [
                time(call.started_us),
                call.toolbox_id.clone(),
                call.tool.clone(),
                end(call),
                call.ended_us
                    .map(|ended| timeline::millis(ended - call.started_us))
                    .unwrap_or_default(),
                call.call_id.clone(),
            ]
        })
        .collect();
    let titles = ["started", "toolbox", "tool", "end", "time", "call"].map(str::to_owned);
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let cells = rows
            .iter()
            .chain([&titles])
            .map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    });
    for row in [&titles].into_iter().chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn head(call: &CallRow, out: &mut impl Write) -> Result<(), LookError> {
    let took = call
        .ended_us
        .map(|ended| format!(" in {}", timeline::millis(ended - call.started_us)))
        .unwrap_or_default();
    writeln!(
        out,
        "{} of {} ({}): {}{took}",
        call.tool,
        call.toolbox_id,
        call.effect,
        end(call)
    )?;
    writeln!(out, "  call       {}", call.call_id)?;
    writeln!(out, "  started    {}", time(call.started_us))?;
    for (name, text) in [
        ("asked by", &call.principal),
        ("session", &call.session_id),
        ("error", &call.error),
    ] {
        if let Some(text) = text {
            writeln!(out, "  {name:<9}  {text}")?;
        }
    }
    for (name, value) in [("request", &call.request), ("result", &call.result)] {
        if !value.is_null() {
            writeln!(out, "  {name:<9}  {value}")?;
        }
    }
    Ok(())
}

/// How a call ended, in a word.
fn end(call: &CallRow) -> String {
    match (&call.outcome, call.ok) {
        (Some(outcome), _) => outcome.clone(),
        (None, Some(true)) => "completed".to_owned(),
        (None, Some(false)) => "failed".to_owned(),
        (None, None) => "no answer".to_owned(),
    }
}

fn time(us: i64) -> String {
    let Ok(at) = Timestamp::from_microsecond(us) else {
        return us.to_string();
    };
    let at = at.to_zoned(TimeZone::system());
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Reads the value of `--since`.
fn since(text: &str) -> Result<Timestamp, String> {
    since_at(text, Timestamp::now(), &TimeZone::system())
}

fn since_at(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let wrong = || "expected a time such as 90s, 30m, 2h, 7d, 2026-11-26 or 2026-11-26T09:30".to_owned();
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    for (unit, seconds) in units {
        if let Some(count) = text.strip_suffix(unit) {
            let count: u32 = count.parse().map_err(|_| wrong())?;
            let ago = SignedDuration::from_secs(i64::from(count) * seconds);
            return now.checked_sub(ago).map_err(|_| wrong());
        }
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let at = text
        .parse::<civil::DateTime>()
        .or_else(|_| text.parse::<civil::Date>().map(civil::DateTime::from))
        .map_err(|_| wrong())?;
    let at = at.to_zoned(zone.clone()).map_err(|_| wrong())?;
    Ok(at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_a_date_or_an_instant() {
        let now: Timestamp = "2026-11-26T10:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("90s", Some("2026-11-26T09:58:30Z")),
            ("30m", Some("2026-11-26T09:30:00Z")),
            ("2h", Some("2026-11-26T08:00:00Z")),
            ("7d", Some("2026-11-19T10:00:00Z")),
            ("2026-11-26", Some("2026-11-26T00:00:00Z")),
            ("2026-11-26T09:30", Some("2026-11-26T09:30:00Z")),
            ("2026-11-26T09:30:00+02:00", Some("2026-11-26T07:30:00Z")),
            ("", None),
            ("-1h", None),
            ("yesterday", None),
            ("99999999999d", None),
        ] {
            let found = since_at(text, now, &TimeZone::UTC).ok();
            assert_eq!(found, expected.map(|at| at.parse().unwrap()), "{text}");
        }
    }
}
