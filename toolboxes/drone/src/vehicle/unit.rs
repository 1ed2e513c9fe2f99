//! One vehicle: what the files of this folder share, and the one place that hears it. Read [`Vehicle`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Channel;

use super::attention::Attention;
use super::command::{Command, Trouble};
use super::control::{Control, Takeover};
use super::hover::Hover;
use super::link_state::{ASLEEP, Link};
use super::log_line::{Asker, LoggedState};
use super::open_commands::{OpenCommand, OpenCommands};
use super::outside::Outside;
use super::right::EndReason;
use super::telemetry::{Battery, Telemetry};
use crate::clock::Clock;
use crate::config::{Config, VehicleConfig};
use crate::flight::Flight;
use crate::guard::{Caller, Facts, Mode, OverrideCause};
use crate::run_log::RunLog;
use crate::scene::{SceneStore, Side};

/// Bounds of the arrival tolerance that follows from how the vehicle hovers, metres.
const LEAST_ARRIVE_M: f64 = 0.5;
const MOST_ARRIVE_M: f64 = 1.0;

/// How long the reports that name a takeover may take after the mode.
const NAMED: Duration = Duration::from_millis(150);

/// Greatest age of a battery's charge: vehicles report it every two seconds, less often over a slow radio.
const BATTERY_MAX_AGE: Duration = Duration::from_secs(10);

/// How long a close waits for open commands; the service gives a toolbox that it ends 2 s.
const CLOSES: Duration = Duration::from_millis(1500);

/// When a takeover of any vehicle was last reported to the service. The service then stops all vehicles, and only the
/// time distinguishes that stop from a user's. Clones share the value.
pub(crate) type OverrideReport = Arc<Mutex<Option<tokio::time::Instant>>>;

/// One vehicle.
pub(crate) struct Vehicle {
    pub(crate) id: String,
    pub(crate) config: Arc<Config>,
    pub(crate) own: VehicleConfig,
    pub(crate) clock: Clock,
    pub(crate) scene: SceneStore,
    pub(crate) log: RunLog,
    pub(super) heard: watch::Sender<Telemetry>,
    pub(super) link: watch::Sender<Link>,
    pub(super) channel: Mutex<Option<Channel>>,
    pub(super) control: Mutex<Control>,
    pub(super) flight: Mutex<Flight>,
    pub(super) hover: Mutex<Hover>,
    pub(super) open_commands: watch::Sender<OpenCommands>,
    /// Number of brakes so far; only the last one watches the vehicle.
    pub(super) brakes: watch::Sender<u64>,
    pub(super) override_reported: OverrideReport,
    /// The firmware version that it reports.
    pub(super) version: Mutex<Option<String>>,
    /// Warns once about the open port of its server.
    pub(super) port_warned: std::sync::Once,
    /// Whether it was last recognised as a simulation.
    pub(super) simulated: std::sync::atomic::AtomicBool,
    /// When a scene was last written to the run log, by frame and source.
    pub(super) scenes_written: Mutex<BTreeMap<(String, String), tokio::time::Instant>>,
    /// Number of mode-changing commands that calls have sent; one sent since a brake began has priority over that
    /// brake.
    pub(super) mode_commands: std::sync::atomic::AtomicU64,
    /// Whether the last mode-changing command was a flight to a position, which continues in mode Hold.
    pub(super) repositioning: std::sync::atomic::AtomicBool,
    /// When a safe call last waited in vain for a report of the vehicle's mode; `None` once a safe call has received
    /// it.
    pub(super) mode_unanswered: Mutex<Option<tokio::time::Instant>>,
    /// Its speed when it was last braked, metres per second.
    pub(super) braked_at_mps: Mutex<Option<f64>>,
    pub(super) attention: Attention,
    pub(super) outside: Arc<dyn Outside>,
    pub(super) tasks: TaskTracker,
    pub(super) closing: CancellationToken,
    pub(super) runtime: Handle,
}

impl Vehicle {
    /// A vehicle without a connection; [`Vehicle::start`] connects it.
    pub(crate) fn new(
        config: Arc<Config>,
        own: VehicleConfig,
        clock: Clock,
        log: RunLog,
        outside: Arc<dyn Outside>,
        override_reported: OverrideReport,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: own.id.clone(),
            scene: SceneStore::new(config.perception.clone(), clock),
            config,
            own,
            clock,
            log,
            heard: watch::Sender::new(Telemetry {
                clock: Some(clock),
                ..Telemetry::default()
            }),
            link: watch::Sender::new(Link::Connecting("just started".to_string())),
            channel: Mutex::default(),
            control: Mutex::default(),
            flight: Mutex::default(),
            hover: Mutex::default(),
            open_commands: watch::Sender::default(),
            brakes: watch::Sender::default(),
            override_reported,
            version: Mutex::default(),
            port_warned: std::sync::Once::new(),
            simulated: std::sync::atomic::AtomicBool::new(false),
            scenes_written: Mutex::default(),
            mode_commands: std::sync::atomic::AtomicU64::new(0),
            repositioning: std::sync::atomic::AtomicBool::new(false),
            mode_unanswered: Mutex::default(),
            braked_at_mps: Mutex::default(),
            attention: Attention::new(),
            outside,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            runtime: Handle::current(),
        })
    }

    /// The charge in percent when the battery action is due: the charge is below the reserve, and the vehicle is in the
    /// air, in a flight that one of our calls flies and no safe call is ending. It is never due in emergency stop or
    /// after a takeover, and at most once per flight.
    pub(crate) fn acts_on_battery(&self) -> Option<f64> {
        let facts = self.facts();
        let ours = facts.link_ok
            && facts.trusted.is_ok()
            && facts.armed == Some(true)
            && facts.in_air == Some(true)
            && self.control.lock().acts_on_battery();
        let coming_down = |mode: Mode| matches!(mode, Mode::Land | Mode::ReturnToLaunch) || mode.is_manual();
        let flies = facts.mode.is_some_and(|mode| !coming_down(mode));
        facts
            .battery_pct
            .filter(|pct| ours && flies && *pct < self.config.flight_limits.min_battery_pct)
    }

    /// Ends the motion calls with this reason and marks this flight's battery action as used.
    pub(crate) fn give_up_motion(&self, why: String) {
        self.control.lock().spend_battery_action(why);
    }

    /// Resolves when a second safe call runs.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn another_safe_call(&self) {
        while self.control.lock().safe_calls < 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends an event to the bus.
    pub(crate) fn event(&self, kind: &str, data: Value) {
        self.outside.event(kind, data);
    }

    /// Runs a task until [`Vehicle::close`].
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks.spawn_on(
            async move {
                tokio::select! {
                    biased;
                    () = closing.cancelled() => {}
                    () = task => {}
                }
            },
            &self.runtime,
        );
    }

    /// Ends every task and child program, after the brake has followed every command that may still be carried out.
    ///
    /// # Cancel safety
    /// When dropped, the tasks end anyway.
    pub(crate) async fn close(self: &Arc<Self>) {
        let tasks_end = self.closing.clone().drop_guard();
        let latched = {
            let mut control = self.control.lock();
            control.withdraw(&EndReason::Closed, true);
            control.latched
        };
        let mut open = self.open_commands.subscribe();
        if open.borrow().leads() {
            if !latched {
                drop(self.brake(false, "close"));
            }
            let ended = open.wait_for(|open| !open.leads());
            let _ = tokio::time::timeout(CLOSES, ended).await.is_ok();
        }
        drop(tasks_end);
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(crate) fn telemetry(&self) -> Telemetry {
        self.heard.borrow().clone()
    }

    /// Whether it was recognised as a simulation; an unrecognised vehicle counts as real.
    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// The firmware version that it reports, such as `1.17.0`.
    pub(crate) fn version(&self) -> Option<String> {
        self.version.lock().clone()
    }

    pub(super) fn recognised(&self, simulated: bool) {
        self.simulated
            .store(simulated, std::sync::atomic::Ordering::SeqCst);
    }

    pub(crate) fn link(&self) -> Link {
        self.link.borrow().clone()
    }

    /// Waits until the first connection succeeds or has failed, and telemetry has arrived.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wait_link(&self, at_most: Duration) {
        let mut link = self.link.subscribe();
        let settled = link.wait_for(|link| !matches!(link, Link::Connecting(_) | Link::Asleep));
        // After a timeout the caller checks the state of the link.
        let _ = tokio::time::timeout(at_most, settled).await;
        let mut reports = self.heard.subscribe();
        let ready = reports.wait_for(|telemetry| {
            telemetry.mode.is_some() && telemetry.pose().is_some() && telemetry.health.is_some()
        });
        if *self.link.borrow() == Link::Up {
            let _ = tokio::time::timeout(at_most.min(Duration::from_secs(3)), ready).await;
        }
    }

    /// A snapshot of the facts.
    pub(crate) fn facts(&self) -> Facts {
        let telemetry = self.heard.borrow();
        let link = self.link.borrow();
        let flight = self.flight.lock();
        let trusted = match &*link {
            Link::Up | Link::Lost(_) => Ok(()),
            Link::Untrusted(why) | Link::Missing(why) => Err(why.clone()),
            // Counts as trusted, so that the missing link is reported instead, which is the more useful error.
            Link::Connecting(_) | Link::Absent(_) | Link::Asleep => Ok(()),
        };
        Facts {
            trusted,
            link_ok: *link == Link::Up && telemetry.link_ok(),
            overridden: self.control.lock().overridden().cloned(),
            kind: telemetry.kind,
            pose: telemetry.pose(),
            armed: telemetry.armed,
            in_air: telemetry.in_air,
            landed: telemetry.landed,
            mode: telemetry.mode,
            health: telemetry.health,
            checks: telemetry.checks.clone(),
            battery_pct: telemetry
                .battery(self.battery_age())
                .map(|battery| battery.pct)
                .filter(|pct| pct.is_finite()),
            home: telemetry.home,
            free_ahead_m: self.scene.free(Side::Ahead),
            free_behind_m: self.scene.free(Side::Behind),
            vision: self.scene.detections().map(drop),
            camera: telemetry.camera,
            rotation_accum_deg: flight.rotation_accum_deg,
            forward_accum_m: flight.forward_accum_m,
            flight_rotation_deg: flight.flight_rotation_deg,
            flight_forward_m: flight.flight_forward_m,
            last_text: telemetry.last_words(),
            last_warning: telemetry.last_warning(),
            caller: Caller::default(),
        }
    }

    /// The battery with the lowest charge, while telemetry arrives.
    pub(crate) fn battery(&self) -> Option<Battery> {
        let telemetry = self.heard.borrow();
        telemetry
            .battery(self.battery_age())
            .filter(|_| telemetry.link_ok())
    }

    /// Greatest age of a battery's charge; longer for a simulation slower than real time.
    pub(super) fn battery_age(&self) -> Duration {
        BATTERY_MAX_AGE.max(self.clock.wall(BATTERY_MAX_AGE))
    }

    /// Changes the state object and publishes it if it differs.
    pub(crate) fn change_flight(&self, change: impl FnOnce(&mut Flight)) {
        let changed = {
            let mut flight = self.flight.lock();
            let before = flight.clone();
            change(&mut flight);
            *flight != before
        };
        if changed {
            self.outside.event("drone_state", self.state_object());
        }
    }

    pub(crate) fn flight(&self) -> Flight {
        self.flight.lock().clone()
    }

    pub(crate) fn state_object(&self) -> Value {
        let facts = self.facts();
        self.flight
            .lock()
            .object(&self.id, &facts, &self.config.flight_limits)
    }

    /// How the vehicle was taken from us, if it was.
    pub(crate) fn overridden(&self) -> Option<OverrideCause> {
        self.control.lock().overridden().cloned()
    }

    /// Lifts the latch for an operator.
    ///
    /// # Errors
    /// A pilot is still flying.
    pub(crate) fn resume(&self) -> Result<(), String> {
        let telemetry = self.telemetry();
        if let Some(mode) = telemetry.pilots_mode()
            && telemetry.link_ok()
            && telemetry.in_air == Some(true)
        {
            return Err(format!(
                "{}: a pilot flies it (mode {}): land it, or hand it over with the mode switch or the tool hold",
                self.id,
                mode.name()
            ));
        }
        self.control.lock().hand_back();
        Ok(())
    }

    /// Stores a message and checks for a takeover.
    pub(super) fn update_telemetry(self: &Arc<Self>, write: impl FnOnce(&mut Telemetry)) {
        let mut taken = None;
        self.heard.send_modify(|heard| {
            let (before, boots) = (LoggedState::by(heard), heard.boots);
            write(heard);
            if heard.boots != boots {
                // After a restart the vehicle has forgotten its commands.
                self.control.lock().settle();
            }
            self.record(before, heard);
            heard.heard = Some(tokio::time::Instant::now());
            self.hover.lock().update(heard, |time| self.clock.wall(time));
            // Before any waiting call sees the telemetry: it must not act on another party's mode.
            taken = self.control.lock().observe(heard);
        });
        if let Some(taken) = taken {
            self.taken_over(&taken);
        }
    }

    /// How close to its target a move has to come, metres.
    pub(super) fn arrive_m(&self) -> f64 {
        let scatter = || {
            let rms_m = self.hover.lock().rms_m().unwrap_or_default();
            (2.0 * rms_m).clamp(LEAST_ARRIVE_M, MOST_ARRIVE_M)
        };
        self.config.flight_limits.arrive_m.unwrap_or_else(scatter)
    }

    pub(super) fn taken_over(self: &Arc<Self>, takeover: &Takeover) {
        if let Some(mode) = takeover.give_back {
            let vehicle = Arc::clone(self);
            self.spawn(async move { vehicle.give_back(mode).await });
        }
        if takeover.first {
            *self.override_reported.lock() = Some(tokio::time::Instant::now());
        }
        if !takeover.unsure {
            self.report_taken(&takeover.taken, takeover.first);
            return;
        }
        // From here on nothing is sent; only its name may take some milliseconds.
        let (vehicle, takeover) = (Arc::clone(self), takeover.clone());
        self.spawn(async move {
            vehicle.takeover_named().await;
            let taken = vehicle.overridden().unwrap_or(takeover.taken);
            vehicle.report_taken(&taken, takeover.first);
        });
    }

    /// Waits until it is known whether the last takeover was a failsafe of the vehicle.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn takeover_named(&self) {
        let mut reports = self.heard.subscribe();
        let named = reports.wait_for(|_| !self.control.lock().is_unsure());
        let named = tokio::time::timeout(NAMED, named).await.is_ok();
        if !named {
            self.control.lock().stop_waiting();
        }
    }

    pub(super) fn report_taken(&self, taken: &OverrideCause, first: bool) {
        let (OverrideCause { how, failsafe }, kind) = (taken, taken.code());
        tracing::warn!(
            vehicle = self.id,
            how,
            failsafe,
            "another party took control of the vehicle; no more commands are sent"
        );
        self.log.write(kind, || json!({"vehicle": self.id, "how": how}));
        if !first {
            return;
        }
        self.outside.event(kind, json!({"vehicle": self.id, "how": how}));
        let words = if *failsafe { "failsafe" } else { "pilot override" };
        self.outside.latched(&format!("{}: {words}: {how}", self.id));
    }

    pub(super) fn set_link(&self, link: Link) {
        let changed = self.link.send_if_modified(|now| {
            let changed = *now != link;
            now.clone_from(&link);
            changed
        });
        if changed {
            let (state, reason) = match &link {
                Link::Connecting(why) => ("connecting", why.as_str()),
                Link::Absent(why) => ("absent", why.as_str()),
                Link::Up => ("connected", ""),
                Link::Asleep => ("asleep", ASLEEP),
                Link::Untrusted(why) => ("refused", why.as_str()),
                Link::Lost(why) => ("lost", why.as_str()),
                Link::Missing(why) => ("missing", why.as_str()),
            };
            tracing::info!(vehicle = self.id, state, reason, "link");
            self.log.write(
                "link",
                || json!({"vehicle": self.id, "state": state, "reason": reason}),
            );
            let mut event = json!({"vehicle": self.id, "state": state, "reason": reason,
                "simulated": self.is_simulated()});
            // The event of a lone vehicle names no unit, so that it applies to every call, also to one that names no
            // vehicle.
            if self.config.vehicles().len() > 1 {
                event["unit"] = json!(self.id);
            }
            self.outside.event("backend", event);
        }
    }

    pub(super) fn channel(&self) -> Option<Channel> {
        self.channel.lock().clone()
    }

    /// Sends a command from a task of its own, so that a dropped caller leaves no command half sent.
    pub(super) fn dispatch(
        self: &Arc<Self>,
        call_id: &str,
        command: Command,
    ) -> oneshot::Receiver<Result<(), Trouble>> {
        let (acknowledge, acknowledgement) = oneshot::channel();
        let Some(channel) = self.channel() else {
            let cause = "there is no connection".to_string();
            let _ = acknowledge.send(Err(Trouble::Server {
                what: "command",
                cause,
            }));
            return acknowledgement;
        };
        let open = OpenCommand::begin(&self.open_commands, &command);
        let (vehicle, call_id) = (Arc::clone(self), call_id.to_string());
        self.spawn(async move {
            let done = vehicle.perform(command.clone(), channel, open).await;
            vehicle.record_answer(Asker::Call(&call_id), &command, &done);
            // The receiver is gone when its call was dropped.
            let _ = acknowledge.send(done);
        });
        acknowledgement
    }
}
