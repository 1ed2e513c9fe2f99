//! The frames between the service and a toolbox's process.
//!
//! Pure: bytes in, frames out, and back. A frame is a header of 16 bytes (length of the body, kind, code, id; little
//! endian) and a body of UTF-8 JSON. Unknown kinds are frames like any other and are passed over, so that either side may
//! be newer. Knows no socket. Read [`Order`] (to the child), [`Word`] (from it) and [`Decoder`].

use ovos_toolbox_wire::{Event, Failure, Object, Progress, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::counts::Counts;
use crate::engine::Ended;

const HEADER: usize = 16;

/// Largest body on the data socket: the largest result that may be configured, with room for escapes.
pub(super) const MAX_DATA: usize = 64 << 20;
/// Largest body on the control socket: a list of subsystems, or a failure.
pub(super) const MAX_CONTROL: usize = 1 << 20;

/// The major version of these frames.
pub(super) const PROTOCOL: u32 = 1;

/// Why bytes are no frame of ours. The connection cannot be used after it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum FrameError {
    /// The other side announces more than is ever sent.
    #[error("a frame of kind {kind} announces {length} bytes; at most {limit} are sent")]
    TooLong { kind: u16, length: usize, limit: usize },
    /// The body is not what its kind says.
    #[error("a frame of kind {kind} cannot be read: {reason}")]
    Body { kind: u16, reason: String },
}

/// One frame, not interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u16,
    pub(super) code: u16,
    pub(super) id: u64,
    pub(super) body: Vec<u8>,
}

impl Frame {
    fn new(kind: u16, code: u16, id: u64, body: Vec<u8>) -> Self {
        Self { kind, code, id, body }
    }

    /// A body that serde writes; all of ours are structs and maps with string keys, which it always can.
    fn json<T: Serialize>(kind: u16, code: u16, id: u64, body: &T) -> Self {
        Self::new(kind, code, id, serde_json::to_vec(body).unwrap_or_default())
    }

    fn empty(kind: u16, code: u16, id: u64) -> Self {
        Self::new(kind, code, id, Vec::new())
    }

    /// The bytes that are sent.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        // No body of ours comes near 4 GiB: the decoder of the other side refuses far less.
        bytes.extend_from_slice(&u32::try_from(self.body.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        bytes.extend_from_slice(&self.code.to_le_bytes());
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_slice(&self.body).map_err(|e| self.wrong(&e))
    }

    fn text(self) -> Result<String, FrameError> {
        let kind = self.kind;
        String::from_utf8(self.body).map_err(|e| FrameError::Body {
            kind,
            reason: e.to_string(),
        })
    }

    fn wrong(&self, reason: &dyn std::fmt::Display) -> FrameError {
        FrameError::Body {
            kind: self.kind,
            reason: reason.to_string(),
        }
    }
}

/// Cuts a stream of bytes into frames. Holds at most one body of `limit` bytes and what one read brought.
#[derive(Debug)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    from: usize,
    limit: usize,
}

impl Decoder {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            from: 0,
            limit,
        }
    }

    /// Takes what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.from);
        self.from = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > 1 << 20 {
            // One large result is no reason to keep its room for ever.
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], before any of that body is kept.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.bytes[self.from..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [a, b, c, d, k0, k1, c0, c1, id @ ..] = *header;
        let (kind, code) = (u16::from_le_bytes([k0, k1]), u16::from_le_bytes([c0, c1]));
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            return Err(FrameError::TooLong {
                kind,
                length,
                limit: self.limit,
            });
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let body = body.to_vec();
        self.from += HEADER + length;
        Ok(Some(Frame::new(kind, code, u64::from_le_bytes(id), body)))
    }
}

/// What the child needs to open its toolbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Opening {
    pub(super) generation: u64,
    /// The toolbox's section, as JSON text.
    pub(super) config: String,
    pub(super) stop_epoch: u64,
    pub(super) max_result_bytes: usize,
    pub(super) max_queued: usize,
    pub(super) max_messages: usize,
    pub(super) max_requests: usize,
    pub(super) open_ms: u64,
    pub(super) close_ms: u64,
    /// How long the child waits for a word of the service while something moves.
    pub(super) silence_ms: u64,
}

/// What a halt says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HaltOrder {
    pub(super) subsystems: Vec<String>,
    pub(super) emergency: bool,
    pub(super) stop_epoch: u64,
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
pub(super) enum Order {
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
    /// Of a newer service; to be passed over.
    Unknown(u16),
}

impl Order {
    pub(super) fn frame(&self) -> Frame {
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
            Self::Unknown(kind) => Frame::empty(*kind, 0, 0),
        }
    }

    /// # Errors
    /// [`FrameError::Body`].
    pub(super) fn read(frame: Frame) -> Result<Self, FrameError> {
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
            kind => Self::Unknown(kind),
        })
    }
}

/// The first word of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`PROTOCOL`] of the child.
    pub(super) abi: u32,
    /// Its program's version, for people.
    #[serde(default)]
    pub(super) version: String,
    /// What it can do beyond that; unknown ones are ignored.
    #[serde(default)]
    pub(super) features: Vec<String>,
}

/// The optional functions that a toolbox has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Functions {
    #[serde(default)]
    pub(super) plan: bool,
    #[serde(default)]
    pub(super) conclude: bool,
    #[serde(default)]
    pub(super) message: bool,
    #[serde(default)]
    pub(super) safe_stop: bool,
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
pub(super) enum Word {
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

impl Word {
    pub(super) fn frame(&self) -> Frame {
        match self {
            Self::Hello(hello) => Frame::json(1, 0, 0, hello),
            Self::Opened(Ok(functions)) => Frame::json(2, 0, 0, functions),
            Self::Opened(Err(failure)) => Frame::json(2, 1, 0, failure),
            Self::Answer { ask, ok, json } => Frame::new(3, u16::from(!*ok), *ask, json.clone().into_bytes()),
            Self::Complete { run, ended } => match ended {
                Ended::Reported(completion) => Frame::json(4, 0, *run, completion),
                Ended::Cancelled => Frame::empty(4, 1, *run),
                Ended::Lost(failure) => Frame::json(4, 2, *run, failure),
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
    pub(super) fn read(frame: Frame) -> Result<Self, FrameError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use ovos_toolbox_wire::{CallOutcome, Completion};
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    fn big() -> Value {
        serde_json::from_str(r#"{"n":123456789012345678901234567890,"f":1.5,"t":"ü\n"}"#).unwrap()
    }

    fn orders() -> Vec<Order> {
        let report = Report {
            outcome: CallOutcome::Completed,
            duration_ms: 7,
            actions: Vec::new(),
        };
        vec![
            Order::Open(Opening {
                config: "{}".into(),
                stop_epoch: u64::MAX,
                ..Opening::default()
            }),
            Order::Start {
                run: 1,
                progress: true,
                json: "{}".into(),
            },
            Order::Tools { ask: 2 },
            Order::MayClose { ask: 3 },
            Order::Plan {
                ask: 4,
                tool: "t".into(),
                args: object(big()),
            },
            Order::Conclude {
                ask: 5,
                tool: "t".into(),
                args: object(big()),
                report: Box::new(report),
            },
            Order::Message {
                topic: "speak".into(),
                json: "{}".into(),
            },
            Order::Response {
                request: 6,
                answer: Ok(big()),
            },
            Order::Response {
                request: 6,
                answer: Err(Failure::new("E", "m")),
            },
            Order::Close,
            Order::Cancel { run: 7, starts: 9 },
            Order::Halt {
                id: 8,
                halt: HaltOrder {
                    subsystems: vec!["all".into()],
                    emergency: true,
                    stop_epoch: 3,
                },
            },
            Order::Resume { id: 9 },
            Order::Epoch(10),
            Order::Heartbeat(11),
            Order::Unknown(9999),
        ]
    }

    fn words() -> Vec<Word> {
        let failure = Failure {
            data: Some(big()),
            ..Failure::new("E", "m")
        };
        vec![
            Word::Hello(Hello {
                abi: PROTOCOL,
                version: "1".into(),
                features: vec!["x".into()],
            }),
            Word::Opened(Ok(Functions {
                plan: true,
                ..Functions::default()
            })),
            Word::Opened(Err(failure.clone())),
            Word::Answer {
                ask: 1,
                ok: false,
                json: "{}".into(),
            },
            Word::Complete {
                run: 2,
                ended: Ended::Reported(Completion::Output(big())),
            },
            Word::Complete {
                run: 3,
                ended: Ended::Reported(Completion::Error(failure.clone())),
            },
            Word::Complete {
                run: 4,
                ended: Ended::Cancelled,
            },
            Word::Complete {
                run: 5,
                ended: Ended::Lost(failure.clone()),
            },
            Word::Progress {
                run: 6,
                progress: Progress {
                    fraction: Some(0.5),
                    ..Progress::default()
                },
            },
            Word::Event(Event {
                kind: "k".into(),
                data: Some(big()),
                ..Event::default()
            }),
            Word::Request {
                request: 7,
                topic: "t".into(),
                data: big(),
                timeout_ms: 5,
            },
            Word::Log {
                level: 3,
                target: "t".into(),
                message: "m".into(),
            },
            Word::Counts(Counts::default()),
            Word::Closed { in_time: false },
            Word::Said { id: 8, said: Ok(()) },
            Word::Said {
                id: 9,
                said: Err(failure),
            },
            Word::Alive(10),
            Word::Unknown(7777),
        ]
    }

    /// Sends frames through a decoder in pieces of these sizes.
    fn through(frames: &[Frame], sizes: &[usize]) -> Vec<Frame> {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        let mut decoder = Decoder::new(MAX_DATA);
        let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
        let mut sizes = sizes.iter().cycle();
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| (*size).clamp(1, rest.len()));
            decoder.push(&rest[..size]);
            rest = &rest[size..];
            while let Some(frame) = decoder.next().unwrap() {
                found.push(frame);
            }
        }
        found
    }

    #[test]
    fn every_frame_comes_back_as_it_was() {
        for order in orders() {
            assert_eq!(Order::read(order.frame()).unwrap(), order);
        }
        for word in words() {
            assert_eq!(Word::read(word.frame()).unwrap(), word);
        }
    }

    #[test]
    fn keys_that_are_missing_or_new_are_no_reason_to_fail() {
        let hello = Frame::json(1, 0, 0, &json!({"abi": 1, "later": {}}));
        assert_eq!(
            Word::read(hello).unwrap(),
            Word::Hello(Hello {
                abi: 1,
                ..Hello::default()
            })
        );
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_its_body_is_kept() {
        let mut decoder = Decoder::new(MAX_CONTROL);
        decoder.push(&[0xff; HEADER]);
        assert!(
            matches!(decoder.next(), Err(FrameError::TooLong { length, .. }) if length == u32::MAX as usize)
        );
    }

    proptest! {
        #[test]
        fn frames_survive_being_cut_anywhere(
            bodies in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20),
            sizes in prop::collection::vec(1usize..64, 1..10),
        ) {
            let frames: Vec<Frame> = bodies.into_iter().map(|(kind, code, id, body)| Frame::new(kind, code, id, body)).collect();
            prop_assert_eq!(through(&frames, &sizes), frames);
        }

        #[test]
        fn garbage_is_an_error_or_passed_over_and_never_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
            kind in prop_oneof![0u16..30, 100u16..130],
            code in 0u16..3,
        ) {
            let mut decoder = Decoder::new(512);
            decoder.push(&bytes);
            while let Ok(Some(frame)) = decoder.next() {
                _ = Word::read(frame.clone());
                _ = Order::read(frame);
            }
            let frame = Frame::new(kind, code, 1, bytes);
            _ = Word::read(frame.clone());
            _ = Order::read(frame);
        }
    }
}
