//! Gives the servos to another program for a time, and takes them back.
//!
//! Owns who has the ports. Meanwhile nothing of this toolbox reaches a servo. Every stop kills the program before it opens a port, and
//! stops the servos once more when the last process of the program has ended, which may have had a command under way. Read
//! [`Feetech::run_policy`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::tokio::task::spawn_blocking;
use rustix::process::Signal;
use serde_json::json;
use tokio::sync::watch;

use super::device::Feetech;
use super::rest::{Rest, settle_in_order, slowed};
use super::servo::tenth;
use super::torque::{ease, hold, power};
use crate::adapter::{ActionError, ActionOutput, BackendState, Control, Notice};
use crate::capability::BusName;
use crate::policy::PolicyTable;
use crate::policy::guest::{Guest, Stage};
use crate::policy::words::{Cause, Ending, Errand, Means};
use crate::servo::{Sender, Then, holders};

/// How long a halt waits for the end of a process that was killed, before it stops the servos.
const KILLED: Duration = Duration::from_millis(15);
/// How long what is left of a killed program may take to end.
const GONE: Duration = Duration::from_secs(3);
/// A program that ends by itself before this time has done nothing.
const EARLY: Duration = Duration::from_secs(1);
/// How long joints that are held may take to stand.
const STANDS: Duration = Duration::from_secs(2);
/// The pause between two looks at them, and between two words of progress.
const LOOK: Duration = Duration::from_millis(50);
const TOLD: Duration = Duration::from_secs(1);

/// What brings one bus to rest when it comes back.
struct Returned {
    sender: Sender,
    ids: Vec<u8>,
    wheels: Vec<u8>,
    hold: Then,
    emergency: Then,
}

impl Feetech {
    /// Gives the whole robot to a program for at most `seconds`, and holds every joint where it stands afterwards.
    ///
    /// # Errors
    /// The program could not have the robot, or the servos did not come back.
    ///
    /// # Cancel safety
    /// May be dropped: the program is killed then, and the joints are held when it has ended.
    pub(super) async fn run_policy(
        &self,
        name: &str,
        seconds: f64,
        control: &Control,
    ) -> Result<ActionOutput, ActionError> {
        let Some(policy) = self.capabilities.policies.get(name) else {
            return Err(self.lacks(format!("a policy {name}")));
        };
        if self.ports.is_empty() {
            return Err(self.lacks(format!(
                "run_policy {name}: its servos are simulated, and there is no port that a program could open"
            )));
        }
        let command = policy
            .words(&self.ports, seconds)
            .map_err(|why| self.broken(format!("policies.{name}.{why}")))?;
        // A robot that does not answer now is lent to nobody.
        let before = self.measured(control).await?;
        let guest = self.invite(name)?;
        // Whatever ends this future ends the program.
        let ends = EndsWithCall(&guest);
        self.lend(&guest, control).await?;
        let errand = Errand {
            command,
            env: policy.env.clone(),
            // At most 30 s.
            grace_ms: u64::try_from(Duration::from_secs_f64(policy.grace_seconds).as_millis())
                .unwrap_or_default(),
        };
        let begun = Instant::now();
        let started = control.command(|| {
            // Checked inside, as every motion is.
            let stopped = self.stopped.load(Ordering::SeqCst);
            (!stopped).then(|| guest.begin(&errand))
        })?;
        match started {
            None => return Err(ActionError::Stopped),
            Some(Err(error)) => return Err(self.broken(format!("{name} cannot be started: {error}"))),
            Some(Ok(())) => {}
        }
        let (stage, in_time) = self.accompany(&guest, policy, (name, seconds), control).await?;
        let lasted = begun.elapsed();
        drop(ends);
        let output = self.taken_back(control).await?;
        let summary = describe(&stage, in_time, lasted, seconds);
        let mut trouble: Vec<String> = summary
            .trouble
            .map(|why| format!("{name} {why}"))
            .into_iter()
            .collect();
        trouble.extend(self.held_by_others(name).await);
        let moved = moved(&before, &output);
        Ok(output
            .note(format!(
                "{name} {}; every joint is held where it stands",
                summary.text
            ))
            .with("policy", name)
            .with("seconds", (lasted.as_secs_f64() * 10.0).round() / 10.0)
            .with("ended", summary.word)
            .with("moved", json!(moved))
            .with("output", summary.output)
            .trouble((!trouble.is_empty()).then(|| trouble.join("; "))))
    }

    /// The keeper of a program, which gives the ports back when the program is over.
    fn invite(&self, name: &str) -> Result<Arc<Guest>, ActionError> {
        let returned = self.returned();
        let stopped = Arc::clone(&self.stopped);
        let notify = Arc::clone(&self.notify);
        let guest = Guest::invite(move || {
            let emergency = stopped.load(Ordering::SeqCst);
            for bus in returned {
                let then = if emergency { bus.emergency } else { bus.hold };
                // Nobody waits for it here. In an emergency the halt's own stop is the one that is owed: this second one is repeated only
                // until the next motion, which comes after the emergency was lifted.
                drop(bus.sender.stop(&bus.ids, bus.wheels, Some(then), false));
            }
        })
        .map_err(|error| {
            self.broken(format!(
                "the process that keeps {name} cannot be started: {error}"
            ))
        })?;
        *self.loan.lock() = Some(Arc::clone(&guest));
        notify(Notice::Backend {
            state: BackendState::Degraded,
            reason: format!("the program {name} controls the robot"),
        });
        Ok(guest)
    }

    fn returned(&self) -> Vec<Returned> {
        let buses = self.buses.iter();
        buses
            .map(|(name, bus)| {
                let ids = self.layout.ids(*name);
                let wheels: Vec<u8> = self.wheels_of(*name);
                let joints = self.joints_to_stop(*name, &ids, &wheels);
                let groups = self.layout.groups(*name, &ids, &joints, &self.stop);
                let rest = self.rest_of(true);
                let (held, same) = (groups.clone(), joints.clone());
                let hold: Then = Arc::new(move |wire| {
                    // The program may have left any speed.
                    wire.suspect(&same);
                    settle_in_order(wire, &held, Rest::Hold)
                });
                let emergency: Then = Arc::new(move |wire| {
                    wire.suspect(&joints);
                    settle_in_order(wire, &groups, rest)
                });
                Returned {
                    sender: bus.sender().clone(),
                    ids,
                    wheels,
                    hold,
                    emergency,
                }
            })
            .collect()
    }

    /// Closes every port. A joint keeps its torque and its goal, and gets its own greatest speed back.
    async fn lend(&self, guest: &Arc<Guest>, control: &Control) -> Result<(), ActionError> {
        for (name, bus) in &self.buses {
            let ids = self.layout.ids(*name);
            let returns = Arc::clone(guest);
            let sent = control.command(|| {
                // Checked inside, as every motion is.
                let stopped = self.stopped.load(Ordering::SeqCst);
                (!stopped).then(|| bus.sender().lend(ids, ease, move || returns.will_return()))
            })?;
            let sent = sent.ok_or(ActionError::Stopped)?;
            let lent = self.answer(control, sent).await;
            if let (Err(_), Stage::Lost(how)) = (&lent, &*guest.watch().borrow()) {
                return Err(self.broken(format!("the process that keeps the program has ended ({how})")));
            }
            lent?;
        }
        self.known().hands.clear();
        Ok(())
    }

    /// Waits until the program is over; ends it when its time is. Returns how it ended, and whether that was within its time.
    async fn accompany(
        &self,
        guest: &Guest,
        policy: &PolicyTable,
        (name, seconds): (&str, f64),
        control: &Control,
    ) -> Result<(Stage, bool), ActionError> {
        let mut watch = guest.watch();
        let whole = Duration::from_secs_f64(policy.startup_seconds + seconds);
        let begun = Instant::now();
        loop {
            let left = whole.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            let over = tokio::time::timeout(left.min(TOLD), over(&mut watch));
            if let Ok(stage) = control.unless_cancelled(over).await? {
                return Ok((stage, true));
            }
            let share = begun.elapsed().as_secs_f64() / whole.as_secs_f64();
            control.progress(share.min(1.0), &format!("{name} controls the robot"));
        }
        guest.end();
        let patience = Duration::from_secs_f64(policy.grace_seconds) + GONE;
        let ended = tokio::time::timeout(patience, over(&mut watch));
        if let Ok(stage) = control.unless_cancelled(ended).await? {
            return Ok((stage, false));
        }
        guest.kill();
        let ended = tokio::time::timeout(GONE, over(&mut watch));
        match control.unless_cancelled(ended).await? {
            Ok(stage) => Ok((stage, false)),
            Err(_) => Err(self.broken(format!(
                "{name} was killed and does not end: it may still have the port; cut the power of the servos"
            ))),
        }
    }

    /// Holds every joint, powers those that were left without torque, and says where they are.
    async fn taken_back(&self, control: &Control) -> Result<ActionOutput, ActionError> {
        let mut without = Vec::new();
        for name in self.buses.keys().copied() {
            let ids = self.joints_of(name);
            let asked = ids.clone();
            let off = self
                .tell(name, ids, control, move |wire| {
                    let modes = wire.modes(&asked)?;
                    // Once more and with patience: the stop before did not wait for slow answers.
                    let unknown = hold(wire, &asked)?;
                    if !unknown.is_empty() {
                        return Err(wire.unconfirmed(&unknown, slowed(wire)));
                    }
                    power(wire, &asked)?;
                    let off = modes.into_iter().filter(|(_, mode)| !mode.torque);
                    Ok(off.map(|(id, _)| id).collect::<Vec<u8>>())
                })
                .await?;
            let named = off.into_iter().filter_map(|id| self.layout.servo(name, id));
            without.extend(named.map(|servo| format!("{}.{}", servo.subsystem, servo.name)));
        }
        let end = Instant::now() + STANDS;
        while let Some(moving) = self.moving(control).await? {
            if Instant::now() >= end {
                return Err(self.broken(format!(
                    "{moving} still moves although it was told to hold: another program may have the port; cut the power of \
                     the servos"
                )));
            }
            self.sleep(control, LOOK).await?;
        }
        let joints = self.measured(control).await?;
        (self.notify)(Notice::Backend {
            state: BackendState::Connected,
            reason: "the program has given the robot back".to_owned(),
        });
        let output = ActionOutput::default().with("joints", json!(joints));
        Ok(match without.is_empty() {
            true => output,
            false => output.note(format!(
                "{} had lost their torque and may have sunk; with LeRobot, --robot.disable_torque_on_disconnect=false keeps it on",
                without.join(", ")
            )),
        })
    }

    /// Where every joint is, by `<part>.<joint>`, in degrees or millimetres.
    async fn measured(&self, control: &Control) -> Result<BTreeMap<String, f64>, ActionError> {
        let mut joints = BTreeMap::new();
        for name in self.buses.keys().copied() {
            let ids = self.joints_of(name);
            // One by one: the error names the servo that does not answer.
            let found = self
                .ask(name, control, move |wire| {
                    let read = |id: u8| Ok((id, wire.read(id, crate::servo::Register::POSITION)?));
                    ids.into_iter().map(read).collect::<Result<Vec<_>, _>>()
                })
                .await?;
            self.remember(name, found.iter().copied());
            for (id, steps) in found {
                if let Some(servo) = self.layout.servo(name, id) {
                    let joint = format!("{}.{}", servo.subsystem, servo.name);
                    joints.insert(joint, tenth(servo.value(steps)));
                }
            }
        }
        Ok(joints)
    }

    /// A joint that moves.
    async fn moving(&self, control: &Control) -> Result<Option<String>, ActionError> {
        for name in self.buses.keys().copied() {
            let ids = self.joints_of(name);
            let states = self.ask(name, control, move |wire| wire.states(&ids)).await?;
            let moving = states.into_iter().find(|(_, state)| state.speed != 0);
            if let Some((id, _)) = moving {
                let servo = self.layout.servo(name, id);
                return Ok(servo.map(|servo| format!("{}.{}", servo.subsystem, servo.name)));
            }
        }
        Ok(None)
    }

    fn joints_of(&self, bus: BusName) -> Vec<u8> {
        self.joints_to_stop(bus, &self.layout.ids(bus), &[])
    }

    /// What is wrong where another process than the program's own has a port.
    async fn held_by_others(&self, name: &str) -> Option<String> {
        let ports: Vec<String> = self.ports.values().cloned().collect();
        let found = spawn_blocking(move || {
            ports
                .into_iter()
                .find_map(|port| Some((holders(&port).into_iter().next()?, port)))
        });
        let (holder, port) = found.await.ok()??;
        Some(format!(
            "{name} has ended, but {holder} still has {port} open: end {holder} before you move the robot, because two programs on one \
             bus disturb each other"
        ))
    }

    fn guest(&self) -> Option<Arc<Guest>> {
        let loan = self.loan.lock();
        loan.clone().filter(|guest| !guest.is_over())
    }

    /// # Errors
    /// A program that had the robot is not known to have ended.
    pub(super) fn check_loan(&self) -> Result<(), ActionError> {
        match self.guest() {
            None => Ok(()),
            Some(_) => Err(self.broken(
                "the program that had the robot has not ended yet; try again in a second".to_owned(),
            )),
        }
    }

    /// Kills the program that has the robot, if one has. Blocks for a few milliseconds.
    pub(super) fn kill_loan(&self) {
        if let Some(guest) = self.guest() {
            guest.kill_within(KILLED);
        }
    }

    /// Waits for the end of a program that was killed.
    ///
    /// # Errors
    /// It does not end.
    pub(super) async fn await_loan(&self, control: &Control) -> Result<(), ActionError> {
        let Some(guest) = self.guest() else { return Ok(()) };
        let mut watch = guest.watch();
        let ended = tokio::time::timeout(GONE, over(&mut watch));
        match control.unless_cancelled(ended).await? {
            Ok(_) => Ok(()),
            Err(_) => Err(self.broken(
                "the program that had the robot was killed and does not end; cut the power of the servos"
                    .to_owned(),
            )),
        }
    }

    /// Kills the program that has the robot, and waits until its ports are back. Returns whether there was one.
    pub(super) async fn end_loan(&self) -> bool {
        let Some(guest) = self.guest() else { return false };
        guest.kill();
        let mut watch = guest.watch();
        _ = tokio::time::timeout(GONE, over(&mut watch)).await;
        true
    }
}

/// Kills a program whose call is no longer there.
struct EndsWithCall<'a>(&'a Guest);

impl Drop for EndsWithCall<'_> {
    fn drop(&mut self) {
        if !self.0.is_over() {
            self.0.kill();
        }
    }
}

/// The stage in which the program is over.
async fn over(watch: &mut watch::Receiver<Stage>) -> Stage {
    match watch.wait_for(Stage::is_over).await {
        Ok(stage) => stage.clone(),
        // The guest keeps itself until it is over.
        Err(_) => Stage::Lost("its keeper is gone".to_owned()),
    }
}

/// How far each joint is from where it was, as far as it is a degree or more.
fn moved(before: &BTreeMap<String, f64>, output: &ActionOutput) -> BTreeMap<String, f64> {
    let now = |joint: &str| output.data.get("joints")?.get(joint)?.as_f64();
    let way = |(joint, was): (&String, &f64)| Some((joint.clone(), tenth(now(joint)? - was)));
    let ways = before.iter().filter_map(way);
    ways.filter(|(_, way)| way.abs() >= 1.0).collect()
}

/// What a call says of a program that has ended.
struct Summary {
    /// After its name.
    text: String,
    /// Why that is no success, after its name.
    trouble: Option<String>,
    /// For programs.
    word: &'static str,
    output: Vec<String>,
}

fn describe(stage: &Stage, in_time: bool, lasted: Duration, seconds: f64) -> Summary {
    let lasting = format!("{:.1} s", lasted.as_secs_f64());
    let wrong = |word, text: String| Summary {
        trouble: Some(text.clone()),
        text,
        word,
        output: Vec::new(),
    };
    let ending = match stage {
        Stage::Ended(ending) => ending,
        Stage::NotBegun(why) => return wrong("not_started", format!("was not started: {why}")),
        Stage::Lost(how) => {
            return wrong(
                "lost",
                format!("was killed: the process that kept it has ended ({how})"),
            );
        }
        Stage::Waiting | Stage::Running => return wrong("lost", "is not known to have ended".to_owned()),
    };
    let summary = match (ending, in_time) {
        (
            Ending {
                cause: Some(Cause::Flood),
                ..
            },
            _,
        ) => wrong(
            "flooded",
            format!("wrote more than 32 MiB in {lasting} and was killed for that"),
        ),
        (
            Ending {
                cause: Some(Cause::Signal(name)),
                ..
            },
            _,
        ) => wrong(
            "lost",
            format!("was killed after {lasting}: the process that kept it was told to end ({name})"),
        ),
        (Ending { code: Some(0), .. }, true) if lasted >= EARLY => Summary {
            text: format!("has ended by itself after {lasting}"),
            trouble: None,
            word: "by_itself",
            output: Vec::new(),
        },
        (_, true) => wrong("failed", format!("ended after {lasting} with {}", how(ending))),
        (Ending { means, .. }, false) => {
            let over = format!("had its {seconds} s and was ended");
            match means.filter(|means| *means > Means::Interrupt) {
                None if was_interrupted(ending) => Summary {
                    text: over,
                    trouble: None,
                    word: "time_over",
                    output: Vec::new(),
                },
                None => wrong(
                    "failed",
                    format!(
                        "had its {seconds} s, was told to end, and ended with {}",
                        how(ending)
                    ),
                ),
                Some(means) => wrong(
                    "made_to_end",
                    format!("{over} with {}: it did not end after SIGINT", means.as_str()),
                ),
            }
        }
    };
    let last = ending.output.last().filter(|_| summary.trouble.is_some());
    Summary {
        trouble: summary.trouble.map(|why| match last {
            Some(last) => format!("{why}; it wrote: {last}"),
            None => format!("{why}; it wrote nothing"),
        }),
        output: ending.output.clone(),
        ..summary
    }
}

/// Whether a program ended as one does that is asked to with SIGINT: well, by that signal, or as shells say that.
fn was_interrupted(ending: &Ending) -> bool {
    let interrupt = Signal::INT.as_raw();
    ending.signal == Some(interrupt)
        || matches!(ending.code, Some(code) if code == 0 || code == 128 + interrupt)
}

fn how(ending: &Ending) -> String {
    match (ending.code, ending.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown exit code".to_owned(),
    }
}
