//! Start-up time and memory of the service.

use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::measure::{median, throughput};
use super::peers::{Bus, BusKind, Question, plugins, service_command};
use super::process::Sandbox;
use super::table::Table;

const STARTS: usize = 11;

pub(crate) const MB_A_KIB: f64 = 1024.0 / 1e6;

/// Costs of a start.
pub(crate) struct Start {
    /// Milliseconds from before the process exists until it reports to systemd that it is ready.
    pub(crate) ready: f64,
    /// Milliseconds until every toolbox is up.
    pub(crate) all_loaded: f64,
    /// Resident MB at that time, of the service alone.
    pub(crate) resident: f64,
    /// The part of it that is private to the process; the rest is file pages.
    pub(crate) anonymous: f64,
    /// Resident MB after about ten thousand calls.
    pub(crate) resident_later: f64,
    pub(crate) threads: usize,
}

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: starts");
    let start = measure()?;
    table.heading(format!(
        "the service with every toolbox that ships, each in a process of its own ({} threads)",
        start.threads
    ));
    table.goal(
        "  start to ready",
        format!("{:.0} ms", start.ready),
        "< 300 ms",
        start.ready < 300.0,
    );
    table.note(
        "  start to the last toolbox",
        format!("{:.0} ms", start.all_loaded),
    );
    table.goal(
        "  private memory of the service then",
        format!("{:.1} MB", start.anonymous),
        "< 12 MB",
        start.anonymous < 12.0,
    );
    table.note("    with pages of files", format!("{:.1} MB", start.resident));
    table.note(
        "    the same after two seconds of calls",
        format!("{:.1} MB", start.resident_later),
    );
    Ok(())
}

/// The service with every toolbox that ships, each in a process of its own, as a client of a bus.
fn measure() -> io::Result<Start> {
    let bus = Bus::start(BusKind::Embedded);
    let (mut ready, mut all_loaded) = (Vec::new(), Vec::new());
    let (mut resident, mut anonymous) = (Vec::new(), Vec::new());
    let (mut resident_later, mut threads) = (Vec::new(), 0);
    for round in 0..=STARTS {
        let (mut service, took) = Service::start(&bus)?;
        let loaded = service.all_loaded()?;
        let status = service.status()?;
        // The first start warms the machine's caches.
        if round > 0 {
            ready.push(took.as_secs_f64() * 1e3);
            all_loaded.push(loaded.as_secs_f64() * 1e3);
            resident.push(field(&status, "VmRSS") * MB_A_KIB);
            anonymous.push(field(&status, "RssAnon") * MB_A_KIB);
            threads = field(&status, "Threads") as usize;
        }
        if round == STARTS {
            service.connected()?;
            let question = Question::invoke("add", &serde_json::json!({"a": 20, "b": 22}));
            let mut wire = bus.join();
            throughput(&mut wire, &question, 64, Duration::from_secs(2))?;
            resident_later.push(field(&service.status()?, "VmRSS") * MB_A_KIB);
        }
    }
    Ok(Start {
        ready: median(ready),
        all_loaded: median(all_loaded),
        resident: median(resident),
        anonymous: median(anonymous),
        resident_later: median(resident_later),
        threads,
    })
}

/// A field of `/proc/<pid>/status`: kB, or a plain number.
pub(crate) fn field(status: &str, name: &str) -> f64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(f64::NAN)
}

struct Service {
    begun: Instant,
    child: Child,
    sandbox: Sandbox,
}

impl Service {
    fn start(bus: &Bus) -> io::Result<(Self, Duration)> {
        let sandbox = Sandbox::with_bus(bus.port);
        let socket = sandbox.path("run/notify");
        let notify = UnixDatagram::bind(&socket)?;
        notify.set_read_timeout(Some(Duration::from_secs(30)))?;
        let log = std::fs::File::create(sandbox.path("service.log"))?;
        let mut command = service_command(&sandbox);
        command
            .arg("--plugins")
            .arg(plugins("bench-toolboxes"))
            .env("NOTIFY_SOCKET", &socket)
            .stdout(Stdio::piped())
            .stderr(log);
        let start = Instant::now();
        let service = Self {
            begun: start,
            child: command.spawn()?,
            sandbox,
        };
        let mut text = [0; 4096];
        loop {
            let size = notify.recv(&mut text)?;
            if text[..size].windows(7).any(|part| part == b"READY=1") {
                return Ok((service, start.elapsed()));
            }
        }
    }

    /// Waits for the service's first line, which it prints when the last toolbox is up.
    fn all_loaded(&mut self) -> io::Result<Duration> {
        let stdout = self.child.stdout.take().map(BufReader::new);
        let line = stdout.and_then(|stdout| stdout.lines().next());
        let line = line.ok_or_else(|| io::Error::other("the service ended"))??;
        if line.starts_with("ovos-tools") {
            Ok(self.begun.elapsed())
        } else {
            Err(io::Error::other(format!("not the line of a start: {line}")))
        }
    }

    /// Waits until the service is connected to the bus, which may be after it is ready.
    fn connected(&self) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let log = std::fs::read_to_string(self.sandbox.path("service.log"))?;
            if log.contains("connected to the bus") {
                return Ok(());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Err(io::Error::other("the service does not find the bus"))
    }

    fn status(&self) -> io::Result<String> {
        std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
