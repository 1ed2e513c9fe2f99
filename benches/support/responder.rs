//! Peers that only answer: the least that a service does.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::peers::{Question, ROLE};
use super::wire::{Wire, is};

/// A question to a responder, which answers with the same bytes as our service does for `add`.
pub(crate) static ECHO: LazyLock<Question> = LazyLock::new(|| {
    Question::new(
        "bench.tools.echo",
        &json!({"name": "add", "args": {"a": 20, "b": 22}}),
    )
});

/// The answer to [`ECHO`].
static ANSWER: LazyLock<String> = LazyLock::new(|| {
    let context = json!({"source": "tools", "destination": "bench", "session": {"session_id": "bench"}});
    format!(
        r#"{{"type":"{}","data":{{"name":"add","result":{{"result":42}}}},"context":{context}}}"#,
        ECHO.answer
    )
});

/// A question to the responder, which answers with this many bytes.
pub(crate) fn blob(bytes: usize) -> Question {
    Question::new("bench.blob", &json!({ "bytes": bytes }))
}

/// Answers by itself.
pub(crate) fn respond(port: u16) -> io::Result<()> {
    let mut wire = Wire::join(port)?;
    println!("ready");
    let mut large = Vec::new();
    loop {
        let (mut echoes, mut blobs) = (0, 0);
        while let Some(text) = wire.take()? {
            if is(text, "bench.tools.echo") {
                echoes += 1;
            } else if is(text, "bench.blob") {
                let request: Value = serde_json::from_slice(text)?;
                let bytes = request["data"]["bytes"].as_u64().unwrap_or(0) as usize;
                if large.len() != bytes {
                    let head = br#"{"type":"bench.blob.response","data":{"text":""#;
                    let tail = br#""},"context":{}}"#;
                    large = head.to_vec();
                    large.resize(bytes.saturating_sub(tail.len()).max(head.len()), b'x');
                    large.extend_from_slice(tail);
                }
                blobs += 1;
            }
        }
        // One write per answer, as in bus clients.
        for _ in 0..echoes {
            wire.send(ANSWER.as_bytes())?;
        }
        for _ in 0..blobs {
            wire.send(&large)?;
        }
        wire.read()?;
    }
}

/// Passes each [`ECHO`] to a child process, and the child's answers to the bus. Nothing is parsed, checked or timed.
pub(crate) fn relay(port: u16) -> io::Result<()> {
    let mut wire = Wire::join(port)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([ROLE, "behind_relay", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take());
    let (Some(mut asking), Some(mut answering)) = pipes else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let mut writer = wire.writer()?;
    std::thread::spawn(move || {
        lines(&mut answering, |answer| writer.send(answer), || Ok(()))
            .expect("the child and the bus are there");
    });
    println!("ready");
    let mut requests = Vec::new();
    loop {
        while let Some(text) = wire.take()? {
            if is(text, "bench.tools.echo") {
                requests.extend_from_slice(text);
                requests.push(b'\n');
            }
        }
        asking.write_all(&requests)?;
        requests.clear();
        wire.read()?;
    }
}

/// Answers each line of standard input with a line on standard output; ends with its input.
pub(crate) fn behind_relay() -> io::Result<()> {
    let answers = std::cell::RefCell::new(Vec::new());
    let answer = |_: &[u8]| {
        answers.borrow_mut().extend_from_slice(ANSWER.as_bytes());
        answers.borrow_mut().push(b'\n');
        Ok(())
    };
    lines(&mut io::stdin().lock(), answer, || {
        io::stdout().write_all(&answers.borrow())?;
        answers.borrow_mut().clear();
        io::stdout().flush()
    })
}

/// Passes each line to `line`, and calls `read_all` after the lines of one read.
fn lines(
    input: &mut impl io::Read,
    mut line: impl FnMut(&[u8]) -> io::Result<()>,
    mut read_all: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let (mut room, mut rest) = (vec![0; 256 << 10], Vec::new());
    loop {
        let read = input.read(&mut room)?;
        if read == 0 {
            return Ok(());
        }
        rest.extend_from_slice(&room[..read]);
        let whole = rest
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        for one in rest[..whole].split_inclusive(|byte| *byte == b'\n') {
            line(&one[..one.len() - 1])?;
        }
        rest.drain(..whole);
        read_all()?;
    }
}
