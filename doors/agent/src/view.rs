//! The view of a run for a person: lines of text, and on a terminal colours and an animated line.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use client::payload::ProgressKind;
use client::text::{Tone, plain};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::news::News;
use crate::prompt::cut;
use crate::record::Status;

/// The longest arguments and results that are shown, in bytes.
const SHOWN: usize = 200;

/// The frames of the animated line.
const FRAMES: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// How many texts may wait to be written.
const WAITING: usize = 1024;

/// How long the end of a run waits for these texts.
const FLUSH: Duration = Duration::from_secs(2);

/// The work of the thread that writes.
enum Out {
    Text(String),
    Flush(oneshot::Sender<()>),
}

/// The view of a run, at stdout, or at stderr where stdout is for a program. A thread of its own writes, because a slow reader of the output may block it.
pub(crate) struct View {
    out: SyncSender<Out>,
    colour: bool,
    /// Whether there is a terminal for the animated line.
    live_line: bool,
    /// Whether a person can press a key.
    keys: bool,
    live: Mutex<Live>,
}

/// The animated line.
struct Live {
    began: Instant,
    doing: String,
    left: String,
    frame: usize,
    shown: bool,
}

impl View {
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn new(keys: bool, to_stdout: bool) -> io::Result<Self> {
        let (sender, lines) = mpsc::sync_channel::<Out>(WAITING);
        let write = move || {
            for out in lines {
                match out {
                    Out::Text(text) if to_stdout => write(&text, io::stdout().lock()),
                    Out::Text(text) => write(&text, io::stderr().lock()),
                    // The caller may have stopped waiting.
                    Out::Flush(done) => _ = done.send(()),
                }
            }
        };
        thread::Builder::new().name("view".to_owned()).spawn(write)?;
        Ok(Self {
            out: sender,
            live_line: to_stdout && io::stdout().is_terminal(),
            colour: to_stdout
                && io::stdout().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty()),
            keys,
            live: Mutex::new(Live {
                began: Instant::now(),
                doing: String::new(),
                left: String::new(),
                frame: 0,
                shown: false,
            }),
        })
    }

    /// Waits until everything is written, for at most `FLUSH`.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.out.try_send(Out::Flush(done)).is_ok() {
            _ = timeout(FLUSH, written).await;
        }
    }

    fn write(&self, text: String) {
        // If stdout is not read, text that does not fit into the queue is dropped: a run and its stops do not wait for a terminal.
        _ = self.out.try_send(Out::Text(text));
    }

    /// Whether there is an animated line.
    pub(crate) fn is_live(&self) -> bool {
        self.live_line
    }

    fn tone(&self, tone: Tone, text: &str) -> String {
        match self.colour {
            true => tone.coloured(text),
            false => text.to_owned(),
        }
    }

    /// Shows an item of news.
    pub(crate) fn show(&self, news: &News<'_>) {
        match news {
            News::Began { goal, tools, dry_run } => {
                let mut line = format!(
                    "{} {}",
                    self.tone(Tone::Strong, "goal"),
                    self.tone(Tone::Strong, &plain(goal))
                );
                line.push_str(&self.tone(Tone::Dim, &format!("  ({tools} tools)")));
                if *dry_run {
                    line.push_str(&self.tone(Tone::Warning, "  dry run: nothing moves"));
                }
                if self.keys {
                    line.push_str(&self.tone(Tone::Dim, "  space or s stops"));
                }
                self.line(&line);
            }
            News::Asking { step, left } => {
                self.set(&format!("step {step}: the model thinks"), Some(&budgets(left)));
                if !self.is_live() {
                    self.line(&format!("step {step}  left: {}", budgets(left)));
                } else {
                    self.line(&self.tone(Tone::Dim, &format!("step {step}")));
                }
            }
            News::Thought(text) => {
                self.line(&format!("  {}", self.tone(Tone::Dim, &plain(&cut(text, 2000)))));
            }
            News::Call {
                name,
                arguments,
                waves,
                ..
            } => {
                let arguments = match arguments {
                    Value::Object(object) if object.is_empty() => String::new(),
                    other => plain(&cut(&other.to_string(), SHOWN)).into_owned(),
                };
                self.line(&format!("  {} {arguments}", self.tone(Tone::Strong, name)));
                if waves.len() > 1 || waves.first().is_some_and(|wave| wave.len() > 1) {
                    let waves: Vec<String> = waves.iter().map(|wave| wave.join(" + ")).collect();
                    let waves = waves.join(" > ");
                    self.line(&format!(
                        "    {}",
                        self.tone(Tone::Dim, &plain(&cut(&waves, SHOWN)))
                    ));
                }
                self.set(name, None);
            }
            News::Progress(progress) => {
                let what = match (&progress.kind, &progress.message) {
                    (ProgressKind::Queued, _) => "waits".to_owned(),
                    (_, Some(message)) => plain(message).into_owned(),
                    (_, None) => progress.action.clone().unwrap_or_default(),
                };
                let wave = match progress.waves {
                    0 | 1 => String::new(),
                    waves => format!(" wave {}/{waves}", progress.wave),
                };
                let part = progress
                    .fraction
                    .map_or_else(String::new, |part| format!(" {:.0} %", part * 100.0));
                let doing = format!("{}{wave} {}{part}", progress.name, cut(&what, 60));
                self.set(&doing, None);
            }
            News::CallEnded {
                name,
                status,
                text,
                ms,
                ..
            } => {
                let (mark, tone) = match status {
                    Status::Completed => ("done", Tone::Good),
                    Status::Planned => ("planned", Tone::Warning),
                    Status::NotMade => ("not made", Tone::Dim),
                    Status::Refused => ("refused", Tone::Bad),
                    Status::Failed => ("failed", Tone::Bad),
                    Status::WaitsForConfirmation => ("waiting for approval", Tone::Warning),
                };
                let time = if *ms > 0 {
                    format!(" {}", seconds(*ms))
                } else {
                    String::new()
                };
                self.line(&format!(
                    "  {} {name}{} {}",
                    self.tone(tone, mark),
                    self.tone(Tone::Dim, &time),
                    self.tone(Tone::Dim, &plain(&cut(text, SHOWN)))
                ));
            }
            News::Ask { text } => {
                let text = plain(text);
                self.line(&format!(
                    "  {} {text}\n  y approves it (from 0.75 s on, so that you can read it), n denies it",
                    self.tone(Tone::Warning, "confirm?")
                ));
            }
            News::Confirm { text, id } => {
                let text = plain(text);
                let advice = self.tone(Tone::Warning, &format!("ovos-tools approve {id}"));
                self.line(&format!("  run {advice} to let it run: {text}"));
            }
            News::Ending { end } => {
                let why = end.text();
                self.line(&format!(
                    "{}: {}",
                    self.tone(Tone::Strong, "the run ends"),
                    plain(&why)
                ));
            }
            News::Ended { end, left } => {
                let tone = match end.exit_code() {
                    0 => Tone::Good,
                    _ => Tone::Bad,
                };
                self.line(&format!(
                    "{} {}",
                    self.tone(tone, end.as_str()),
                    plain(&end.text())
                ));
                self.line(&self.tone(Tone::Dim, &format!("left: {}", budgets(left))));
                self.set("", None);
            }
        }
    }

    fn set(&self, doing: &str, left: Option<&str>) {
        let mut live = self.live.lock();
        doing.clone_into(&mut live.doing);
        if let Some(left) = left {
            left.clone_into(&mut live.left);
        }
    }

    /// Draws the next frame of the animated line. Call it a few times a second.
    pub(crate) fn tick(&self) {
        let mut live = self.live.lock();
        if live.doing.is_empty() {
            return;
        }
        live.frame = (live.frame + 1) % FRAMES.len();
        let elapsed = live.began.elapsed().as_secs();
        let text = format!(
            "{} {} · {elapsed} s · {}",
            FRAMES[live.frame], live.doing, live.left
        );
        // If the line were wrapped by the terminal, it could not be erased.
        let width = width();
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        self.write(format!("\r\u{1b}[K{}", self.tone(Tone::Dim, &text)));
        live.shown = true;
    }

    /// Writes a line about the run.
    pub(crate) fn print_note(&self, text: &str) {
        self.line(text);
    }

    fn line(&self, text: &str) {
        let mut live = self.live.lock();
        let clear = if live.shown { "\r\u{1b}[K" } else { "" };
        live.shown = false;
        self.write(format!("{clear}{text}\n"));
    }
}

fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    // Some terminals do not report their width.
    if columns == 0 { 80 } else { columns.max(20) }
}

fn write(text: &str, mut out: impl io::Write) {
    // Without it, the record and the exit code show the result.
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// Describes the rest of the budgets in a line.
fn budgets(left: &Value) -> String {
    let number = |key: &str| left[key].as_f64().unwrap_or_default();
    format!(
        "{} steps, {} calls, {:.0} s, {} tokens, {:.0}°, {:.1} m",
        left["steps"],
        left["calls"],
        number("time_ms") / 1000.0,
        left["tokens"],
        number("rotation_deg"),
        number("forward_m"),
    )
}

/// Writes a line to stdout. Without stdout, the exit code shows how a run ended.
pub(crate) fn print_line(text: &str) {
    _ = writeln!(io::stdout(), "{text}");
}
