//! What a judge looks at. Read [`Machine`].

use crate::catalog::Catalog;
use crate::config::Config;
use crate::devices::Devices;
use crate::policy::Policy;
use crate::suggest::Suggestions;
use crate::validate::Spares;

/// The machine, as GStreamer and the kernel know it, and what the configuration allows.
pub(crate) struct Machine {
    pub(crate) config: Config,
    pub(crate) policy: Policy,
    pub(crate) catalog: Catalog,
    pub(crate) suggestions: Suggestions,
    pub(crate) spares: Spares,
    pub(crate) devices: Devices,
}
