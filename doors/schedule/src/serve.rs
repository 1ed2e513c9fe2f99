//! The requests on the bus, and the clock. Read [`Scheduler::serve`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Local;
use client::{Client, News, Request};
use config::{Asker, Caller};
use door::{Door, own_id};
use ovos_toolbox_wire::{Effect, FailureKind, Object, Severity};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::{now, text_of};
use crate::firing::{End, Work, carry, check, context};
use crate::ovos_scheduler::OvosScheduler;
use crate::store::{Store, Unreadable};
use crate::table::{DueWork, Schedule, Table, What};
use crate::timetable::Timetable;
use crate::timing::{Millis, Timing};

/// Asks for a schedule.
const ADD: &str = "ovos.tools.schedule";
/// The schedules.
const LIST: &str = "ovos.tools.schedule.list";
/// Removes a schedule.
const CANCEL: &str = "ovos.tools.schedule.cancel";
/// Lets what a stop suspended fire again.
const RESUME: &str = "ovos.tools.schedule.resume";

/// The name of these requests in the rules of the policy.
const WORK: &str = "schedule";

/// How often the clock is read, so that one that was put forward or back is noticed.
const LOOK: Duration = Duration::from_secs(10);

/// How many of the next times an answer names.
const UPCOMING: usize = 5;

/// The schedules of this program.
pub(crate) struct Scheduler {
    timetable: Arc<Timetable>,
    fastest: Millis,
    /// What ends the calls that are under way, by schedule.
    running: Mutex<HashMap<String, CancellationToken>>,
    changed: Notify,
    /// Whether the topics of OVOS's scheduler are answered, too.
    is_of_ovos: bool,
}

impl Scheduler {
    /// With the schedules that were kept. `fastest` is how often each of them may fire; `is_of_ovos`: with the topics of OVOS's scheduler.
    ///
    /// # Errors
    /// The file of the schedules cannot be read.
    pub(crate) fn new(
        door: Arc<Door>,
        store: Store,
        fastest: Millis,
        is_of_ovos: bool,
    ) -> Result<Arc<Self>, Unreadable> {
        Ok(Arc::new(Self {
            timetable: Arc::new(Timetable::read(door, store)?),
            fastest,
            running: Mutex::default(),
            changed: Notify::new(),
            is_of_ovos,
        }))
    }

    /// Answers requests and fires what is due, until the door closes.
    ///
    /// # Cancel safety
    /// Not safe: cancel the door's shutdown instead.
    pub(crate) async fn serve(self: Arc<Self>) {
        const TOPICS: [&str; 4] = [ADD, LIST, CANCEL, RESUME];
        let mut requests = self.timetable.door.client.serve(&TOPICS);
        let mut events = self.timetable.door.client.events();
        self.act(Table::restored);
        let mut ovos = OvosScheduler::begin(&self.timetable, self.is_of_ovos).await;
        self.suspend_if_latched().await;
        loop {
            self.act(|table| table.due(now(), &Local));
            tokio::select! {
                () = self.timetable.door.shutdown.cancelled() => return,
                request = requests.next() => match request {
                    Some(request) => self.take(request),
                    None => return,
                },
                news = events.next() => match news {
                    Some(news) => self.hear(news).await,
                    None => return,
                },
                request = ovos.next() => ovos.take(request.as_ref()),
                () = self.changed.notified() => {}
                () = sleep(self.wait()) => {}
            }
        }
    }

    /// How long nothing is due.
    fn wait(&self) -> Duration {
        let until = self
            .timetable
            .table
            .lock()
            .wakes_at()
            .map_or(Millis::MAX, |at| at.saturating_sub(now()));
        u64::try_from(until)
            .map_or(Duration::ZERO, Duration::from_millis)
            .min(LOOK)
    }

    /// Changes the schedules, keeps that, and does what follows. What cannot be kept is not done.
    fn act(self: &Arc<Self>, change: impl FnOnce(&mut Table) -> Vec<DueWork>) {
        let due_work = {
            let mut table = self.timetable.table.lock();
            let due_work = change(&mut table);
            if due_work.is_empty() {
                return;
            }
            if let Err(error) = self.timetable.keep(&table) {
                for work in &due_work {
                    if let DueWork::Fire(schedule) = work {
                        table.ended(&schedule.schedule_id, &error);
                        self.timetable.publish(
                            "schedule_missed",
                            Severity::Error,
                            json!({
                                "schedule_id": schedule.schedule_id, "why": error,
                            }),
                        );
                    }
                }
                return;
            }
            due_work
        };
        for work in due_work {
            match work {
                DueWork::Fire(schedule) => self.fire(*schedule),
                DueWork::Missed {
                    schedule_id,
                    due_ms,
                    why,
                } => self.timetable.publish(
                    "schedule_missed",
                    Severity::Warning,
                    json!({
                        "schedule_id": schedule_id, "due": text_of(due_ms), "why": why,
                    }),
                ),
            }
        }
    }

    fn fire(self: &Arc<Self>, schedule: Schedule) {
        if let What::Message(message) = &schedule.what {
            return self.timetable.send(&schedule, message);
        }
        let end = CancellationToken::new();
        self.running
            .lock()
            .insert(schedule.schedule_id.clone(), end.clone());
        let this = Arc::clone(self);
        self.timetable.door.tasks.spawn(async move {
            let id = &schedule.schedule_id;
            let client = this
                .timetable
                .door
                .client
                .with_context(context(&schedule.on_behalf));
            tracing::info!(schedule_id = id, "a schedule fires");
            let ended = carry(&this.timetable.door, &client, &schedule.what, id, &end).await;
            this.running.lock().remove(id);
            let due = schedule.firing_ms.map(text_of);
            let outcome = match ended {
                End::Done { failed, text } => {
                    let severity = if failed { Severity::Warning } else { Severity::Info };
                    let data = json!({"schedule_id": id, "due": due, "ok": !failed, "text": text});
                    this.timetable.publish("schedule_fired", severity, data);
                    text
                }
                End::NotRun(why) => {
                    this.timetable.publish(
                        "schedule_missed",
                        Severity::Warning,
                        json!({"schedule_id": id, "due": due, "why": why}),
                    );
                    why
                }
            };
            let mut table = this.timetable.table.lock();
            table.ended(id, &outcome);
            // What cannot be kept is in the log; the next service reports the firing as not ended.
            _ = this.timetable.keep(&table);
        });
    }

    async fn hear(self: &Arc<Self>, news: News) {
        match news {
            News::Event(event) if event.kind == "emergency_stop" => self.suspend(None, "an emergency stop"),
            News::EmergencyStop => self.suspend(None, "an emergency stop"),
            News::UserStop { session_id } => self.suspend(session_id.as_deref(), "the user said stop"),
            // An event of this door fires nothing: it could fire itself.
            News::Event(event) if event.toolbox_id != "service" => {
                self.act(|table| table.event(&event.toolbox_id, &event.kind, now()));
            }
            News::Connected | News::Missed(_) => self.suspend_if_latched().await,
            _ => {}
        }
    }

    /// Suspends what a stop that was not heard would have suspended.
    async fn suspend_if_latched(self: &Arc<Self>) {
        if let Ok(status) = self.timetable.door.client.status().await
            && (status.all_latched.is_some() || status.toolboxes.iter().any(|toolbox| toolbox.latched))
        {
            self.suspend(None, "an emergency stop");
        }
    }

    fn suspend(self: &Arc<Self>, session_id: Option<&str>, why: &str) {
        let suspended = {
            let mut table = self.timetable.table.lock();
            let suspended = table.suspend(session_id, why);
            let under_way = self.running.lock();
            for schedule in table.all().filter(|schedule| schedule.suspended.is_some()) {
                if let Some(end) = under_way.get(&schedule.schedule_id) {
                    end.cancel();
                }
            }
            if suspended > 0 {
                // It holds in this process in any case.
                _ = self.timetable.keep(&table);
            }
            suspended
        };
        if suspended > 0 {
            let data = json!({"count": suspended, "why": why, "resume": RESUME});
            self.timetable
                .publish("schedules_suspended", Severity::Warning, data);
        }
    }

    /// Answers a request in a task of its own: what it asks for is planned first.
    fn take(self: &Arc<Self>, request: Request) {
        let this = Arc::clone(self);
        self.timetable.door.tasks.spawn(async move {
            let mut answer = match this.answer(&request).await {
                Ok(answer) => answer,
                Err(error) => json!({ "error": error }),
            };
            // Clients of the service know their answers by it.
            if let Some(call_id) = request.data().get("call_id") {
                answer["call_id"] = call_id.clone();
            }
            if let Err(error) = this.timetable.door.client.answer(&request, &answer) {
                tracing::warn!(%error, topic = request.topic(), "a request got no answer");
            }
            this.changed.notify_one();
        });
    }

    async fn answer(self: &Arc<Self>, request: &Request) -> Result<Value, String> {
        if let Some(error) = request.refused() {
            return Err(error.to_owned());
        }
        let client = self.timetable.door.client_for(request, WORK)?;
        let asker = Asker::of(request.context()).map_err(|unclear| value_error(&unclear.to_string()))?;
        let data = request.data();
        match request.topic() {
            ADD => self.add(request, &asker, &client).await,
            LIST => {
                let table = self.timetable.table.lock();
                let mine = table.all().filter(|schedule| sees(&asker, schedule));
                let schedules: Vec<Value> = mine.map(|schedule| described(&table, schedule)).collect();
                Ok(json!({ "schedules": schedules }))
            }
            CANCEL => {
                let id = self.own(&asker, data)?;
                let mut table = self.timetable.table.lock();
                table.cancel(&id);
                if let Some(end) = self.running.lock().get(&id) {
                    end.cancel();
                }
                self.timetable.keep(&table)?;
                Ok(json!({"schedule_id": id, "cancelled": true}))
            }
            _ => {
                if asker.all().any(|one| one.kind != Caller::Bus) {
                    let why = "only a person can resume what a stop suspended: send ovos.tools.schedule.resume on the bus";
                    return Err(format!("{}: {why}", FailureKind::PermissionError));
                }
                let all = data.get("schedule_id").and_then(Value::as_str) == Some("all");
                let id = if all { None } else { Some(self.own(&asker, data)?) };
                let mut table = self.timetable.table.lock();
                let resumed = table.resume(id.as_deref(), now(), &Local);
                self.timetable.keep(&table)?;
                Ok(json!({ "resumed": resumed }))
            }
        }
    }

    /// The id of a schedule that a request names and its asker may change.
    fn own(&self, asker: &Asker, data: &Object) -> Result<String, String> {
        let id = data.get("schedule_id").and_then(Value::as_str);
        let id =
            id.ok_or_else(|| value_error("expected `schedule_id`; ovos.tools.schedule.list names them"))?;
        let table = self.timetable.table.lock();
        let schedule = table.find(id).filter(|schedule| sees(asker, schedule));
        let unknown = || {
            value_error(&format!(
                "there is no schedule '{id:.80}' of yours; ovos.tools.schedule.list names them"
            ))
        };
        schedule
            .map(|schedule| schedule.schedule_id.clone())
            .ok_or_else(unknown)
    }

    async fn add(
        self: &Arc<Self>,
        request: &Request,
        asker: &Asker,
        client: &Client,
    ) -> Result<Value, String> {
        let data = request.data();
        let when = Timing::read(data, now(), self.fastest).map_err(|why| value_error(&why))?;
        let object = |key: &str| data.get(key).and_then(Value::as_object).cloned();
        let what = match (object("call"), object("run")) {
            (Some(call), None) => What::Call(call),
            (None, Some(run)) => What::Run(run),
            _ => {
                return Err(value_error(
                    "expected `call` {\"name\", \"args\"} or `run` {\"steps\"}, and not both",
                ));
            }
        };
        let times = match data.get("times") {
            None | Some(Value::Null) => None,
            Some(times) => Some(
                times
                    .as_u64()
                    .filter(|times| *times > 0)
                    .ok_or_else(|| value_error("times: expected a whole number from 1"))?,
            ),
        };
        let work = Work::read(&what).map_err(|why| value_error(&why))?;
        let tool = check(&self.timetable.door, client, &work).await?;
        let mut marked = Object::new();
        asker.mark(&mut marked);
        let title = data.get("title").and_then(Value::as_str).unwrap_or_default();
        let schedule = Schedule {
            schedule_id: own_id("s"),
            title: title.chars().take(200).collect(),
            when,
            what,
            reads: tool.effect == Effect::Read,
            asker: asker.to_string(),
            on_behalf: marked.shift_remove("on_behalf").unwrap_or_default(),
            session_id: request.session_id().map(str::to_owned),
            times,
            next_ms: None,
            last_ms: None,
            firing_ms: None,
            fired: 0,
            outcome: None,
            suspended: None,
        };
        let id = schedule.schedule_id.clone();
        let mut table = self.timetable.table.lock();
        table
            .add(schedule, now(), &Local)
            .map_err(|full| format!("{}: {full}", FailureKind::BusyError))?;
        if let Err(error) = self.timetable.keep(&table) {
            table.cancel(&id);
            return Err(error);
        }
        let added = table.find(&id).map(|schedule| described(&table, schedule));
        Ok(added.unwrap_or_default())
    }
}

/// Whether an asker may see and cancel a schedule: clients of the bus all, others their own.
fn sees(asker: &Asker, schedule: &Schedule) -> bool {
    let is_of_bus = asker.all().all(|one| one.kind == Caller::Bus);
    is_of_bus || asker.to_string() == schedule.asker
}

fn described(table: &Table, schedule: &Schedule) -> Value {
    let upcoming = match schedule.next_ms {
        Some(next) => {
            let mut upcoming = vec![next];
            upcoming.extend(schedule.when.upcoming(next, &Local, UPCOMING - 1));
            upcoming.truncate(
                schedule
                    .times
                    .map_or(UPCOMING, |times| usize::try_from(times).unwrap_or(UPCOMING)),
            );
            upcoming
        }
        None => Vec::new(),
    };
    let upcoming: Vec<String> = upcoming.into_iter().map(text_of).collect();
    let mut entry = json!({
        "schedule_id": schedule.schedule_id, "title": schedule.title, "asker": schedule.asker, "next": upcoming,
        "fired": schedule.fired, "last": schedule.last_ms.map(text_of), "outcome": schedule.outcome,
        "suspended": table.suspended(schedule), "running": schedule.firing_ms.is_some(), "when": schedule.when,
    });
    match &schedule.what {
        What::Call(call) => entry["call"] = json!(call),
        What::Run(run) => entry["run"] = json!(run),
        What::Message(message) => entry["message"] = json!({"event": message.event, "data": message.data}),
    }
    entry
}

fn value_error(why: &str) -> String {
    format!("{}: {why}", FailureKind::ValueError)
}
