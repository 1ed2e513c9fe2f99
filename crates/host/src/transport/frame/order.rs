//! What the service tells a toolbox's process. Read [`Order`].

use ovos_toolbox_wire::{Failure, Object, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Frame, FrameError};

/// What the child needs to open its toolbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) generation: u64,
    /// The toolbox's section, as JSON text.
    pub(crate) config: String,
    pub(crate) stop_epoch: u64,
    pub(crate) max_result_bytes: usize,
    pub(crate) max_queued: usize,
    pub(crate) max_messages: usize,
    pub(crate) max_requests: usize,
    pub(crate) open_ms: u64,
    pub(crate) close_ms: u64,
    /// How long the child waits for a word of the service while something moves.
    pub(crate) silence_ms: u64,
}

/// What a halt says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HaltOrder {
    pub(crate) subsystems: Vec<String>,
    pub(crate) emergency: bool,
    pub(crate) stop_epoch: u64,
}

#[derive(Serialize, Deserialize)]
struct PlanBody {
    tool: String,
    args: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    report: Option<Report>,
}

#[derive(Serialize, Deserialize)]
struct MessageBody {
    topic: String,
    json: String,
}

/// From the service to the child.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    // --- data socket
    Open(Opening),
    /// `json` is a `Start`.
    Start {
        run: u64,
        progress: bool,
        json: String,
    },
    Tools {
        ask: u64,
    },
    MayClose {
        ask: u64,
    },
    Plan {
        ask: u64,
        tool: String,
        args: Object,
    },
    Conclude {
        ask: u64,
        tool: String,
        args: Object,
        report: Box<Report>,
    },
    Message {
        topic: String,
        json: String,
    },
    Response {
        request: u64,
        answer: Result<Value, Failure>,
    },
    Close,
    // --- control socket
    /// `starts`: how many starts were sent before. The control socket overtakes the data socket, so a cancel may come
    /// before the start it is for.
    Cancel {
        run: u64,
        starts: u64,
    },
    Halt {
        id: u64,
        halt: HaltOrder,
    },
    Resume {
        id: u64,
    },
    Epoch(u64),
    Heartbeat(u64),
    /// The caller no longer waits for this run: if it has not begun, it never does. `starts` as in `Cancel`.
    GiveUp {
        run: u64,
        starts: u64,
    },
    /// Of a newer service; to be passed over.
    Unknown(u16),
}

impl Order {
    pub(crate) fn frame(&self) -> Frame {
        match self {
            Self::Open(opening) => Frame::json(101, 0, 0, opening),
            Self::Start { run, progress, json } => {
                Frame::new(102, u16::from(*progress), *run, json.clone().into_bytes())
            }
            Self::Tools { ask } => Frame::empty(103, 0, *ask),
            Self::MayClose { ask } => Frame::empty(104, 0, *ask),
            Self::Plan { ask, tool, args } => {
                let body = PlanBody {
                    tool: tool.clone(),
                    args: args.clone(),
                    report: None,
                };
                Frame::json(105, 0, *ask, &body)
            }
            Self::Conclude {
                ask,
                tool,
                args,
                report,
            } => {
                let body = PlanBody {
                    tool: tool.clone(),
                    args: args.clone(),
                    report: Some((**report).clone()),
                };
                Frame::json(106, 0, *ask, &body)
            }
            Self::Message { topic, json } => {
                let body = MessageBody {
                    topic: topic.clone(),
                    json: json.clone(),
                };
                Frame::json(107, 0, 0, &body)
            }
            Self::Response { request, answer } => match answer {
                Ok(data) => Frame::json(108, 0, *request, data),
                Err(failure) => Frame::json(108, 1, *request, failure),
            },
            Self::Close => Frame::empty(109, 0, 0),
            Self::Cancel { run, starts } => Frame::json(120, 0, *run, starts),
            Self::Halt { id, halt } => Frame::json(121, 0, *id, halt),
            Self::Resume { id } => Frame::empty(122, 0, *id),
            Self::Epoch(epoch) => Frame::empty(123, 0, *epoch),
            Self::Heartbeat(number) => Frame::empty(124, 0, *number),
            Self::GiveUp { run, starts } => Frame::json(125, 0, *run, starts),
            Self::Unknown(kind) => Frame::empty(*kind, 0, 0),
        }
    }

    /// # Errors
    /// [`FrameError::Body`].
    pub(crate) fn read(frame: Frame) -> Result<Self, FrameError> {
        let id = frame.id;
        Ok(match frame.kind {
            101 => Self::Open(frame.read()?),
            102 => Self::Start {
                run: id,
                progress: frame.code & 1 == 1,
                json: frame.text()?,
            },
            103 => Self::Tools { ask: id },
            104 => Self::MayClose { ask: id },
            105 => {
                let PlanBody { tool, args, .. } = frame.read()?;
                Self::Plan { ask: id, tool, args }
            }
            106 => {
                let PlanBody { tool, args, report } = frame.read()?;
                let report = report.ok_or_else(|| frame.wrong(&"it has no report"))?;
                Self::Conclude {
                    ask: id,
                    tool,
                    args,
                    report: Box::new(report),
                }
            }
            107 => {
                let MessageBody { topic, json } = frame.read()?;
                Self::Message { topic, json }
            }
            108 => Self::Response {
                request: id,
                answer: if frame.code == 0 {
                    Ok(frame.read()?)
                } else {
                    Err(frame.read()?)
                },
            },
            109 => Self::Close,
            120 => Self::Cancel {
                run: id,
                starts: frame.read()?,
            },
            121 => Self::Halt {
                id,
                halt: frame.read()?,
            },
            122 => Self::Resume { id },
            123 => Self::Epoch(id),
            124 => Self::Heartbeat(id),
            125 => Self::GiveUp {
                run: id,
                starts: frame.read()?,
            },
            kind => Self::Unknown(kind),
        })
    }
}
