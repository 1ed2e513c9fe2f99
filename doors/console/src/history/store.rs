//! The one writer of the database. Read [`Store::take`].

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use client::payload::{FactLine, FactPosition, RecordedFact, ServiceStart};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde_json::Value;

/// The version of the tables, in `PRAGMA user_version`.
pub(crate) const FORMAT: i64 = 1;

/// The tables of a new database.
const SCHEMA: &str = include_str!("schema.sql");

/// The beginning of the ids of calls with which the page looks at machines, as `static/service.js` makes them.
const LOOK: &str = "console-look-";

/// How many facts are deleted at a time, at most.
const TRIM: i64 = 1000;

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the history {path}: {cause}; choose another place with service.doors.console.history_file")]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "the history {path} has format {found}, expected {FORMAT}: use the version of ovos-tools that wrote it, or move the file away"
    )]
    Format { path: PathBuf, found: i64 },
    #[error(
        "the history {path} cannot be used: {cause}; if it is damaged, move it away and a new one is made"
    )]
    Database { path: PathBuf, cause: rusqlite::Error },
    #[error(
        "there is no history yet in {0}: `ovos-tools console` keeps one, and `ovos-tools enable console` has the service start it"
    )]
    None(PathBuf),
}

impl StoreError {
    pub(super) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Database {
            path: path.clone(),
            cause,
        }
    }
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) keep_us: i64,
    pub(crate) keep_bytes: i64,
}

/// The database, open for writing.
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    /// The run of the last line.
    run: Option<Run>,
}

/// A run of the service.
#[derive(Debug, Clone, Copy)]
struct Run {
    row: i64,
    time_us: i64,
}

impl Store {
    /// Opens the database, and makes it if it is missing. Only its owner can read it.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::File {
            path: path.to_owned(),
            cause,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(path).map_err(failed)?;
        let wrong = StoreError::database(path);
        let mut connection = Connection::open(path).map_err(&wrong)?;
        prepare(&mut connection).map_err(&wrong)?;
        let found: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(&wrong)?;
        if found != FORMAT {
            return Err(StoreError::Format {
                path: path.to_owned(),
                found,
            });
        }
        Ok(Self {
            connection,
            path: path.to_owned(),
            run: None,
        })
    }

    /// The last fact that the database has.
    pub(crate) fn place(&self) -> Result<Option<FactPosition>, StoreError> {
        let found =
            self.connection
                .query_row("SELECT id, number FROM place JOIN run USING (run)", [], |row| {
                    Ok((row.get(0)?, row.get::<_, i64>(1)?))
                });
        let found = found.optional().map_err(StoreError::database(&self.path))?;
        Ok(found.map(|(start, number)| FactPosition {
            start,
            number: number.cast_unsigned(),
        }))
    }

    /// Writes lines and the place of the last of them in one step: a program that is killed leaves both or neither. A fact that
    /// the database has is passed over.
    pub(crate) fn take(&mut self, lines: &[FactLine]) -> Result<(), StoreError> {
        let wrong = StoreError::database(&self.path);
        let mut run = self.run;
        let transaction = self.connection.transaction().map_err(&wrong)?;
        for line in lines {
            write(&transaction, &mut run, line).map_err(&wrong)?;
        }
        transaction.commit().map_err(&wrong)?;
        self.run = run;
        Ok(())
    }

    /// Deletes some of what is too old or too much. Returns whether there may be more of it.
    pub(crate) fn trim(&mut self, now_us: i64, bounds: Bounds) -> Result<bool, StoreError> {
        trim(&mut self.connection, now_us, bounds).map_err(StoreError::database(&self.path))
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Before the first table; later it has no effect.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // What a process has committed outlives it; a power cut may take the last commits, which the service's record still has.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // A small cache: the console is to stay small.
    connection.pragma_update(None, "cache_size", -1024)?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        transaction.execute_batch(SCHEMA)?;
    }
    transaction.commit()
}

fn write(to: &Transaction<'_>, run: &mut Option<Run>, line: &FactLine) -> rusqlite::Result<()> {
    match line {
        FactLine::Start { start } => {
            *run = Some(enter(to, start)?);
            Ok(())
        }
        FactLine::Lost { lost } => {
            let Some(run) = run else { return Ok(()) };
            let sql = "INSERT OR REPLACE INTO lost VALUES (?1, ?2, ?3)";
            to.prepare_cached(sql)?.execute(params![
                run.row,
                lost.from.cast_signed(),
                lost.to.cast_signed()
            ])?;
            reached(to, run.row, lost.to)
        }
        FactLine::Fact(fact) => {
            let Some(run) = run else { return Ok(()) };
            if !is_look(fact) {
                add(to, *run, fact)?;
            }
            reached(to, run.row, fact.number)
        }
    }
}

/// Whether a fact is of a call with which the page looks at a machine, each second while it is open: what such calls read would push
/// out what happened. The service's record has them.
fn is_look(fact: &RecordedFact) -> bool {
    let call = fact.data.get("call").unwrap_or(&Value::Null);
    let id = call["call_id"].as_str().unwrap_or_default();
    id.starts_with(LOOK) && call["effect"] == "read"
}

fn enter(to: &Transaction<'_>, start: &ServiceStart) -> rusqlite::Result<Run> {
    let sql = "INSERT OR IGNORE INTO run (id, version, time_us, first) VALUES (?1, ?2, ?3, ?4)";
    to.prepare_cached(sql)?.execute(params![
        start.id,
        start.version,
        start.time_us,
        start.first.cast_signed()
    ])?;
    to.prepare_cached("SELECT run, time_us FROM run WHERE id = ?1")?
        .query_row([&start.id], |row| {
            Ok(Run {
                row: row.get(0)?,
                time_us: row.get(1)?,
            })
        })
}

fn reached(to: &Transaction<'_>, run: i64, number: u64) -> rusqlite::Result<()> {
    to.prepare_cached("INSERT OR REPLACE INTO place VALUES (1, ?1, ?2)")?
        .execute(params![run, number.cast_signed()])?;
    Ok(())
}

fn add(to: &Transaction<'_>, run: Run, fact: &RecordedFact) -> rusqlite::Result<()> {
    let time_us = run.time_us.saturating_add_unsigned(fact.at_us);
    let call = fact.data.get("call").and_then(|call| call["number"].as_i64());
    let data = Value::Object(fact.data.clone()).to_string();
    let sql = "INSERT OR IGNORE INTO fact VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let added = to.prepare_cached(sql)?.execute(params![
        run.row,
        fact.number.cast_signed(),
        time_us,
        fact.fact,
        call,
        data
    ])?;
    match call {
        Some(call) if added == 1 => change(to, run.row, call, time_us, fact),
        _ => Ok(()),
    }
}

/// Brings the row of a call up to date with a fact of it.
fn change(
    to: &Transaction<'_>,
    run: i64,
    call: i64,
    time_us: i64,
    fact: &RecordedFact,
) -> rusqlite::Result<()> {
    let text = |of: &Value| of.as_str().map(str::to_owned);
    let json = |of: &Value| (!of.is_null()).then(|| of.to_string());
    let at = |key: &str| fact.data.get(key).unwrap_or(&Value::Null);
    let of = at("call");
    let sql = "INSERT OR IGNORE INTO call (run, call, call_id, toolbox_id, tool, effect, started_us) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let name = |key: &str| of[key].as_str().unwrap_or_default();
    to.prepare_cached(sql)?.execute(params![
        run,
        call,
        name("call_id"),
        name("toolbox_id"),
        name("tool"),
        name("effect"),
        time_us
    ])?;
    match fact.fact.as_str() {
        "received" => {
            let request = at("asked");
            let sql =
                "UPDATE call SET source = ?3, session_id = ?4, request = ?5 WHERE run = ?1 AND call = ?2";
            to.prepare_cached(sql)?.execute(params![
                run,
                call,
                text(&request["source"]),
                text(&request["session_id"]),
                json(&request["request"])
            ])?;
        }
        "policy" => {
            let sql = "UPDATE call SET principal = ?3, decision = ?4 WHERE run = ?1 AND call = ?2";
            to.prepare_cached(sql)?.execute(params![
                run,
                call,
                text(at("principal")),
                text(at("decision"))
            ])?;
        }
        "refused" => {
            let sql = "UPDATE call SET ok = 0, outcome = 'refused', error = ?3 WHERE run = ?1 AND call = ?2";
            to.prepare_cached(sql)?
                .execute(params![run, call, text(at("error"))])?;
        }
        "answered" => {
            let answer = at("answer");
            let sql = "UPDATE call SET ended_us = ?3, ok = ?4, outcome = coalesce(?5, outcome), result = ?6, \
                       error = coalesce(?7, error) WHERE run = ?1 AND call = ?2";
            to.prepare_cached(sql)?.execute(params![
                run,
                call,
                time_us,
                answer["ok"].as_bool(),
                text(&answer["outcome"]),
                json(&answer["result"]),
                text(&answer["error"])
            ])?;
        }
        _ => {}
    }
    Ok(())
}

fn trim(connection: &mut Connection, now_us: i64, bounds: Bounds) -> rusqlite::Result<bool> {
    let transaction = connection.transaction()?;
    let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    let is_large = pages * pragma("page_size")? > bounds.keep_bytes;
    // A tenth where there are few: they may be large, and the newest have to stay.
    let few = if is_large {
        let count: i64 = transaction.query_row("SELECT count(*) FROM fact", [], |row| row.get(0))?;
        TRIM.min(count / 10 + 1)
    } else {
        TRIM
    };
    let too_old = now_us.saturating_sub(bounds.keep_us);
    // The end of the oldest facts, in time: what began before it goes.
    let sql = "SELECT max(time_us) FROM (SELECT time_us FROM fact WHERE ?2 OR time_us < ?1 ORDER BY time_us LIMIT ?3)";
    let end: Option<i64> = transaction.query_row(sql, params![too_old, is_large, few], |row| row.get(0))?;
    let Some(end) = end else {
        return Ok(false);
    };
    transaction.execute("DELETE FROM fact WHERE time_us <= ?1", [end])?;
    transaction.execute(
        "DELETE FROM call WHERE coalesce(ended_us, started_us) <= ?1",
        [end],
    )?;
    let unused = "run NOT IN (SELECT run FROM fact) AND run NOT IN (SELECT run FROM call) AND run NOT IN (SELECT run FROM place)";
    transaction.execute(&format!("DELETE FROM lost WHERE {unused}"), [])?;
    transaction.execute(
        &format!("DELETE FROM run WHERE {unused} AND run NOT IN (SELECT run FROM lost)"),
        [],
    )?;
    transaction.commit()?;
    connection.execute_batch("PRAGMA incremental_vacuum")?;
    Ok(true)
}
