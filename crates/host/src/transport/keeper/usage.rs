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

/// The memory that a process and those that it started use, in MiB.
pub(super) fn memory_mb(pid: u32) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    let own = pages.unwrap_or(0) * rustix::param::page_size() as u64;
    let others: u64 = descendants(pid).into_iter().map(own_bytes).sum();
    (own + others) / (1 << 20)
}

/// The memory of a process without the files that it maps, which it mostly shares with the process that started it; bytes.
fn own_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let counted = |line: &str| {
        let (name, amount) = line.split_once(':')?;
        let counts = ["RssAnon", "RssShmem"].contains(&name);
        let kilobytes = amount.trim().strip_suffix(" kB").filter(|_| counts)?;
        kilobytes.parse::<u64>().ok()
    };
    status.lines().filter_map(counted).sum::<u64>() * 1024
}

/// The processes that a process started, and those that they started.
fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut seen = 0;
    while let Some(pid) = found.get(seen).copied() {
        seen += 1;
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_memory_of_what_a_process_starts_counts() {
        // The inner shell keeps 64 MiB in a variable.
        let inner = "x=$(head -c 67108864 /dev/zero | tr '\\0' a); echo ready; read y";
        let mut outer = Command::new("sh")
            .args(["-c", "sh -c \"$1\"; true", "sh", inner])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(outer.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let used = memory_mb(outer.id());
        assert!((64..640).contains(&used), "{used} MiB");
        drop(outer.stdin.take());
        outer.wait().unwrap();
    }
}
