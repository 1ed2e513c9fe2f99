//! An upload of a mission or a fence.

use mavlink::dialects::common::MavMissionType;

use crate::mission::Item;

/// An upload in progress.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) kind: MavMissionType,
    pub(super) count: u16,
    pub(super) items: Vec<Item>,
    pub(super) asked: f64,
    pub(super) tries: u8,
}
