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

/// Memory of all processes below one, and how many they are, without those of this name and what they have started.
pub(crate) fn below(pid: u32, without: Option<&str>) -> (Memory, usize) {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let name = status.lines().find_map(|line| line.strip_prefix("Name:"));
        if without.is_some() && name.map(str::trim) == without {
            continue;
        }
        children
            .entry(field(&status, "PPid") as u32)
            .or_default()
            .push(child);
    }
    let (mut memory, mut found) = (Memory::default(), 0);
    let mut left = vec![pid];
    while let Some(parent) = left.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            let one = own(child);
            memory.pss += one.pss;
            memory.rss += one.rss;
            found += 1;
            left.push(child);
        }
    }
    (memory, found)
}
