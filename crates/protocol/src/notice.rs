//! What a toolbox tells the service. Read [`Notice`].

use ovos_toolbox_wire::{Conclusion, Content, Event, Failure, Manifest, Plan, Progress, ToolList};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Raw};

/// Who a program is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// Its own version, for people.
    #[serde(default)]
    pub version: String,
    /// What it can do beyond that version; the service ignores what it does not know.
    #[serde(default)]
    pub features: Vec<String>,
    /// The manifest of its toolbox. Missing only beside a `refusal`; another number than one needs the feature `toolboxes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolboxes: Vec<Raw<Manifest>>,
    /// Why the program can be no toolbox, for people: the reason is shown as that of the toolbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// The optional functions that a toolbox has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Functions {
    /// It plans calls; without it no `plan` is sent.
    #[serde(default)]
    pub plan: bool,
    /// It makes results from reports; without it no `conclude` is sent.
    #[serde(default)]
    pub conclude: bool,
    /// It takes bus messages; without it no `message` is sent.
    #[serde(default)]
    pub message: bool,
    /// It ends motion; without it its tools of effect `motion`, `safe` and `stop` are left out.
    #[serde(default)]
    pub halt: bool,
    /// A fresh process of it can bring its hardware to rest.
    #[serde(default)]
    pub safe_stop: bool,
}

/// What was dropped or went wrong at the boundary, since the toolbox was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counts {
    /// Completions of runs that had already ended or were given up.
    pub late_completions: u64,
    /// Completions of runs that never were.
    pub unknown_completions: u64,
    /// Starts that were dropped because an emergency stop came after they were planned.
    pub stale_starts: u64,
    /// Log lines past the rate limit.
    pub dropped_logs: u64,
    /// Progress past the rate limit, unreadable, or of no run.
    pub dropped_progress: u64,
    /// Events past the rate limit or unreadable.
    pub dropped_events: u64,
    /// Bus messages that a newer one pushed out before the toolbox read them.
    pub dropped_messages: u64,
    /// Requests that were refused.
    pub refused_requests: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            late_completions: self.late_completions.saturating_add(other.late_completions),
            unknown_completions: self.unknown_completions.saturating_add(other.unknown_completions),
            stale_starts: self.stale_starts.saturating_add(other.stale_starts),
            dropped_logs: self.dropped_logs.saturating_add(other.dropped_logs),
            dropped_progress: self.dropped_progress.saturating_add(other.dropped_progress),
            dropped_events: self.dropped_events.saturating_add(other.dropped_events),
            dropped_messages: self.dropped_messages.saturating_add(other.dropped_messages),
            refused_requests: self.refused_requests.saturating_add(other.refused_requests),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Done, with this output.
    Output(Raw<Value>),
    /// Not done, or refused.
    Error(Raw<Failure>),
    /// It ended as it was asked to, or never began.
    Cancelled,
    /// The toolbox closed while it ran.
    Lost(Raw<Failure>),
}

/// What a toolbox tells the service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "notice", content = "body", rename_all = "snake_case")]
#[schemars(extend("properties" = {"toolbox": {
    "type": "string", "description": "The toolbox that it is about, where a program has several; between `notice` and `body`."
}}))]
pub enum Notice {
    /// Who the program is. Data lane, the first notice, once, unasked. Its shape is the same in every version: the service
    /// decides by it whether it can read anything else.
    Hello(Hello),
    /// Answers `open`. Data lane.
    Opened {
        /// The order's.
        seq: u64,
        /// The functions that the toolbox has.
        answer: Answer<Functions>,
    },
    /// Answers `tools`. Data lane.
    Tools {
        /// The order's.
        seq: u64,
        /// The tools.
        answer: Answer<Raw<ToolList>>,
    },
    /// Answers `plan`. Data lane.
    Planned {
        /// The order's.
        seq: u64,
        /// The plan; `null` where the toolbox has none for this tool.
        answer: Answer<Raw<Option<Plan>>>,
    },
    /// Answers `conclude`. Data lane.
    Concluded {
        /// The order's.
        seq: u64,
        /// The result; `null` where the toolbox leaves it to the service.
        answer: Answer<Raw<Option<Conclusion>>>,
    },
    /// Answers `may_close`. Data lane.
    Closable {
        /// The order's.
        seq: u64,
        /// The error says why not now.
        answer: Answer<Raw<()>>,
    },
    /// Answers `close`. Data lane, the last notice.
    Closed {
        /// The order's.
        seq: u64,
        /// Whether the toolbox closed within `close_ms`.
        in_time: bool,
    },
    /// A run has ended. Data lane, once for each `start`.
    Ended {
        /// The run.
        run: u64,
        /// How.
        end: RunEnd,
        /// Pictures and other media beside the output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Raw<Vec<Content>>>,
    },
    /// Progress of a run whose start asked for it. Data lane; may be lost.
    Progress {
        /// The run.
        run: u64,
        /// How far it is.
        progress: Raw<Progress>,
    },
    /// Something happened that no order asked for. Data lane.
    Event(Raw<Event>),
    /// A question to the bus, answered by `response`. Data lane.
    Request {
        /// Names the request; used once.
        request: u64,
        /// One of the manifest's `requests`.
        topic: String,
        /// The message's data; an object.
        data: Raw<Value>,
        /// How long the toolbox waits for the answer.
        timeout_ms: u64,
    },
    /// A line for the log. Data lane; may be lost.
    Log {
        /// 1 error, 2 warning, 3 info, 4 debug, 5 trace; others are shown as info.
        level: u32,
        /// The part of the toolbox that it comes from; may be empty.
        #[serde(default)]
        target: String,
        /// The line.
        message: String,
    },
    /// What was dropped so far; sent when that changed. Data lane.
    Counts(Counts),
    /// Answers `halt`: the commands that end motion are sent, or could not be. Control lane.
    Halted {
        /// The order's.
        seq: u64,
        /// The error says what was not reached.
        answer: Answer<()>,
    },
    /// Answers `resume`. Control lane.
    Resumed {
        /// The order's.
        seq: u64,
        /// The error says why the latch stays.
        answer: Answer<()>,
    },
    /// Answers `beat`. Control lane.
    Beat {
        /// The order's.
        seq: u64,
    },
    /// A notice of a newer program, which is passed over.
    #[serde(other, deserialize_with = "crate::unknown::pass_over")]
    #[schemars(skip)]
    Unknown,
}
