//! Lists in pages: `limit` and `cursor` of a request, and `next_cursor` of its answer.
//!
//! A list is continued as it was when its first page was made, so a client that reads all pages has each tool of that
//! moment once, whatever is loaded or reloaded meanwhile. Read [`OpenPages::part`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{FailureKind, Object};
use parking_lot::Mutex;

use super::error::WireError;
use super::keys::{text, whole};
use crate::registry::{Registry, Snapshot, Tool};

/// The largest `limit`.
const MAX_LIMIT: u64 = 65_536;

/// A page ends after about this many bytes of tools, whatever its `limit` is: the answer to a stop waits until the page
/// before it is written. On a bus that takes less it ends after a quarter of that: in some formats a tool is longer.
const PAGE_BYTES: usize = 1 << 20;

/// How many earlier states of the registry are kept for the rest of lists that were begun in them.
const MAX_SNAPSHOTS: usize = 4;

/// How long such a state is kept after the last page of it.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(60);

/// The states of the registry in which clients have begun to read a list.
#[derive(Debug)]
pub(super) struct OpenPages {
    snapshots: Mutex<VecDeque<(Arc<Snapshot>, Instant)>>,
    page_bytes: usize,
}

/// The part of a list that a request asks for.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) snapshot: Arc<Snapshot>,
    /// The index of its first tool among all tools of the snapshot.
    pub(super) first: usize,
    /// How many tools it has at most; `None`: all the others.
    pub(super) limit: Option<usize>,
    /// How many bytes of tools it has at most, about, if it has a limit.
    pub(super) bytes: usize,
}

/// The tools of a part, and the index with which the next part begins, if there is one.
pub(super) struct Page<'a> {
    /// Each with the name that means it alone, and that every vendor accepts.
    pub(super) tools: Vec<(&'a Arc<Tool>, &'a str)>,
    pub(super) next: Option<usize>,
}

impl OpenPages {
    /// Creates the pages for a bus that takes at most `max_answer_bytes` in one message.
    pub(super) fn new(max_answer_bytes: usize) -> Self {
        Self {
            snapshots: Mutex::default(),
            page_bytes: PAGE_BYTES.min(max_answer_bytes / 4),
        }
    }

    /// Reads the part of a list that a request asks for.
    ///
    /// # Errors
    /// A wrong `limit` or `cursor`, or a cursor of a list that is not kept any more.
    pub(super) fn part(&self, registry: &Registry, data: &Object) -> Result<Part, WireError> {
        let limit = whole(data, "limit", 1, MAX_LIMIT)?;
        let current = registry.snapshot();
        let Some(cursor) = text(data, "cursor")? else {
            return Ok(Part {
                snapshot: current,
                first: 0,
                limit: limit.map(as_usize),
                bytes: self.page_bytes,
            });
        };
        let Some((number, first)) = parse_cursor(&cursor) else {
            return Err(WireError::new(
                FailureKind::ValueError,
                format!("'cursor' must be the next_cursor of an answer, got '{cursor:.60}'"),
            ));
        };
        let snapshot = if current.number() == number {
            current
        } else {
            self.find_snapshot(number).ok_or_else(|| {
                WireError::new(
                    FailureKind::ValueError,
                    "the tools have changed since this list was begun, and its 'cursor' is too old; begin again without \
                     'cursor'",
                )
            })?
        };
        Ok(Part {
            snapshot,
            first,
            // Only a client that reads pages has a cursor.
            limit: Some(as_usize(limit.unwrap_or(MAX_LIMIT))),
            bytes: self.page_bytes,
        })
    }

    /// The cursor of the next part; keeps the snapshot for it.
    pub(super) fn cursor(&self, snapshot: &Arc<Snapshot>, next: usize) -> String {
        let number = snapshot.number();
        let mut snapshots = self.snapshots.lock();
        snapshots.retain(|(kept, used)| kept.number() != number && used.elapsed() < SNAPSHOT_LIFETIME);
        snapshots.push_back((snapshot.clone(), Instant::now()));
        if snapshots.len() > MAX_SNAPSHOTS {
            snapshots.pop_front();
        }
        format!("{number:x}-{next:x}")
    }

    fn find_snapshot(&self, number: u64) -> Option<Arc<Snapshot>> {
        let snapshots = self.snapshots.lock();
        let found = snapshots.iter().find(|(kept, _)| kept.number() == number);
        found.map(|(kept, _)| kept.clone())
    }
}

impl Part {
    /// The whole list as one part.
    pub(super) fn whole_list(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            first: 0,
            limit: None,
            bytes: usize::MAX,
        }
    }

    /// The toolbox of its first tool.
    pub(super) fn toolbox_id(&self) -> Option<&str> {
        let first = self.snapshot.tools().nth(self.first)?;
        Some(&first.toolbox_id)
    }

    /// The tools of this part for which `wanted` is true.
    pub(super) fn page(&self, wanted: impl Fn(&Arc<Tool>) -> bool) -> Page<'_> {
        let mut tools = Vec::new();
        let mut bytes = 0;
        let all = self.snapshot.called().enumerate().skip(self.first);
        for (index, (tool, name)) in all.filter(|(_, (tool, _))| wanted(tool)) {
            if let Some(limit) = self.limit
                && (tools.len() == limit || (bytes > 0 && bytes + tool.entry.get().len() > self.bytes))
            {
                let next = Some(index);
                return Page { tools, next };
            }
            bytes += tool.entry.get().len();
            tools.push((tool, name));
        }
        Page { tools, next: None }
    }
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn parse_cursor(cursor: &str) -> Option<(u64, usize)> {
    let (number, first) = cursor.split_once('-')?;
    let legal = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !legal(number) || !legal(first) {
        return None;
    }
    Some((
        u64::from_str_radix(number, 16).ok()?,
        usize::from_str_radix(first, 16).ok()?,
    ))
}
