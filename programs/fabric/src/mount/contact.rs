//! The contact with the host: signs of life go out and come in, and the service is told what follows. Read [`Shared::beats`], then
//! [`Shared::hear`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Event, Severity};
use protocol::Answer;
use serde_json::json;

use super::line::Way;
use super::questions::QUESTION;
use super::shared::{Shared, failure_of};
use super::stops::tell;
use super::view::News;
use crate::clock::{self, HostClock};
use crate::messages::{self, Ask, BEAT_MS, Beat, LEASE_MS, Pulse, Right, Versions};

/// How often what is on its way is looked at.
const LOOK: Duration = Duration::from_millis(20);

impl Shared {
    /// Sends the signs of life. May wait for the network to connect.
    pub(super) fn beats(self: &Arc<Self>) {
        while !self.is_closed.load(Ordering::SeqCst) {
            let began = Instant::now();
            match self.line.open() {
                Ok(()) => self.beat(),
                Err(why) => self.complain(&why),
            }
            thread::sleep(Duration::from_millis(BEAT_MS).saturating_sub(began.elapsed()));
        }
    }

    pub(super) fn beat(self: &Arc<Self>) {
        let sent = clock::now_ms();
        let (open, cancelled, started) = {
            let runs = self.runs.lock();
            let (open, cancelled) = runs.claimed();
            (open, cancelled, runs.started)
        };
        let (lease, boot, after) = {
            let view = self.view.lock();
            (view.lease_until(sent), view.boot.clone(), view.after)
        };
        let asked = lease.is_some();
        let ask = Ask::Beat(Beat {
            toolbox: self.toolbox.clone(),
            mount: self.mount.clone(),
            lease,
            boot,
            after,
            started,
            open,
            cancelled,
        });
        let this = self.clone();
        let limit = Duration::from_secs(5);
        self.line.ask(
            Right::Read,
            Way::Urgent,
            limit,
            &ask,
            move |answer: Option<Answer<Pulse>>| match answer {
                Some(Answer::Ok(pulse)) => this.hear(&pulse, sent, asked),
                Some(refused) => this.lose(&failure_of(refused).message),
                None => {}
            },
        );
    }

    /// The host is out of reach, or refuses this machine.
    pub(super) fn lose(&self, why: &str) {
        let halts = {
            let mut view = self.view.lock();
            view.lose();
            view.halts_on_loss
        };
        self.is_doubtful.store(true, Ordering::SeqCst);
        let (moved, lost) = {
            let mut runs = self.runs.lock();
            let moved = runs.need_commander();
            (moved, runs.lose_all(clock::now_ms(), &self.lost(why)))
        };
        self.note_ends(lost, why);
        // Where the host only halts, and for what it lets go on, a stop from here would be one more than happens there.
        if moved && !halts {
            let reason = format!("{why} during motion; the host stops the machine by itself");
            self.event("latched", Severity::Error, json!({ "reason": reason }));
        }
        self.complain(why);
    }

    /// Takes a sign of life of the host; `asked` is whether the beat asked for the lease.
    pub(super) fn hear(self: &Arc<Self>, pulse: &Pulse, sent: u64, asked: bool) {
        let received = clock::now_ms();
        let clock = HostClock {
            host: pulse.clock,
            sent,
            received,
        };
        let (news, reached, settled, hastens) = {
            let mut view = self.view.lock();
            let news = view.hear(pulse, clock, asked);
            let hastens = view.hastens(clock, asked);
            (news, view.reached, view.is_settled(received), hastens)
        };
        for one in news {
            self.tell(one, received);
        }
        if !clock.is_timely() && !reached {
            self.complain(&format!("its answers take longer than {LEASE_MS} ms"));
        }
        if self.is_unknown.swap(false, Ordering::SeqCst) {
            self.greet();
        }
        if settled {
            self.ask_waiting();
        }
        if hastens {
            // What the service starts next may need the lease.
            self.beat();
        }
        self.runs.lock().end_lost(Some(sent), None, received);
    }

    /// Tells the service what follows.
    pub(super) fn tell(self: &Arc<Self>, news: News, now: u64) {
        let host = &self.line.host;
        match news {
            News::Reached => {
                self.trouble.lock().clear();
                self.is_unknown.store(true, Ordering::SeqCst);
                self.event(
                    "backend",
                    Severity::Info,
                    json!({ "state": "ready", "reason": format!("host `{host}` is reached") }),
                );
                let backends: Vec<Event> = self.backends.lock().values().cloned().collect();
                for backend in backends {
                    self.link.event(&backend);
                }
                self.answer_lists();
            }
            News::Lost(limit) => self.lose(&format!("host `{host}` was not heard for {limit} ms")),
            News::NewBoot => {
                self.is_doubtful.store(true, Ordering::SeqCst);
                let text = format!("host `{host}` was started anew");
                let lost = self.runs.lock().lose_all(now, &self.lost(&text));
                self.note_ends(lost, &text);
                self.backends.lock().clear();
                self.is_unknown.store(true, Ordering::SeqCst);
            }
            News::Latched(reason) => {
                let reason = format!("on host `{host}`: {reason}");
                self.event("latched", Severity::Error, json!({ "reason": reason }));
            }
            News::ToolsChanged => {
                let tell = {
                    let mut lists = self.lists.lock();
                    lists.last = None;
                    lists.was_asked && lists.waiting.is_empty()
                };
                if tell {
                    self.event("tools_changed", Severity::Info, json!({}));
                }
            }
            News::Event(event) => self.pass_on(event),
        }
    }

    /// Passes on an event of the toolbox; what is said of its latch and its tools otherwise is left out.
    pub(super) fn pass_on(&self, event: Event) {
        if event.kind == "backend" {
            let unit = event.data.as_ref().and_then(|data| data.get("unit")?.as_str());
            self.backends
                .lock()
                .insert(unit.unwrap_or_default().to_owned(), event.clone());
        }
        if !["latched", "tools_changed"].contains(&event.kind.as_str()) {
            self.link.event(&event);
        }
    }

    /// Asks the host who it is, and what this machine may do there.
    pub(super) fn greet(self: &Arc<Self>) {
        let this = self.clone();
        let ask = Ask::Hello(Versions::own());
        self.line.ask(
            Right::Read,
            Way::Urgent,
            QUESTION,
            &ask,
            move |answer: Option<Answer<messages::Hello>>| {
                let name = &this.line.identity.name;
                match answer {
                    Some(Answer::Ok(hello)) => {
                        if let Err(why) = Versions::own().agree(name, &hello.versions, &this.line.host) {
                            this.complain(&why);
                        }
                    }
                    Some(refused) => this.complain(&failure_of(refused).message),
                    // Lost on the way; asked again after the next beat.
                    None => this.is_unknown.store(true, Ordering::SeqCst),
                }
            },
        );
    }

    /// Says once why there is no contact.
    pub(super) fn complain(&self, why: &str) {
        let mut trouble = self.trouble.lock();
        if *trouble == why {
            return;
        }
        *trouble = why.to_owned();
        drop(trouble);
        self.event(
            "backend",
            Severity::Warning,
            json!({ "state": "unreachable", "reason": why }),
        );
    }

    pub(super) fn event(&self, kind: &str, severity: Severity, data: serde_json::Value) {
        self.link.event(&Event {
            kind: kind.to_owned(),
            severity,
            data: Some(data),
        });
    }

    /// Looks after what is on its way. Waits for nothing but time.
    pub(super) fn watch(self: &Arc<Self>) {
        _ = self.watcher.set(thread::current());
        while !self.is_closed.load(Ordering::SeqCst) {
            let again = self.stops.lock().again_at();
            // Woken where a stop is sent: from then on it is looked after.
            thread::park_timeout(again.map_or(LOOK, |at| at.duration_since(Instant::now()).min(LOOK)));
            let (now, at) = (clock::now_ms(), Instant::now());
            let lost = self.view.lock().look(now);
            if let Some(lost) = lost {
                self.tell(lost, now);
            }
            let is_back = self.view.lock().reached && self.is_doubtful.swap(false, Ordering::SeqCst);
            if is_back {
                self.line.check_again();
            }
            let lost_at = {
                let view = self.view.lock();
                view.clock
                    .filter(|_| !view.reached)
                    .map(|clock| clock.sent + LEASE_MS)
            };
            self.runs.lock().end_lost(None, lost_at, now);
            self.give_up_lists(at);
            self.give_up_questions(at);
            let overdue = self.stops.lock().overdue(at);
            tell(overdue, &Err(self.not_reached().into()));
            let again = self.stops.lock().take_again(at);
            if let Some(stop) = again {
                self.send_stop(stop);
            }
        }
    }
}
