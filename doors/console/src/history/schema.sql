CREATE TABLE run (
    run INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    version TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    first INTEGER NOT NULL
);
CREATE TABLE fact (
    run INTEGER NOT NULL REFERENCES run,
    number INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    fact TEXT NOT NULL,
    call INTEGER,
    data TEXT NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX fact_call ON fact (run, call) WHERE call IS NOT NULL;
CREATE INDEX fact_time ON fact (time_us);
CREATE TABLE call (
    run INTEGER NOT NULL REFERENCES run,
    call INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    toolbox_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    effect TEXT NOT NULL,
    source TEXT,
    session_id TEXT,
    principal TEXT,
    decision TEXT,
    request TEXT,
    started_us INTEGER NOT NULL,
    ended_us INTEGER,
    ok INTEGER,
    outcome TEXT,
    result TEXT,
    error TEXT,
    PRIMARY KEY (run, call)
) WITHOUT ROWID;
CREATE INDEX call_time ON call (started_us);
CREATE INDEX call_id ON call (call_id);
CREATE INDEX call_tool ON call (tool, started_us);
CREATE INDEX call_toolbox ON call (toolbox_id, started_us);
CREATE INDEX call_session ON call (session_id, started_us);
CREATE INDEX call_failed ON call (started_us) WHERE ok = 0;
CREATE INDEX call_open ON call (run) WHERE ended_us IS NULL;
CREATE TABLE lost (
    run INTEGER NOT NULL REFERENCES run,
    "from" INTEGER NOT NULL,
    "to" INTEGER NOT NULL,
    PRIMARY KEY (run, "from")
) WITHOUT ROWID;
CREATE TABLE place (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    run INTEGER NOT NULL REFERENCES run,
    number INTEGER NOT NULL
);
CREATE VIEW history AS
SELECT strftime('%Y-%m-%d %H:%M:%f', started_us / 1e6, 'unixepoch') AS started,
    (ended_us - started_us) / 1000 AS duration_ms,
    toolbox_id, tool, effect, ok, outcome, error, principal, source, session_id, call_id, request, result, run, call
FROM call ORDER BY started_us DESC;
PRAGMA user_version = 1;
