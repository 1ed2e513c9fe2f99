//! What a step of the agent costs without its model: the time from an answer of the model to its next question.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::measure::{Rounds, latency, median, micros, quantile};
use super::peers::{Bus, BusKind, Question, built};
use super::process::{Process, Sandbox};
use super::table::Table;

/// Questions of a run: the agent's own budget of steps.
const QUESTIONS: u64 = 30;

/// Tools that are added to those of testbed: each question carries all of them.
const GROWN: u32 = 60;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    let Some(program) = built("ovos-tools-agent") else {
        table.heading(
            "the agent: SKIPPED, it is not built (cargo build --release --package ovos-tools-agent)",
        );
        return Ok(());
    };
    eprintln!("bench: the agent");
    let bus = Bus::start(BusKind::Embedded);
    let _service = bus.service(&json!({ "grown": GROWN }));
    let question = Question::invoke("add", &json!({"a": 20, "b": 22}));
    let (mut steps, mut first, mut bytes) = (Vec::new(), Vec::new(), 0);
    let figures = Rounds::play(&mut [
        &mut || {
            let run = run(&program, &bus)?;
            steps.extend(&run.steps);
            first.push(run.first);
            bytes = run.bytes;
            Ok(median(run.steps))
        },
        &mut || latency(&mut bus.join(), &question),
    ])?;
    table.heading(format!(
        "agent overhead per step, one call of `add`, model time excluded ({} steps; last prompt {:.0} kB)",
        steps.len(),
        bytes as f64 / 1e3
    ));
    let step = figures.figure(0) / 1e3;
    table.goal(
        "  from the model's answer to its next question (p50)",
        format!("{step:.2} ms"),
        "< 5 ms",
        step < 5.0,
    );
    table.note(
        "    p99 / worst",
        format!(
            "{:.2} / {:.2} ms",
            quantile(steps.clone(), 0.99) / 1e3,
            quantile(steps, 1.0) / 1e3
        ),
    );
    table.note("    against a call of `add` over the bus", micros(&figures, 0, 1));
    table.note(
        "  start to the first question",
        format!("{:.0} ms", median(first)),
    );
    Ok(())
}

/// What one run showed.
struct Run {
    /// Microseconds of each step but the first and the last.
    steps: Vec<f64>,
    /// Milliseconds from before the process exists until the first question was read.
    first: f64,
    /// Size of the last question.
    bytes: usize,
}

fn run(program: &Path, bus: &Bus) -> io::Result<Run> {
    let model = TcpListener::bind(("127.0.0.1", 0))?;
    let url = format!("http://{}/v1", model.local_addr()?);
    let (tells, times) = channel();
    let began_at = Instant::now();
    // It ends with the agent's connection.
    std::thread::spawn(move || {
        if let Err(error) = play(&model, began_at, &tells) {
            // Heard unless the run was told already.
            let _ = tells.send(Err(error));
        }
    });
    let sandbox = Sandbox::with_bus(bus.port);
    let mut command = sandbox.command(program);
    command.args(["--url", &url, "--goal", "add numbers", "--json"]);
    let mut agent = Process::start("agent", &sandbox, command);
    let run = agent.until("its last question", |_| times.try_recv().ok())?;
    let status = agent.end_within(Duration::from_secs(30));
    if !status.success() {
        return Err(io::Error::other(agent.log()));
    }
    Ok(run)
}

/// Plays the model of one run: calls, and at last `finish`. Tells what it saw before that last answer.
fn play(model: &TcpListener, begun: Instant, tells: &Sender<io::Result<Run>>) -> io::Result<()> {
    let (mut writer, _) = model.accept()?;
    writer.set_nodelay(true)?;
    let mut reader = BufReader::new(writer.try_clone()?);
    let mut run = Run {
        steps: Vec::new(),
        first: 0.0,
        bytes: 0,
    };
    let mut answer_at = begun;
    for asked in 0..QUESTIONS {
        let body = question(&mut reader)?;
        let took = answer_at.elapsed().as_secs_f64();
        if asked == 0 {
            run.first = took * 1e3;
        } else {
            run.steps.push(took * 1e6);
            let sum = format!(r#"\"result\":{}"#, asked + 22);
            if !String::from_utf8_lossy(&body).contains(&sum) {
                let text = String::from_utf8_lossy(&body).into_owned();
                return Err(io::Error::other(format!("no {sum} in the question: {text}")));
            }
        }
        if asked + 1 < QUESTIONS {
            let call = answer("add", &json!({"a": asked + 1, "b": 22}));
            answer_at = Instant::now();
            writer.write_all(&call)?;
        } else {
            run.bytes = body.len();
        }
    }
    let last = answer("finish", &json!({"reached": true, "summary": "It is done."}));
    tells.send(Ok(run)).map_err(io::Error::other)?;
    writer.write_all(&last)
}

/// The body of the next request.
fn question(reader: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

/// A response of chat completions with one call.
fn answer(tool: &str, arguments: &Value) -> Vec<u8> {
    let call = json!({"id": "1", "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let body = json!({
        "id": "x", "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100},
    })
    .to_string();
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
