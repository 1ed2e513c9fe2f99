//! What the service tells a toolbox. Read [`Order`].

use ovos_toolbox_wire::{Object, Report, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Raw};

/// What a program needs to open its toolbox.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Opening {
    /// The number of this order, which `opened` repeats.
    pub seq: u64,
    /// Which copy of the toolbox this is, counted from 1.
    pub generation: u64,
    /// The toolbox's section of the configuration.
    pub config: Raw<Object>,
    /// The newest emergency stop: starts with an older `stop_epoch` never begin.
    pub stop_epoch: u64,
    /// Largest result, plan or tool list, in bytes.
    pub max_result_bytes: usize,
    /// Starts and questions that may wait for the toolbox; one more is refused with a `BusyError`.
    pub max_queued: usize,
    /// Bus messages that may wait; beyond that the oldest is dropped.
    pub max_messages: usize,
    /// How many requests of the toolbox (`request`) may be unanswered at once.
    pub max_requests: usize,
    /// How long opening may take, and listing the tools.
    pub open_ms: u64,
    /// How long closing may take.
    pub close_ms: u64,
    /// How long the program waits for a word of the service while something moves.
    pub silence_ms: u64,
}

/// What the service tells a toolbox.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "order", content = "body", rename_all = "snake_case")]
#[schemars(extend("properties" = {"toolbox": {
    "type": "string", "description": "The toolbox that it is about, where a program has several; between `order` and `body`."
}}))]
pub enum Order {
    /// Opens the toolbox; answered by `opened`. Data lane, the first order, once.
    Open(Opening),
    /// Asks for the tools; answered by `tools`. Data lane.
    Tools {
        /// Names this order.
        seq: u64,
    },
    /// Asks for the actions of a call; answered by `planned`. Data lane.
    Plan {
        /// Names this order.
        seq: u64,
        /// The tool that was called.
        tool: String,
        /// Its prepared arguments.
        args: Raw<Object>,
    },
    /// Starts an action; answered by `ended` when it has ended. Data lane.
    Start {
        /// Names the run of the action; used once.
        run: u64,
        /// Whether the caller wants progress.
        #[serde(default)]
        progress: bool,
        /// The call, the action and its inputs.
        start: Raw<Start>,
    },
    /// Asks for the result of a call; answered by `concluded`. Data lane.
    Conclude {
        /// Names this order.
        seq: u64,
        /// The tool that was called.
        tool: String,
        /// Its prepared arguments.
        args: Raw<Object>,
        /// What happened to each action.
        report: Raw<Report>,
    },
    /// A bus message that the toolbox subscribed to. Data lane; may be lost.
    Message {
        /// The message's type.
        topic: String,
        /// The message's data.
        data: Raw<Value>,
    },
    /// The answer to a `request` of the toolbox. Data lane.
    Response {
        /// The request's number.
        request: u64,
        /// The data of the answer, or why there is none.
        answer: Answer<Raw<Value>>,
    },
    /// Asks whether the toolbox may be closed now; answered by `closable`. Data lane.
    MayClose {
        /// Names this order.
        seq: u64,
    },
    /// Closes the toolbox and ends the program; answered by `closed`. Data lane, the last order. If it names a toolbox, only that
    /// one is closed and the program goes on.
    Close {
        /// Names this order.
        seq: u64,
    },
    /// Asks a run to end. A run that has not begun never does. Control lane.
    Cancel {
        /// The run.
        run: u64,
        /// How many starts were sent before: the control lane may overtake the start that this is about.
        starts: u64,
    },
    /// No caller waits for this run any longer: if it has not begun, it never does. One that has begun goes on. Control lane.
    GiveUp {
        /// The run.
        run: u64,
        /// As in `cancel`.
        starts: u64,
    },
    /// Ends motion; answered by `halted`. Control lane.
    Halt {
        /// Names this order.
        seq: u64,
        /// What to halt; `["all"]` for everything.
        subsystems: Vec<String>,
        /// Whether this is an emergency stop; otherwise the machine holds its position.
        emergency: bool,
        /// In an emergency: starts with an older `stop_epoch` never begin from now on.
        stop_epoch: u64,
    },
    /// Asks whether the latch of an emergency stop may be lifted; answered by `resumed`. Control lane.
    Resume {
        /// Names this order.
        seq: u64,
    },
    /// Makes a newer emergency stop known: starts with an older `stop_epoch` never begin. Control lane.
    Epoch {
        /// The stop's number.
        stop_epoch: u64,
    },
    /// Asks for a sign of life; answered by `beat`. Control lane.
    Beat {
        /// Names this order.
        seq: u64,
    },
    /// An order of a newer service, which is ignored.
    #[serde(other, deserialize_with = "crate::unknown::pass_over")]
    #[schemars(skip)]
    Unknown,
}
