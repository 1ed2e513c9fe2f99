//! The names of this service in the files.

/// The name of this service's section inside `PHAL`: that of the Python plugin, which this service replaces.
pub const OURS: &str = "ovos-phal-plugin-tools";

/// The name of this service among those of OVOS: used for its log file, its section of `logging` and its status
/// topics.
pub const SERVICE_NAME: &str = "ovos_tools";
