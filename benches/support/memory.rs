//! Memory of a process and of all that it has started.

use std::collections::HashMap;
use std::fs;

use super::start::{MB_A_KIB, field};

/// Memory in MB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Proportional: a page that several processes share counts in parts.
    pub(crate) pss: f64,
    /// Resident: such a page counts for each of them.
    pub(crate) rss: f64,
}

/// Memory of one process.
pub(crate) fn own(pid: u32) -> Memory {
    // A process that has just ended has none.
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let of = |name| Some(field(&text, name) * MB_A_KIB).filter(|figure| figure.is_finite());
    Memory {
        pss: of("Pss").unwrap_or_default(),
        rss: of("Rss").unwrap_or_default(),
    }
}

/// Memory of all processes below one, and how many they are.
pub(crate) fn below(pid: u32) -> (Memory, usize) {
    let found = tree(pid);
    let mut memory = Memory::default();
    for &child in &found {
        let one = own(child);
        memory.pss += one.pss;
        memory.rss += one.rss;
    }
    (memory, found.len())
}

/// Processor time that these processes have used, seconds. One that has ended is not counted.
pub(crate) fn processor_s(pids: &[u32]) -> f64 {
    // A tick of `/proc` is a hundredth of a second on every Linux this runs on.
    let ticks = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.rsplit_once(')')?.1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        Some(fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?)
    };
    pids.iter().filter_map(ticks).sum::<f64>() / 100.0
}

/// All processes below one.
pub(crate) fn tree(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        children
            .entry(field(&status, "PPid") as u32)
            .or_default()
            .push(child);
    }
    let (mut found, mut left) = (Vec::new(), vec![pid]);
    while let Some(parent) = left.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        found.extend(&below);
        left.extend(below);
    }
    found
}
