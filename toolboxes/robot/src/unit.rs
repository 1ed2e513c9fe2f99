//! One robot of the configuration.
//!
//! Owns its adapter, its model, the settings that tools have made, and its memory of an emergency stop. Read
//! [`Unit`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::tokio::task::spawn_blocking;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::action::{Action, Motion};
use crate::adapter::refused::Refused;
use crate::adapter::{ActionError, ActionOutput, Adapter, Control, until};
use crate::capability::Capabilities;
use crate::limits;
use crate::model::{Model, Place};
use crate::places::{Body, Places};
use crate::position;
use crate::spot::Spot;
use crate::subsystem::Subsystem;

/// How long the position of a base with a radius is waited for.
const POSITION_COMES: Duration = Duration::from_secs(1);

/// One robot.
pub struct Unit {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind, narrowed by the configuration.
    pub model: Model,
    /// What drives it.
    pub adapter: Arc<dyn Adapter>,
    /// Whether there are other robots: if so, subsystems are called `<name>/<subsystem>`.
    pub one_of_several: bool,
    /// Why it is not driven, with the key or the file that is wrong; `None` for a robot that can be used.
    pub refusal: Option<String>,
    stopped: AtomicBool,
    /// Where its base was at the first action.
    start: OnceLock<Spot>,
    places: Arc<Mutex<Places>>,
    memory: Mutex<Memory>,
}

/// The settings that tools have made.
#[derive(Debug, Default)]
pub struct Memory {
    /// `gesture_while_speaking`: its style while it is on.
    pub gestures: Option<String>,
    /// `enable_fire_detection`: its settings.
    pub fire_detection: Option<Value>,
    /// `tow_cart`: a cart is attached.
    pub towing: bool,
    /// The people it has pointed at, and when.
    pub pointed: HashMap<String, Instant>,
    /// What the hands reach for.
    pub aims: HashMap<Subsystem, Aim>,
}

/// What the steps of one call reach for. The first step of each call sets it anew, and a call has its arm for itself.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The thing or the place.
    pub target: String,
    /// Where the arm goes for it.
    pub place: Place,
}

impl Unit {
    /// A robot at rest.
    #[must_use]
    pub fn new(name: &str, model: Model, adapter: Arc<dyn Adapter>, one_of_several: bool) -> Self {
        Self {
            name: name.to_string(),
            model,
            adapter,
            one_of_several,
            refusal: None,
            stopped: AtomicBool::new(false),
            start: OnceLock::new(),
            places: Arc::default(),
            memory: Mutex::default(),
        }
    }

    /// The same robot, with the places that it remembers.
    #[must_use]
    pub fn remembering(mut self, places: Places) -> Self {
        self.places = Arc::new(Mutex::new(places));
        self
    }

    /// The places that it remembers.
    pub fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock()
    }

    /// Changes the places, which writes their file, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// As `change`.
    ///
    /// # Cancel safety
    /// The file is written whole or not at all.
    pub async fn change_places<R: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Places) -> Result<R, String> + Send + 'static,
    ) -> Result<R, String> {
        let places = Arc::clone(&self.places);
        let changed = spawn_blocking(move || change(&mut places.lock()));
        changed.await.map_err(|error| error.to_string())?
    }

    /// A robot that is not driven, one of several: the others serve.
    #[must_use]
    pub(crate) fn refused(name: &str, model: Model, reason: String) -> Self {
        let adapter = Arc::new(Refused::new(model.capabilities.clone(), &reason));
        Self {
            refusal: Some(reason),
            ..Self::new(name, model, adapter, true)
        }
    }

    /// What the robot has and can do.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.model.capabilities
    }

    /// The name of a subsystem in plans.
    #[must_use]
    pub fn subsystem(&self, subsystem: Subsystem) -> String {
        if self.one_of_several {
            format!("{}/{subsystem}", self.name)
        } else {
            subsystem.to_string()
        }
    }

    /// Whose arm this is, for the places of its hand; `None` for one that has no shape.
    #[must_use]
    pub fn body(&self, arm: Subsystem) -> Option<Body> {
        Some(Body {
            kind: self.capabilities().model.clone(),
            simulated: self.capabilities().simulated,
            shape: self.model.geometry(arm)?.digest().to_owned(),
        })
    }

    /// The settings that tools have made.
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }

    /// Checks an action against the limits and does it.
    ///
    /// # Errors
    /// The action is beyond a limit, the robot is in emergency stop, or the adapter reports an error.
    ///
    /// # Cancel safety
    /// May be dropped; the motion is ended by [`Unit::halt`].
    pub async fn execute(&self, action: &Action, control: &Control) -> Result<ActionOutput, ActionError> {
        limits::check(&self.name, self.capabilities(), action)?;
        self.check_radius(action, control).await?;
        // The service refuses motion while it is latched; this also holds back the moving part of a safe tool.
        let stopped = self.stopped.load(Ordering::SeqCst) || control.is_latched();
        if stopped && action.step.moves() {
            return Err(ActionError::Stopped);
        }
        self.adapter.execute(action, control).await
    }

    /// Where the base is.
    ///
    /// # Errors
    /// It does not know, or knew it too long ago.
    pub fn here(&self) -> Result<Spot, ActionError> {
        position::here(&self.name, self.adapter.fix())
    }

    /// Where the base is, in the frame of a spot.
    ///
    /// # Errors
    /// As [`here`](Self::here), or its frame is another one.
    pub fn here_in_frame_of(&self, spot: &Spot) -> Result<Spot, ActionError> {
        position::here_in_frame_of(&self.name, self.adapter.fix(), spot)
    }

    /// Checks that the base stays within its radius around where it was at first. One that has a radius and is not told where it is does not
    /// move.
    async fn check_radius(&self, action: &Action, control: &Control) -> Result<(), ActionError> {
        let is_bounded = self
            .capabilities()
            .base
            .as_ref()
            .is_some_and(|base| base.radius.is_some());
        let now = match (is_bounded, &action.motion) {
            // A robot that is just found has not told it yet.
            (true, Some(Motion::Drive { .. } | Motion::GoTo(_))) => {
                until(control, POSITION_COMES, || self.here()).await??
            }
            _ => match self.here() {
                Ok(now) => now,
                Err(_) => return Ok(()),
            },
        };
        let start = self.start.get_or_init(|| now.clone());
        limits::check_radius(self.capabilities(), action, start, &now)
    }

    /// Ends motion; an emergency is remembered until [`Unit::reset`].
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn halt(&self, subsystems: &[Subsystem], emergency: bool) -> Result<(), ActionError> {
        if emergency {
            self.stopped.store(true, Ordering::SeqCst);
        }
        self.adapter.halt(subsystems, emergency)
    }

    /// Lifts the emergency stop of the robot.
    ///
    /// # Errors
    /// The adapter refuses for now, with its reason.
    pub fn reset(&self) -> Result<(), ActionError> {
        self.adapter.reset()?;
        self.stopped.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// The error for a part that the robot lacks.
    #[must_use]
    pub fn lacks(&self, what: impl Into<String>) -> ActionError {
        ActionError::NotSupported {
            robot: self.name.clone(),
            what: what.into(),
        }
    }

    /// The arm on the side of a bearing, or the robot's only arm.
    #[must_use]
    pub fn nearer_arm(&self, bearing: f64) -> Subsystem {
        let has = |arm| self.capabilities().has(arm);
        if (bearing < 0.0 || !has(Subsystem::RightArm)) && has(Subsystem::LeftArm) {
            Subsystem::LeftArm
        } else {
            Subsystem::RightArm
        }
    }

    /// Adds the robot's name to a result where there are several, and whether it is simulated.
    pub fn label(&self, data: &mut ovos_toolbox_sdk::wire::Object) {
        if self.one_of_several {
            data.insert("robot".to_string(), json!(self.name));
        }
        if self.capabilities().simulated {
            data.insert("simulated".to_string(), json!(true));
        }
    }
}
