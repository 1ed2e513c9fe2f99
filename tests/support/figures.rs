//! The resources of a process and its children, as counted by the kernel.

use std::fmt;
use std::fs;

/// The resources of the service and its children at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) service: Held,
    /// The resources of all children together.
    pub(crate) children: Held,
    pub(crate) processes: usize,
}

/// The resources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) files: usize,
    pub(crate) threads: usize,
    /// Resident memory that belongs to no file, in KiB.
    pub(crate) memory: usize,
}

impl Figures {
    /// Reads the resources of `pid` and its children. A process that ends meanwhile counts as nothing.
    pub(crate) fn of(pid: u32) -> Self {
        let mut figures = Self {
            service: Held::by(pid),
            ..Self::default()
        };
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if parent(child) == Some(pid) {
                let held = Held::by(child);
                figures.children.files += held.files;
                figures.children.threads += held.threads;
                figures.children.memory += held.memory;
                figures.processes += 1;
            }
        }
        figures
    }
}

impl Held {
    pub(crate) fn by(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
                .unwrap_or(0)
        };
        Self {
            files: fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count),
            threads: field("Threads:"),
            memory: field("RssAnon:"),
        }
    }
}

/// The fourth field. The second one, a name in parentheses, may have spaces.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "service: {}; {} children: {}",
            self.service, self.processes, self.children
        )
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            files,
            threads,
            memory,
        } = self;
        write!(
            f,
            "{files} files, {threads} threads, {:.1} MiB",
            *memory as f64 / 1024.0
        )
    }
}
