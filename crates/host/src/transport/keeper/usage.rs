//! The resources that a process uses, as the kernel counts them; zero where it does not.

use std::time::Duration;

/// How long the threads of a process have waited for a processor, in total.
pub(super) fn waited(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let waited = |thread: std::io::Result<std::fs::DirEntry>| {
        let count = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        count.split(' ').nth(1)?.parse::<u64>().ok()
    };
    let waited = threads.map_or(0, |threads| threads.filter_map(waited).sum());
    Duration::from_nanos(waited)
}

/// The memory that a process uses, in MiB.
pub(super) fn memory_mb(pid: u32) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64 / (1 << 20)
}
