//! Between the plugin side and everything else.
//!
//! Puts what the plugin manager loads into the engine and the registry, drains what it replaces, and carries events,
//! messages and questions of toolboxes to and from the bus. Read [`Bridge`].

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Event, Failure, Object};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bus_outbox::BusOutbox;
use super::configuration::Configuration;
use super::questions::{Question, Questions};
use super::router::{Deliveries, Router};
use super::state::LatchFile;
use super::{ServiceError, bus_status};
use crate::api::{
    BusStatus, EventMessage, FailedFile, Outbox, ReloadOutcome, ServiceStatus, ToolboxStatus, Toolboxes,
};
use crate::bus::Message;
use crate::config::{CallLimits, Config};
use crate::engine::{Engine, Limits, StopTarget};
use crate::plugin::{HostServices, Manager, Origin, Request};
use crate::registry::{Registry, Snapshot, Tool, ToolboxEntry, ToolboxState};
