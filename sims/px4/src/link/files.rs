//! MAVLink FTP: the files of [`super::metadata`] can be read, one at a time; nothing can be written.
//!
//! Start with [`Link::file_request`].

use mavlink::dialects::common::{FILE_TRANSFER_PROTOCOL_DATA, MavMessage};

use super::{AUTOPILOT, Link, Peer, metadata};
use crate::vehicle::Vehicle;

/// Bytes of a message for file data or a path.
const DATA: usize = 239;
/// Messages in the answer to a burst request.
const BURST: usize = 20;
/// A file that is not read for this long is closed, seconds.
const PATIENCE_S: f64 = 10.0;

/// MAVLink FTP's opcodes.
mod code {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const CLOSE: u8 = 1;
    pub(super) const CLOSE_ALL: u8 = 2;
    pub(super) const OPEN: u8 = 4;
    pub(super) const READ: u8 = 5;
    pub(super) const SUM: u8 = 14;
    pub(super) const READ_MANY: u8 = 15;
    pub(super) const YES: u8 = 128;
    pub(super) const NO: u8 = 129;
}

/// MAVLink FTP's error codes.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    Size = 3,
    NotOpen = 4,
    OtherOpen = 5,
    End = 6,
    Unknown = 7,
    NoFile = 10,
}

type Payload = [u8; 251];

/// The open file, and the last answer in case it gets lost.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: Option<&'static [u8]>,
    used: f64,
    last: Option<(Peer, Payload, MavMessage)>,
}

/// A decoded request.
struct Request<'a> {
    sequence: u16,
    code: u8,
    size: usize,
    offset: usize,
    data: &'a [u8],
}

impl<'a> Request<'a> {
    fn of(payload: &'a Payload) -> Self {
        let [s0, s1, _, code, size, _, _, _, o0, o1, o2, o3, data @ ..] = payload;
        Self {
            sequence: u16::from_le_bytes([*s0, *s1]),
            code: *code,
            size: usize::from(*size),
            offset: u32::from_le_bytes([*o0, *o1, *o2, *o3]) as usize,
            data,
        }
    }

    /// The path in the request, up to its first zero byte.
    fn path(&self) -> &str {
        let bytes = &self.data[..self.size.min(DATA)];
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Link {
    pub(super) fn file_request(&mut self, vehicle: &Vehicle, message: &FILE_TRANSFER_PROTOCOL_DATA) {
        if ![0, AUTOPILOT].contains(&message.target_component) {
            return;
        }
        let peer = self.peer;
        if let Some((before, payload, answer)) = &self.files.last
            && (*before, payload) == (peer, &message.payload)
        {
            let answer = answer.clone();
            self.send(answer);
            return;
        }
        let request = Request::of(&message.payload);
        if vehicle.time() - self.files.used > PATIENCE_S {
            self.files.open = None;
        }
        self.files.used = vehicle.time();
        let answers = match self.files.answer(vehicle, &request) {
            Ok(pieces) => {
                let count = pieces.len();
                let piece = |(index, (offset, data)): (usize, (usize, Vec<u8>))| {
                    answer(
                        peer,
                        &request,
                        index,
                        code::YES,
                        offset,
                        &data,
                        index + 1 == count,
                    )
                };
                pieces.into_iter().enumerate().map(piece).collect()
            }
            Err(refusal) => vec![answer(peer, &request, 0, code::NO, 0, &[refusal as u8], true)],
        };
        self.files.last = match &answers[..] {
            [only] => Some((peer, message.payload, only.clone())),
            _ => None,
        };
        self.send_all(answers);
    }
}

impl Files {
    /// Pieces of the file with their offsets.
    fn answer(&mut self, vehicle: &Vehicle, request: &Request<'_>) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
        if request.size > DATA {
            return Err(Refusal::Size);
        }
        let named = || metadata::file(vehicle, request.path()).ok_or(Refusal::NoFile);
        let said = |number: u32| Ok(vec![(0, number.to_le_bytes().to_vec())]);
        match request.code {
            code::NOTHING => Ok(vec![(0, Vec::new())]),
            code::CLOSE if self.open.is_none() => Err(Refusal::NotOpen),
            code::CLOSE | code::CLOSE_ALL => {
                self.open = None;
                Ok(vec![(0, Vec::new())])
            }
            code::OPEN if self.open.is_some() => Err(Refusal::OtherOpen),
            code::OPEN => {
                let file = named()?;
                self.open = Some(file);
                said(file.len() as u32)
            }
            code::SUM => said(metadata::crc32(named()?)),
            code::READ | code::READ_MANY => {
                let file = self.open.ok_or(Refusal::NotOpen)?;
                let rest = file.get(request.offset..).filter(|rest| !rest.is_empty());
                let rest = rest.ok_or(Refusal::End)?;
                let (each, most) = match request.code {
                    code::READ => (request.size.max(1), 1),
                    _ => (DATA, BURST),
                };
                let piece = |(index, data): (usize, &[u8])| (request.offset + index * each, data.to_vec());
                Ok(rest.chunks(each).take(most).enumerate().map(piece).collect())
            }
            _ => Err(Refusal::Unknown),
        }
    }
}

/// The session is always 0, because only one file can be open.
fn answer(
    peer: Peer,
    request: &Request<'_>,
    index: usize,
    code: u8,
    offset: usize,
    data: &[u8],
    is_last: bool,
) -> MavMessage {
    let mut payload: Payload = [0; 251];
    let sequence = request.sequence.wrapping_add(1).wrapping_add(index as u16);
    payload[..2].copy_from_slice(&sequence.to_le_bytes());
    payload[3] = code;
    payload[4] = data.len() as u8;
    payload[5] = request.code;
    payload[6] = u8::from(request.code == code::READ_MANY && is_last);
    payload[8..12].copy_from_slice(&(offset as u32).to_le_bytes());
    payload[12..12 + data.len()].copy_from_slice(data);
    MavMessage::FILE_TRANSFER_PROTOCOL(FILE_TRANSFER_PROTOCOL_DATA {
        target_network: 0,
        target_system: peer.system,
        target_component: peer.component,
        payload,
    })
}
