//! Reads the database.

use std::path::Path;

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use serde::Serialize;
use serde_json::{Value, json};

use super::store::{FORMAT, StoreError};

/// How many calls under way an answer has at most.
const UNDER_WAY: usize = 200;

/// Which calls are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Those that began at this time or later, in microseconds since 1970.
    pub(crate) since_us: Option<i64>,
    pub(crate) tool: Option<String>,
    pub(crate) toolbox: Option<String>,
    pub(crate) session: Option<String>,
    /// Only those that failed or were refused.
    pub(crate) failed: bool,
    /// At most this many, the newest.
    pub(crate) limit: Option<u32>,
}

/// A call, as its row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CallRow {
    pub(crate) run: i64,
    pub(crate) call: i64,
    pub(crate) call_id: String,
    pub(crate) toolbox_id: String,
    pub(crate) tool: String,
    pub(crate) effect: String,
    pub(crate) source: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) principal: Option<String>,
    pub(crate) decision: Option<String>,
    pub(crate) request: Value,
    pub(crate) started_us: i64,
    pub(crate) ended_us: Option<i64>,
    pub(crate) ok: Option<bool>,
    pub(crate) outcome: Option<String>,
    pub(crate) result: Value,
    pub(crate) error: Option<String>,
}

/// A fact of a call.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FactRow {
    pub(crate) number: i64,
    pub(crate) time_us: i64,
    pub(crate) fact: String,
    pub(crate) data: Value,
}

/// The database, open for reading.
pub(crate) struct History {
    connection: Connection,
}

impl History {
    /// Opens the database. Another program may write it meanwhile.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::None(path.to_owned()));
        }
        let wrong = StoreError::database(path);
        // Not read-only: the first reader after a kill has to be able to recover the log.
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(&wrong)?;
        connection
            .busy_timeout(std::time::Duration::from_secs(5))
            .map_err(&wrong)?;
        let found: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(&wrong)?;
        match found {
            FORMAT => Ok(Self { connection }),
            0 => Err(StoreError::None(path.to_owned())),
            found => Err(StoreError::Format {
                path: path.to_owned(),
                found,
            }),
        }
    }

    /// The calls that pass the filter, the newest first.
    pub(crate) fn calls(&self, filter: &Filter) -> rusqlite::Result<Vec<CallRow>> {
        let mut sql = format!("SELECT {COLUMNS} FROM call WHERE 1");
        let mut values: Vec<Sql> = Vec::new();
        let texts = [
            ("tool", &filter.tool),
            ("toolbox_id", &filter.toolbox),
            ("session_id", &filter.session),
        ];
        for (column, text) in texts {
            if let Some(text) = text {
                sql.push_str(&format!(" AND {column} = ?"));
                values.push(Sql::Text(text.clone()));
            }
        }
        if let Some(since) = filter.since_us {
            sql.push_str(" AND started_us >= ?");
            values.push(Sql::Integer(since));
        }
        if filter.failed {
            sql.push_str(" AND ok = 0");
        }
        sql.push_str(" ORDER BY started_us DESC, run DESC, call DESC LIMIT ?");
        values.push(Sql::Integer(filter.limit.map_or(-1, i64::from)));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), row)?;
        rows.collect()
    }

    /// The calls of the last run of the service that have no answer yet, with their facts.
    pub(crate) fn under_way(&self) -> rusqlite::Result<Vec<Value>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM call INDEXED BY call_open WHERE ended_us IS NULL AND run = (SELECT max(run) FROM run) ORDER BY call LIMIT {UNDER_WAY}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let calls: Vec<CallRow> = statement.query_map([], row)?.collect::<Result<_, _>>()?;
        let whole = calls
            .iter()
            .map(|call| Ok(call.with_facts(&self.facts(call.run, call.call)?)));
        whole.collect()
    }

    /// The newest call of this id, or the only one whose id begins so.
    pub(crate) fn named(&self, call_id: &str) -> rusqlite::Result<Vec<CallRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM call WHERE call_id = ?1 ORDER BY started_us DESC, run DESC, call DESC LIMIT 1"
        );
        let exact: Vec<CallRow> = self
            .connection
            .prepare_cached(&sql)?
            .query_map([call_id], row)?
            .collect::<Result<_, _>>()?;
        if !exact.is_empty() {
            return Ok(exact);
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM call WHERE substr(call_id, 1, length(?1)) = ?1 ORDER BY started_us DESC LIMIT 5"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_map([call_id], row)?.collect()
    }

    /// The time of the newest fact, in microseconds since 1970.
    pub(crate) fn last_us(&self) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT max(time_us) FROM fact";
        self.connection.query_row(sql, [], |row| row.get(0))
    }

    /// A call by its place.
    pub(crate) fn call(&self, run: i64, call: i64) -> rusqlite::Result<Option<CallRow>> {
        let sql = format!("SELECT {COLUMNS} FROM call WHERE run = ?1 AND call = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_map([run, call], row)?.next().transpose()
    }

    /// The facts of a call, in order.
    pub(crate) fn facts(&self, run: i64, call: i64) -> rusqlite::Result<Vec<FactRow>> {
        // By itself SQLite walks through all facts of the run, which are in this order: a thousand times slower.
        let sql = "SELECT number, time_us, fact, data FROM fact INDEXED BY fact_call WHERE run = ?1 AND call = ?2 ORDER BY number";
        let mut statement = self.connection.prepare_cached(sql)?;
        let facts = statement.query_map([run, call], |row| {
            Ok(FactRow {
                number: row.get(0)?,
                time_us: row.get(1)?,
                fact: row.get(2)?,
                data: parsed(row, 3)?,
            })
        })?;
        facts.collect()
    }
}

impl CallRow {
    /// The row with its facts, as `history export` and the page have it.
    pub(crate) fn with_facts(&self, facts: &[FactRow]) -> Value {
        let mut whole = json!(self);
        whole["facts"] = json!(facts);
        whole
    }
}

const COLUMNS: &str = "run, call, call_id, toolbox_id, tool, effect, source, session_id, principal, decision, request, started_us, \
                       ended_us, ok, outcome, result, error";

fn row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        run: row.get(0)?,
        call: row.get(1)?,
        call_id: row.get(2)?,
        toolbox_id: row.get(3)?,
        tool: row.get(4)?,
        effect: row.get(5)?,
        source: row.get(6)?,
        session_id: row.get(7)?,
        principal: row.get(8)?,
        decision: row.get(9)?,
        request: parsed(row, 10)?,
        started_us: row.get(11)?,
        ended_us: row.get(12)?,
        ok: row.get(13)?,
        outcome: row.get(14)?,
        result: parsed(row, 15)?,
        error: row.get(16)?,
    })
}

/// A column of JSON; null where it is empty.
fn parsed(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    match row.get_ref(column)? {
        ValueRef::Text(text) => Ok(serde_json::from_slice(text).unwrap_or_default()),
        _ => Ok(Value::Null),
    }
}
