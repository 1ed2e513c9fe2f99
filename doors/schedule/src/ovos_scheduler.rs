//! The part of the door that stands in for OVOS's own scheduler, as long as no other one answers on the bus: with two of them each
//! message would be sent twice. Read [`OvosScheduler`].

use std::sync::Arc;
use std::time::Duration;

use chrono::Local;
use client::payload::EmptyRequest;
use client::topic::OVOS_SCHEDULER;
use client::{Client, Request, Requests};
use ovos_toolbox_wire::{Object, Severity};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::ovos_events::{self, ADD, GET, LIST, READY, REMOVE, STATUS_PREFIX, TOPICS, UPDATE, id_of};
use crate::table::What;
use crate::timetable::Timetable;

/// How long another scheduler may take to answer, and how often it is looked for.
const PROBE_WAIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(60);

/// Why messages are not sent.
const SWITCHED_OFF: &str = "ovos_scheduler is off in service.doors.schedule";
const ANOTHER: &str = "another scheduler answers on this bus, such as that of ovos-core, and with both each event would be sent twice; set \
                       \"ovos_scheduler\": false in service.doors.schedule, or end the other one and start this door again";

/// The requests of skills. There are none where they are not answered here.
pub(crate) struct OvosScheduler {
    timetable: Arc<Timetable>,
    requests: Option<Requests>,
    /// Cancelled when another scheduler was found.
    another: CancellationToken,
}

impl OvosScheduler {
    /// Looks for another scheduler, and answers from now on if there is none. `is_wanted`: whether the topics are to be answered.
    pub(crate) async fn begin(timetable: &Arc<Timetable>, is_wanted: bool) -> Self {
        let this = Self {
            timetable: Arc::clone(timetable),
            requests: None,
            another: timetable.door.shutdown.child_token(),
        };
        if !is_wanted {
            this.suspend(Some(SWITCHED_OFF));
            return this;
        }
        if is_there(&timetable.door.client).await {
            this.refuse();
            return this;
        }
        let requests = timetable.door.client.serve(&TOPICS);
        this.suspend(None);
        let (client, another) = (timetable.door.client.clone(), this.another.clone());
        timetable.door.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = another.cancelled() => return,
                    () = sleep(LOOK) => if is_there(&client).await {
                        return another.cancel();
                    }
                }
            }
        });
        tracing::info!("waiting for mycroft.scheduler");
        Self {
            requests: Some(requests),
            ..this
        }
    }

    /// Waits for a request. `None`: there is another scheduler now.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Request> {
        let Some(requests) = &mut self.requests else {
            return std::future::pending().await;
        };
        tokio::select! {
            () = self.another.cancelled() => None,
            request = requests.next() => request,
        }
    }

    /// Carries out what a request asks for, or ends answering.
    pub(crate) fn take(&mut self, request: Option<&Request>) {
        let Some(request) = request else {
            self.requests = None;
            return self.refuse();
        };
        // The bus sends each message to its sender, too.
        if self.timetable.door.client.is_own(request) {
            return;
        }
        if request.topic() == READY {
            return self.another.cancel();
        }
        if let Err(why) = self.carry_out(request) {
            tracing::warn!(topic = request.topic(), why, "a request of a skill was not taken");
        }
    }

    fn refuse(&self) {
        if self.timetable.door.shutdown.is_cancelled() {
            return;
        }
        tracing::error!("mycroft.scheduler is not answered: {ANOTHER}");
        self.suspend(Some(ANOTHER));
        let data = json!({"why": ANOTHER, "topics": "mycroft.scheduler"});
        self.timetable
            .publish("schedules_suspended", Severity::Error, data);
    }

    /// Sends no messages for this reason, or sends them again.
    fn suspend(&self, why: Option<&'static str>) {
        self.timetable.table.lock().hold_messages(why);
    }

    fn carry_out(&self, request: &Request) -> Result<(), String> {
        if let Some(error) = request.refused() {
            return Err(error.to_owned());
        }
        let data = request.data();
        let client = &self.timetable.door.client;
        match request.topic() {
            ADD => {
                let schedule = ovos_events::read(data, request.context(), request.session_id(), now())?;
                let mut table = self.timetable.table.lock();
                table.replace(schedule, &Local).map_err(|full| full.to_string())?;
                self.timetable.keep(&table)
            }
            REMOVE => {
                let mut table = self.timetable.table.lock();
                match table.cancel(&id_of(ovos_events::named(data, "event")?)) {
                    Some(_) => self.timetable.keep(&table),
                    None => Ok(()),
                }
            }
            UPDATE => {
                let mut table = self.timetable.table.lock();
                let id = id_of(ovos_events::named(data, "event")?);
                match table.change_message(&id, ovos_events::payload(data)?) {
                    true => self.timetable.keep(&table),
                    false => Ok(()),
                }
            }
            GET => {
                let name = ovos_events::named(data, "name")?;
                let entry = self.entries().shift_remove(name);
                let topic = format!("{STATUS_PREFIX}{name}");
                let answer = json!({"event": name, "schedule": entry});
                client
                    .reply(request, &topic, &answer)
                    .map_err(|error| error.to_string())
            }
            LIST => {
                let answer = json!({ "scheduled_events": self.listed() });
                client.answer(request, &answer).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// The messages, each as the topics show it.
    fn entries(&self) -> Object {
        let table = self.timetable.table.lock();
        let messages = table.all().filter_map(|schedule| match &schedule.what {
            What::Message(message) => Some((message.event.clone(), ovos_events::entry(schedule, message))),
            _ => None,
        });
        messages.collect()
    }

    fn listed(&self) -> Object {
        let entries = self.entries().into_iter();
        entries.map(|(name, entry)| (name, json!([entry]))).collect()
    }
}

/// Whether a scheduler answers.
async fn is_there(client: &Client) -> bool {
    let answer = client.ask(OVOS_SCHEDULER, &EmptyRequest {}, PROBE_WAIT);
    answer.await.is_ok()
}
