//! Log lines: OVOS's format, one line for each event whatever its text, a file that stays within its bounds, and a
//! level that can be changed while the process runs.

use std::fs;
use std::io::Write;
use std::path::Path;

use config::{LogConfig, LogLevel};
use logs::{LogOptions, Logs, RotatingFile, prepare};
use serde_json::{Value, json};

fn config(dir: &Path, level: LogLevel) -> LogConfig {
    LogConfig {
        level,
        dir: Some(dir.to_owned()),
        max_bytes: 0,
        backup_count: 0,
    }
}

/// The lines of the log file after `speak`. (The same lines go to the test's stderr.)
fn logged(level: LogLevel, json: bool, speak: impl FnOnce(&Logs)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (subscriber, logs) = prepare(&config(dir.path(), level), LogOptions { json, file: true });
    let file = dir.path().join("ovos_tools.log");
    tracing::subscriber::with_default(subscriber, || speak(&logs));
    // Dropping it waits for the writer.
    drop(logs);
    fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The parts of a line behind its time: name, place (without the line number), level, message.
fn parts(line: &str) -> (&str, String, &str, &str) {
    let (time, rest) = line.split_at("2026-01-31 12:34:56.789".len());
    let shape: String = time
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    assert_eq!(shape, "0000-00-00 00:00:00.000", "{line}");
    let mut parts = rest.strip_prefix(" - ").unwrap().splitn(4, " - ");
    let name = parts.next().unwrap();
    let (place, number) = parts.next().unwrap().rsplit_once(':').unwrap();
    assert!(number.parse::<u32>().unwrap() > 0, "{line}");
    (
        name,
        place.to_owned(),
        parts.next().unwrap(),
        parts.next().unwrap(),
    )
}

#[test]
fn lines_look_like_those_of_every_ovos_service() {
    let lines = logged(LogLevel::Trace, false, |_| {
        tracing::info!("ready");
        tracing::warn!(tool = "add", n = 3, text = "two words", "odd");
        tracing::error!("bad - worse");
        tracing::trace!("fine");
        let outer = tracing::info_span!("call", call_id = "c1").entered();
        let inner = tracing::info_span!("action", name = "grip").entered();
        tracing::debug!("started");
        drop((inner, outer));
        tracing::info!(name = "x\ny", "first\nsecond\x1b[31m\r\t\u{85}");
    });
    let expected = [
        ("service.logs:-", "INFO", "ready"),
        (
            "service.logs:-",
            "WARNING",
            r#"odd tool="add" n=3 text="two words""#,
        ),
        ("service.logs:-", "ERROR", "bad - worse"),
        ("service.logs:-", "DEBUG", "fine"),
        (
            "service.logs:action",
            "DEBUG",
            r#"started name="grip" call_id="c1""#,
        ),
        (
            "service.logs:-",
            "INFO",
            "first\\nsecond\\x1b[31m\\r\t\\u{85} name=\"x\\ny\"",
        ),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (place, level, message)) in lines.iter().zip(expected) {
        assert_eq!(parts(line), ("ovos_tools", place.to_owned(), level, message));
    }
}

#[test]
fn json_is_one_object_a_line() {
    let lines = logged(LogLevel::Info, true, |_| {
        let _span = tracing::info_span!("call", call_id = "c1").entered();
        tracing::info!(tool = "add", n = 3, "two\nlines");
        tracing::debug!("not this one");
    });
    let [line] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    let line: Value = serde_json::from_str(line).unwrap();
    for (pointer, expected) in [
        ("/level", json!("INFO")),
        ("/message", json!("two\nlines")),
        ("/tool", json!("add")),
        ("/n", json!(3)),
        ("/spans/0/call_id", json!("c1")),
    ] {
        assert_eq!(line.pointer(pointer), Some(&expected), "{pointer} in {line}");
    }
    assert!(line["timestamp"].is_string());
}

#[test]
fn the_level_can_change_at_any_time() {
    let all = |logs: &Logs, level| {
        logs.set_level(level).unwrap();
        tracing::error!("{level:?}");
        tracing::warn!("{level:?}");
        tracing::info!("{level:?}");
        tracing::debug!("{level:?}");
        tracing::info!(target: "tungstenite::protocol", "a noisy crate");
    };
    for (level, lines) in [
        (LogLevel::Error, vec!["ERROR"]),
        (LogLevel::Warning, vec!["ERROR", "WARNING"]),
        (LogLevel::Info, vec!["ERROR", "WARNING", "INFO"]),
        (LogLevel::Trace, vec!["ERROR", "WARNING", "INFO", "DEBUG"]),
    ] {
        let written = logged(LogLevel::Info, false, |logs| all(logs, level));
        let levels: Vec<&str> = written.iter().map(|line| parts(line).2).collect();
        assert_eq!(levels, lines);
    }
}

#[test]
fn a_log_folder_that_cannot_be_written_is_reported_and_not_used() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let options = LogOptions {
        json: false,
        file: true,
    };
    let (_, logs) = prepare(&config(&dir.path().join("file/logs"), LogLevel::Info), options);
    let trouble = logs.trouble().unwrap();
    assert!(
        trouble.contains("file/logs/ovos_tools.log") && trouble.contains("set logging.logs.path"),
        "{trouble}"
    );

    // Neither asks for a file, so no trouble is reported.
    for (dir, file) in [(Some(dir.path().join("file/logs")), false), (None, true)] {
        let config = LogConfig {
            dir,
            ..config(Path::new("/"), LogLevel::Info)
        };
        let (_, logs) = prepare(&config, LogOptions { json: false, file });
        assert_eq!(logs.trouble(), None);
    }
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "no log file is written in any of these cases");
}

#[test]
fn a_log_file_is_put_aside_when_it_has_grown() {
    // Columns: the limit, the number of kept files, the number of lines of four bytes, and the content of the files
    // afterwards, the newest file first.
    let rows: &[(u64, u32, usize, &[&str])] = &[
        (8, 2, 2, &["01"]),
        (8, 2, 3, &["2", "01"]),
        (8, 2, 7, &["6", "45", "23"]),
        (8, 2, 9, &["8", "67", "45"]),
        (1, 1, 3, &["2", "1"]),
        (0, 2, 5, &["01234"]),
        (8, 0, 5, &["01234"]),
    ];
    for (max_bytes, backups, lines, expected) in rows {
        // All lines with one open file, and each line with a file that was opened again, as by another process.
        for reopen in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let open = || RotatingFile::open(&dir.path().join("x.log"), *max_bytes, *backups).unwrap();
            let mut file = open();
            for number in 0..*lines {
                if reopen {
                    file = open();
                }
                file.write_all(format!("{number}..\n").as_bytes()).unwrap();
            }
            let names = (0..).map(|n| {
                if n == 0 {
                    "x.log".to_owned()
                } else {
                    format!("x.log.{n}")
                }
            });
            let texts = names.map_while(|name| fs::read_to_string(dir.path().join(name)).ok());
            let found: Vec<String> = texts.map(|text| text.replace("..\n", "")).collect();
            assert_eq!(found, *expected, "{max_bytes} {backups} {lines} {reopen}");
        }
    }
}
