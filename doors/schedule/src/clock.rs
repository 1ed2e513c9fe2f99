//! The clock of the machine.

use std::time::SystemTime;

use chrono::{Local, TimeZone as _};

use crate::timing::Millis;

/// A time as people write it, in the zone of the machine.
pub(crate) fn text_of(at: Millis) -> String {
    Local
        .timestamp_millis_opt(at)
        .single()
        .map(|at| at.to_rfc3339())
        .unwrap_or_default()
}

/// What it shows.
pub(crate) fn now() -> Millis {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
