//! What a toolbox's process tells the service. Read [`Notice`].

use ovos_toolbox_wire::{Event, Failure, Progress};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Frame, FrameError};
use crate::contract::counts::Counts;
use crate::contract::functions::Functions;
use engine::Ended;

/// The first notice of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// [`PROTOCOL`] of the child.
    pub(crate) abi: u32,
    /// Its program's version, for people.
    #[serde(default)]
    pub(crate) version: String,
    /// What it can do beyond that; unknown ones are ignored.
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct LogBody {
    target: String,
    message: String,
}

#[derive(Serialize, Deserialize)]
struct RequestBody {
    topic: String,
    data: Value,
    timeout_ms: u64,
}

/// From the child to the service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Notice {
    // --- data socket
    /// Must stay the first frame, of this kind and shape, in every version: it is what the service decides by whether it
    /// can read any other frame of this child at all. A child whose first frame is another one is given up.
    Hello(Hello),
    /// The library is loaded and the instance is open, or not.
    Opened(Result<Functions, Failure>),
    /// `json` is the value, or the failure.
    Answer {
        ask: u64,
        ok: bool,
        json: String,
    },
    Complete {
        run: u64,
        ended: Ended,
    },
    Progress {
        run: u64,
        progress: Progress,
    },
    Event(Event),
    Request {
        request: u64,
        topic: String,
        data: Value,
        timeout_ms: u64,
    },
    Log {
        level: u16,
        target: String,
        message: String,
    },
    Counts(Counts),
    /// Whether it closed in time. Nothing follows.
    Closed {
        in_time: bool,
    },
    // --- control socket
    /// The answer to a halt or a resume.
    Said {
        id: u64,
        said: Result<(), Failure>,
    },
    Alive(u64),
    /// Of a newer child; to be passed over.
    Unknown(u16),
}

impl Notice {
    pub(crate) fn frame(&self) -> Frame {
        match self {
            Self::Hello(hello) => Frame::json(1, 0, 0, hello),
            Self::Opened(Ok(functions)) => Frame::json(2, 0, 0, functions),
            Self::Opened(Err(failure)) => Frame::json(2, 1, 0, failure),
            Self::Answer { ask, ok, json } => Frame::new(3, u16::from(!*ok), *ask, json.clone().into_bytes()),
            Self::Complete { run, ended } => match ended {
                Ended::Reported(completion) => Frame::json(4, 0, *run, completion),
                Ended::Cancelled => Frame::empty(4, 1, *run),
                // Whether a run got to its toolbox is not the toolbox's to say.
                Ended::Lost(failure) | Ended::NeverBegun(failure) => Frame::json(4, 2, *run, failure),
            },
            Self::Progress { run, progress } => Frame::json(5, 0, *run, progress),
            Self::Event(event) => Frame::json(6, 0, 0, event),
            Self::Request {
                request,
                topic,
                data,
                timeout_ms,
            } => {
                let body = RequestBody {
                    topic: topic.clone(),
                    data: data.clone(),
                    timeout_ms: *timeout_ms,
                };
                Frame::json(7, 0, *request, &body)
            }
            Self::Log {
                level,
                target,
                message,
            } => {
                let body = LogBody {
                    target: target.clone(),
                    message: message.clone(),
                };
                Frame::json(8, *level, 0, &body)
            }
            Self::Counts(counts) => Frame::json(9, 0, 0, counts),
            Self::Closed { in_time } => Frame::empty(10, u16::from(!*in_time), 0),
            Self::Said { id, said: Ok(()) } => Frame::empty(20, 0, *id),
            Self::Said {
                id,
                said: Err(failure),
            } => Frame::json(20, 1, *id, failure),
            Self::Alive(number) => Frame::empty(21, 0, *number),
            Self::Unknown(kind) => Frame::empty(*kind, 0, 0),
        }
    }

    /// # Errors
    /// [`FrameError::Body`].
    pub(crate) fn read(frame: Frame) -> Result<Self, FrameError> {
        let id = frame.id;
        Ok(match (frame.kind, frame.code) {
            (1, _) => Self::Hello(frame.read()?),
            (2, 0) => Self::Opened(Ok(frame.read()?)),
            (2, _) => Self::Opened(Err(frame.read()?)),
            (3, code) => Self::Answer {
                ask: id,
                ok: code == 0,
                json: frame.text()?,
            },
            (4, 0) => Self::Complete {
                run: id,
                ended: Ended::Reported(frame.read()?),
            },
            (4, 1) => Self::Complete {
                run: id,
                ended: Ended::Cancelled,
            },
            (4, _) => Self::Complete {
                run: id,
                ended: Ended::Lost(frame.read()?),
            },
            (5, _) => Self::Progress {
                run: id,
                progress: frame.read()?,
            },
            (6, _) => Self::Event(frame.read()?),
            (7, _) => {
                let RequestBody {
                    topic,
                    data,
                    timeout_ms,
                } = frame.read()?;
                Self::Request {
                    request: id,
                    topic,
                    data,
                    timeout_ms,
                }
            }
            (8, level) => {
                let LogBody { target, message } = frame.read()?;
                Self::Log {
                    level,
                    target,
                    message,
                }
            }
            (9, _) => Self::Counts(frame.read()?),
            (10, code) => Self::Closed { in_time: code == 0 },
            (20, 0) => Self::Said { id, said: Ok(()) },
            (20, _) => Self::Said {
                id,
                said: Err(frame.read()?),
            },
            (21, _) => Self::Alive(id),
            (kind, _) => Self::Unknown(kind),
        })
    }
}
