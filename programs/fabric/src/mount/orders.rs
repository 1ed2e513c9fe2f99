//! What the service asks of the toolbox, as it is asked of the host. Read the [`Toolbox`] of [`Mount`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Conclusion, Failure, FailureKind, Object, Plan, Report, Start, ToolList};
use program::{Halt, Later, Refusal, Reply, Run, Toolbox};
use protocol::{Answer, Functions, Raw};

use super::line::Way;
use super::questions::QUESTION;
use super::shared::{Mount, Shared, failure_of};
use super::stops::{ServiceStop, tell};
use crate::clock;
use crate::messages::{Ask, ResumeAnswer, Right, START_AGE_MS, StartAsk, StopAnswer, StopView};

/// How long an order on the control lane may take until it is answered; the service waits 200 ms for a halt.
const ORDER: Duration = Duration::from_millis(120);

/// How long a run may be under way; its own deadline is the host's to keep.
const RUN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Toolbox for Mount {
    fn begin(&self, opened: Reply<Functions>) {
        // What the toolbox on the host has is not known before it is reached; it answers `null` where it has none.
        opened(Ok(Functions {
            plan: true,
            conclude: true,
            message: false,
            halt: true,
            safe_stop: false,
        }));
    }

    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        self.0.ask_list(reply);
    }

    fn plan(&self, tool: String, args: Raw<Object>, reply: Reply<Raw<Option<Plan>>>) {
        let toolbox = self.0.toolbox.clone();
        self.0.question(Ask::Plan { toolbox, tool, args }, reply);
    }

    fn conclude(
        &self,
        tool: String,
        args: Raw<Object>,
        report: Raw<Report>,
        reply: Reply<Raw<Option<Conclusion>>>,
    ) {
        let toolbox = self.0.toolbox.clone();
        let ask = Ask::Conclude {
            toolbox,
            tool,
            args,
            report,
        };
        self.0.question(ask, reply);
    }

    fn start(&self, run: Run, start: Raw<Start>) {
        let shared = &self.0;
        let start: Start = match serde_json::from_str(start.text()) {
            Ok(start) => start,
            Err(error) => return run.fail(&Failure::new(FailureKind::ValueError, error.to_string())),
        };
        let now = clock::now_ms();
        let known = {
            let view = shared.view.lock();
            let reached = view.clock.filter(|_| view.reached);
            reached
                .zip(view.boot.clone())
                .map(|(clock, boot)| (clock, boot, view.epoch, view.held))
        };
        let Some((clock, boot, epoch, held)) = known else {
            return run.fail(&shared.not_reached());
        };
        let (number, steps) = (run.number(), run.progress());
        let folder = start.call.content_dir.clone();
        let right = if held { Right::Command } else { Right::Read };
        let effect = start.action.effect;
        let name = format!("call {} action {}", start.call.call_id, start.action.id);
        let ask = Ask::Start(Box::new(StartAsk {
            toolbox: shared.toolbox.clone(),
            mount: shared.mount.clone(),
            run: number,
            boot,
            epoch,
            until: clock.at(now) + START_AGE_MS,
            progress: steps.is_some(),
            start,
        }));
        if run.is_void() {
            let text = "an emergency stop came after it was planned, so it was not begun";
            return run.fail(&Failure::new(FailureKind::EmergencyStop, text));
        }
        shared.runs.lock().begin(run, effect, name);
        let this = shared.clone();
        shared
            .line
            .ask_many(right, Way::Data, RUN, &ask, move |word| match word {
                Some(word) => {
                    if let Ok(word) = serde_json::from_slice(word) {
                        this.finish(number, word, steps.as_ref(), folder.as_deref());
                    }
                }
                None => {
                    let text = format!("the line to host `{}` was lost", this.line.host);
                    let lost = this.lost(&text);
                    let lost = this.runs.lock().lose(number, clock::now_ms(), &lost);
                    this.note_ends(lost, &text);
                }
            });
    }

    fn cancel(&self, number: u64) -> Option<Later> {
        let shared = &self.0;
        // Each beat says it again, until the run has ended.
        shared.runs.lock().cancel(number);
        let ask = Ask::Cancel {
            toolbox: shared.toolbox.clone(),
            mount: shared.mount.clone(),
            run: number,
        };
        shared
            .line
            .ask(Right::Read, Way::Urgent, ORDER, &ask, |_: Option<Answer<()>>| {});
        None
    }

    fn halt(&self, halt: Halt, reply: Reply<()>) {
        let shared = &self.0;
        if halt.emergency {
            let is_idle = shared.is_left.load(Ordering::SeqCst) && !shared.runs.lock().are_moving();
            if is_idle {
                return reply(Ok(()));
            }
            let mirrors = shared.view.lock().take_echo(clock::now_ms());
            let stop = shared.stops.lock().take(reply, mirrors, Instant::now());
            shared.send_stop(stop);
            if let Some(watcher) = shared.watcher.get() {
                watcher.unpark();
            }
            return;
        }
        let this = shared.clone();
        let ask = Ask::Halt {
            toolbox: shared.toolbox.clone(),
            subsystems: halt.subsystems,
        };
        shared.line.ask(
            Right::Read,
            Way::Urgent,
            ORDER,
            &ask,
            move |answer: Option<Answer<()>>| {
                reply(match answer {
                    Some(Answer::Ok(())) => Ok(()),
                    Some(refused) => Err(failure_of(refused).into()),
                    None => Err(this.not_reached().into()),
                });
            },
        );
    }

    fn resume(&self, reply: Reply<()>) {
        let shared = &self.0;
        let on_its_way = shared.stops.lock().unanswered().is_some();
        let (reached, stop, newer) = {
            let mut view = shared.view.lock();
            let newer = view.take_newer_stop();
            (view.reached, view.stop.clone(), newer)
        };
        if !reached || on_its_way {
            let why = shared.not_reached();
            let text = format!(
                "{}; the stop holds on that host, too: resume again when it is reached",
                why.message
            );
            return reply(Err(Failure::new(FailureKind::EmergencyStop, text).into()));
        }
        if let Some(StopView { stop_id, reason }) = newer {
            let text = format!(
                "{stop_id} ({reason}) came meanwhile on host `{}`; resume again",
                shared.line.host
            );
            return reply(Err(Failure::new(FailureKind::EmergencyStop, text).into()));
        }
        let this = shared.clone();
        let ask = Ask::Resume {
            toolbox: shared.toolbox.clone(),
            // Also asked where no stop is known: there may be one that was not heard of yet.
            stop_id: stop.map(|stop| stop.stop_id),
        };
        let on_answer = move |answer: Option<Answer<ResumeAnswer>>| {
            reply(match answer {
                Some(Answer::Ok(done)) => {
                    this.view.lock().resumed(&done);
                    Ok(())
                }
                Some(refused) => Err(failure_of(refused).into()),
                None => {
                    let text = format!(
                        "host `{host}` did not answer. If it is reachable (`ovos-tools fabric doctor`), `{name}` lacks the role operator \
                         there: run `ovos-tools fabric allow {name} --role operator` on that host",
                        host = this.line.host,
                        name = this.line.identity.name
                    );
                    Err(Refusal::from(Failure::new(FailureKind::EmergencyStop, text)))
                }
            });
        };
        shared
            .line
            .ask(Right::Resume, Way::Urgent, QUESTION, &ask, on_answer);
    }

    fn lost_service(&self) {
        self.0.is_left.store(true, Ordering::SeqCst);
    }

    fn close(&self, closed: Box<dyn FnOnce(bool) + Send>) {
        let shared = self.0.clone();
        shared.is_closed.store(true, Ordering::SeqCst);
        let ask = Ask::Leave {
            toolbox: shared.toolbox.clone(),
            mount: shared.mount.clone(),
        };
        let (sender, answered) = std::sync::mpsc::channel();
        shared.line.ask(
            Right::Read,
            Way::Urgent,
            ORDER,
            &ask,
            move |_: Option<Answer<()>>| {
                _ = sender.send(());
            },
        );
        let closing = thread::Builder::new().name("close".to_owned()).spawn(move || {
            _ = answered.recv_timeout(ORDER);
            closed(true);
        });
        if let Err(error) = closing {
            self.0.complain(&format!("close: {error}"));
        }
    }
}

impl Shared {
    /// Sends a stop. Never waits.
    pub(super) fn send_stop(self: &Arc<Self>, stop: ServiceStop) {
        let ServiceStop { id, mirrors } = stop;
        let this = self.clone();
        let reason = "an emergency stop of its service".to_owned();
        let ask = Ask::Stop {
            toolbox: self.toolbox.clone(),
            id: id.clone(),
            reason: reason.clone(),
            mirrors,
        };
        let on_answer = move |answer: Option<Answer<StopAnswer>>| match answer {
            Some(Answer::Ok(done)) => {
                // Each time that it was sent has an answer. A late one must not stop again what was resumed since.
                let Some(waiting) = this.stops.lock().answered(&id) else {
                    return;
                };
                this.view.lock().stopped(&done, &reason);
                let result = match done.unreached {
                    None => Ok(()),
                    Some(why) => {
                        let text = format!("on host `{}`: {why}", this.line.host);
                        Err(Failure::new(FailureKind::ToolboxError, text).into())
                    }
                };
                tell(waiting, &result);
            }
            Some(refused) => {
                // Sent again: the host may let this machine in later, and a stop is not given up.
                this.complain(&failure_of(refused).message);
            }
            None => {}
        };
        self.line
            .ask(Right::Read, Way::Urgent, Duration::from_secs(1), &ask, on_answer);
    }
}
