//! The queue of the one thread that makes a toolbox's serialised calls.
//!
//! Owns the order: starts and questions first come first served, then answers to requests, then bus messages, of which
//! only the newest are kept. Never calls the toolbox itself; `host_thread` runs the thread. Read [`HostQueue`] first.

use std::collections::VecDeque;

use ovos_toolbox_abi::Status;
use program::{Counters, Refusal};

use crate::table::Instance;
use crate::wake_lock::WakeLock;
use crate::watchdog::ToolboxFunction;

/// Asks the toolbox a question and passes on the answer. Called with the instance, or with the reason why the toolbox
/// is not asked.
pub(crate) type Question = Box<dyn FnOnce(Result<&Instance, Refusal>) + Send>;

/// What the thread does next.
pub(crate) enum Job {
    Start {
        run: u64,
        json: String,
    },
    Ask {
        calling: ToolboxFunction,
        question: Question,
    },
    Response {
        request: u64,
        status: Status,
        json: String,
    },
    Message {
        topic: String,
        json: String,
    },
    Close,
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Closed,
}

/// Work for the host thread of one toolbox.
pub(crate) struct HostQueue {
    state: WakeLock<State>,
    /// Enough for every action of the largest useful wave. Beyond it the toolbox counts as busy, so that the queue
    /// cannot grow without a limit.
    max_jobs: usize,
    /// Beyond it the oldest message is dropped: a toolbox that cannot keep up with a topic wants the newest state, not
    /// the history.
    max_messages: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Bounded by the requests under way.
    responses: VecDeque<Job>,
    messages: VecDeque<Job>,
    closing: bool,
}

impl HostQueue {
    pub(crate) fn new(max_jobs: usize, max_messages: usize) -> Self {
        Self {
            state: WakeLock::default(),
            max_jobs,
            max_messages,
        }
    }

    /// Queues a start or a question, or gives it back.
    pub(crate) fn push(&self, job: Job) -> Result<(), (Refused, Job)> {
        let mut state = self.state.lock();
        if state.closing {
            return Err((Refused::Closed, job));
        }
        if state.jobs.len() >= self.max_jobs {
            return Err((Refused::Full, job));
        }
        state.jobs.push_back(job);
        state.wake();
        Ok(())
    }

    /// Queues the answer to a request.
    pub(crate) fn push_response(&self, request: u64, status: Status, json: String) {
        let mut state = self.state.lock();
        if !state.closing {
            state.responses.push_back(Job::Response {
                request,
                status,
                json,
            });
            state.wake();
        }
    }

    /// Queues a bus message; drops the oldest one if the queue is full.
    pub(crate) fn push_message(&self, topic: String, json: String, counters: &Counters) {
        let mut state = self.state.lock();
        if state.closing {
            return;
        }
        if state.messages.len() >= self.max_messages {
            state.messages.pop_front();
            counters.add(|counts| &mut counts.dropped_messages);
        }
        state.messages.push_back(Job::Message { topic, json });
        state.wake();
    }

    /// Takes no more work, and gives back the queued starts and questions. The call that is under way finishes.
    pub(crate) fn close(&self) -> VecDeque<Job> {
        let mut state = self.state.lock();
        state.closing = true;
        let jobs = std::mem::take(&mut state.jobs);
        state.responses.clear();
        state.messages.clear();
        state.wake();
        jobs
    }

    /// Waits for work.
    pub(crate) fn next(&self) -> Job {
        let mut state = self.state.lock();
        loop {
            if state.closing {
                return Job::Close;
            }
            let next = state.jobs.pop_front();
            let next = next.or_else(|| state.responses.pop_front());
            if let Some(job) = next.or_else(|| state.messages.pop_front()) {
                return job;
            }
            state = state.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(job: Job) -> String {
        match job {
            Job::Start { run, .. } => format!("start {run}"),
            Job::Ask { .. } => "ask".to_owned(),
            Job::Response { request, .. } => format!("response {request}"),
            Job::Message { json, .. } => format!("message {json}"),
            Job::Close => "close".to_owned(),
        }
    }

    #[test]
    fn messages_never_delay_a_start_and_the_newest_win() {
        let (queue, counters) = (HostQueue::new(2, 3), Counters::default());
        for number in 1..=5 {
            queue.push_message("t".into(), number.to_string(), &counters);
        }
        queue.push_response(9, 0, String::new());
        let start = |run| Job::Start {
            run,
            json: String::new(),
        };
        let push = |run| queue.push(start(run)).map_err(|(refused, _)| refused);
        assert_eq!((push(1), push(2), push(3)), (Ok(()), Ok(()), Err(Refused::Full)));
        let order: Vec<String> = (0..6).map(|_| name(queue.next())).collect();
        assert_eq!(
            order,
            [
                "start 1",
                "start 2",
                "response 9",
                "message 3",
                "message 4",
                "message 5"
            ]
        );
        assert_eq!(counters.read().dropped_messages, 2);
        assert_eq!(push(4), Ok(()));
        let given_back: Vec<String> = queue.close().into_iter().map(name).collect();
        assert_eq!(given_back, ["start 4"]);
        assert_eq!(
            (push(5), name(queue.next())),
            (Err(Refused::Closed), "close".to_owned())
        );
    }
}
