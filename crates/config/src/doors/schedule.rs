//! The keys of the door for calls at a time, every so often, or on an event.

use serde::{Deserialize, Serialize};

use super::toolset::{Toolset, at};
use crate::reader::Reader;

/// `service.doors.schedule`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleDoor {
    /// Which tools can be scheduled.
    #[serde(skip)]
    pub toolset: Toolset,
    /// Whether the service starts the door, watches it, and ends it with itself.
    pub start: bool,
    /// Whether the door answers the topics of OVOS's scheduler (`mycroft.scheduler.*`), too: where there is no ovos-core, which has one.
    pub ovos_scheduler: bool,
}

impl ScheduleDoor {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let path = at(&["schedule"]);
        let written = reader.written(&path);
        let defaults = Self {
            toolset: Toolset::default(),
            start: false,
            ovos_scheduler: false,
        };
        let (door, rest) = reader.open(&path, written, defaults);
        reader.refuse(&path, &door, rest, &Toolset::KEYS);
        let toolset = Toolset::read(reader, "schedule");
        Self { toolset, ..door }
    }
}
