//! What the console costs: a call with a history and a page that follows, a question to a long history, and its memory.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::contest::{Contest, add};
use super::measure::{MANY, median, micros, per_second};
use super::memory;
use super::peers::{Bus, BusKind, Peer, built};
use super::process::{DEADLINE, Process, free_port};
use super::table::Table;

/// How many calls the long history has.
const CALLS: u64 = 100_000;

/// How often each question is asked.
const ASKED: usize = 20;

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    let Some(program) = built("ovos-tools-console") else {
        table.note("console", "not built");
        return Ok(());
    };
    eprintln!("bench: a history and a page that follows");
    table.heading("console: invoke `add` with a history and a page that follows, against a service without");
    let [with, without] = [(); 2].map(|()| Bus::start(BusKind::Embedded));
    let port = free_port();
    let _alone = without.service(&json!({}));
    let service = with.service_with(&sections(port));
    let console = Process::start(
        "console",
        &service.sandbox,
        service.sandbox.command(program.clone()),
    );
    let page = Page::open(&service, port)?;
    let follower = page.follow()?;
    let mut contest = Contest {
        ours: (with.join(), add()),
        theirs: (without.join(), add()),
    };
    let one = contest.one_by_one()?;
    table.goal(
        "  time of one at a time (p50)",
        micros(&one, 0, 1),
        "<= 1.05x",
        one.ratio(0, 1) <= 1.05,
    );
    let many = contest.many(MANY)?;
    table.goal(
        format!("  throughput, {MANY} under way"),
        per_second(&many, 0, 1),
        ">= 0.95x",
        many.ratio(0, 1) >= 0.95,
    );
    let resident = memory::own(console.pid());
    table.goal(
        "  memory of the console then (PSS)",
        format!("{:.1} MB (RSS {:.1} MB)", resident.pss, resident.rss),
        "<= 15 MB",
        resident.pss <= 15.0,
    );
    drop((follower, console, service));

    eprintln!("bench: a long history");
    table.heading(format!("console: a history of {CALLS} calls"));
    let bus = Bus::start(BusKind::Embedded);
    let port = free_port();
    let sandbox = bus.configured(&sections(port));
    let state = sandbox.path("state/ovos-tools");
    std::fs::create_dir_all(&state)?;
    std::fs::write(state.join("facts.jsonl"), record())?;
    let service = bus.serve_in(sandbox);
    let began = Instant::now();
    let console = Process::start("console", &service.sandbox, service.sandbox.command(program));
    let page = Page::open(&service, port)?;
    let last = format!("call-{CALLS}\"");
    while !page.get("/api/calls?limit=1&tool=wave")?.contains(&last) {
        if began.elapsed() > DEADLINE {
            return Err(io::Error::other("the console does not catch up"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    table.note(
        "  to read them from the record",
        format!("{:.1} s", began.elapsed().as_secs_f64()),
    );
    for (name, question) in [
        ("the newest 100", "/api/calls"),
        ("100 of a tool", "/api/calls?tool=wave"),
        ("of a tool that was never called", "/api/calls?tool=none"),
        ("100 that failed", "/api/calls?failed=true"),
    ] {
        let mut times = Vec::new();
        for _ in 0..ASKED {
            let start = Instant::now();
            page.get(question)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let time = median(times);
        table.goal(
            format!("  {name}"),
            format!("{time:.1} ms"),
            "<= 50 ms",
            time <= 50.0,
        );
    }
    table.note(
        "  memory of the console then (PSS)",
        format!("{:.1} MB", memory::own(console.pid()).pss),
    );
    Ok(())
}

fn sections(port: u16) -> serde_json::Value {
    let console = json!({"address": format!("127.0.0.1:{port}"), "keep_mb": 4096, "keep_days": 36500});
    json!({ "service": { "facts_mb": 1024, "doors": { "console": console } } })
}

/// A record of the service with many calls, of which one in ten failed.
fn record() -> String {
    let mut text = String::new();
    _ = writeln!(
        text,
        r#"{{"start":{{"id":"bench","format":1,"version":"0.1.0","time_us":1700000000000000,"first":1}}}}"#
    );
    for call in 1..=CALLS {
        let (number, at_us, failed) = (call * 2 - 1, call * 1000, call % 10 == 0);
        let of = format!(
            r#"{{"number":{call},"call_id":"call-{call}","toolbox_id":"robot","tool":"{}","effect":"motion"}}"#,
            if call % 4 == 0 { "wave" } else { "nod" }
        );
        _ = writeln!(
            text,
            r#"{{"number":{number},"at_us":{at_us},"fact":"received","call":{of},"asked":{{"topic":"ovos.tools.invoke","source":"bench","session_id":"s{}","request":{{"args":{{"arm":"left"}}}}}}}}"#,
            call % 50
        );
        _ = writeln!(
            text,
            r#"{{"number":{},"at_us":{},"fact":"answered","call":{of},"answer":{{"ok":{},"outcome":"{}"}}}}"#,
            number + 1,
            at_us + 500,
            !failed,
            if failed { "failed" } else { "completed" }
        );
    }
    text
}

/// A person who is signed in.
struct Page {
    port: u16,
    cookie: String,
}

impl Page {
    fn open(service: &Peer, port: u16) -> io::Result<Self> {
        let state = service.sandbox.path("state/ovos-tools");
        let end = Instant::now() + DEADLINE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > end {
                return Err(io::Error::other("the console does not listen"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let token = std::fs::read_to_string(state.join("console-token"))?;
        let body = json!({"token": token.trim()}).to_string();
        let mut page = Self {
            port,
            cookie: String::new(),
        };
        let extra = format!(
            "Origin: http://127.0.0.1:{port}\r\nx-ovos-tools: 1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let mut answer = String::new();
        page.send("POST /api/session", &extra, &body)?
            .read_to_string(&mut answer)?;
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        page.cookie = cookie.ok_or_else(|| io::Error::other(answer.clone()))?.to_owned();
        Ok(page)
    }

    fn send(&self, head: &str, extra: &str, body: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nCookie: {}\r\n{extra}\r\n{body}",
            self.port, self.cookie
        )?;
        Ok(stream)
    }

    fn get(&self, path: &str) -> io::Result<String> {
        let mut answer = String::new();
        self.send(&format!("GET {path}"), "", "")?
            .read_to_string(&mut answer)?;
        match answer.split(' ').nth(1) {
            Some("200") => Ok(answer),
            _ => Err(io::Error::other(answer)),
        }
    }

    /// Reads the facts as they happen, until the console ends.
    fn follow(&self) -> io::Result<std::thread::JoinHandle<usize>> {
        let mut stream = BufReader::new(self.send("GET /api/facts", "", "")?);
        let mut line = String::new();
        while !line.contains("begun") {
            line.clear();
            stream.read_line(&mut line)?;
        }
        Ok(std::thread::spawn(move || {
            stream.lines().map_while(Result::ok).count()
        }))
    }
}
