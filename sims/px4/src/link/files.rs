//! MAVLink FTP: the files of [`super::metadata`] can be read, one at a time; nothing can be written.
//!
//! Start with [`Files`].

use mavlink::dialects::common::{FILE_TRANSFER_PROTOCOL_DATA, MavMessage};

use super::address::Peer;
use super::metadata;
use crate::vehicle::Vehicle;

/// Bytes of a message for file data or a path.
const DATA: usize = 239;
/// Messages in the answer to a burst request.
const BURST: usize = 20;
/// A file that is not read for this long is closed, seconds.
pub(super) const PATIENCE_S: f64 = 10.0;

/// MAVLink FTP's opcodes.
pub(super) mod code {
    pub(crate) const NOTHING: u8 = 0;
    pub(crate) const CLOSE: u8 = 1;
    pub(crate) const CLOSE_ALL: u8 = 2;
    pub(crate) const OPEN: u8 = 4;
    pub(crate) const READ: u8 = 5;
    pub(crate) const SUM: u8 = 14;
    pub(crate) const READ_MANY: u8 = 15;
    pub(crate) const YES: u8 = 128;
    pub(crate) const NO: u8 = 129;
}

/// MAVLink FTP's error codes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    Size = 3,
    NotOpen = 4,
    OtherOpen = 5,
    End = 6,
    Unknown = 7,
    NoFile = 10,
}

pub(super) type Payload = [u8; 251];

/// The open file, and the last answer in case it gets lost.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) open: Option<&'static [u8]>,
    pub(super) used: f64,
    pub(super) last: Option<(Peer, Payload, MavMessage)>,
}

/// A decoded request.
pub(super) struct Request<'a> {
    sequence: u16,
    code: u8,
    size: usize,
    offset: usize,
    data: &'a [u8],
}

impl<'a> Request<'a> {
    pub(super) fn of(payload: &'a Payload) -> Self {
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

impl Files {
    /// Pieces of the file with their offsets.
    pub(super) fn answer(
        &mut self,
        vehicle: &Vehicle,
        request: &Request<'_>,
    ) -> Result<Vec<(usize, Vec<u8>)>, Refusal> {
        if request.size > DATA {
            return Err(Refusal::Size);
        }
        let named = || metadata::file(vehicle, request.path()).ok_or(Refusal::NoFile);
        let number_reply = |number: u32| Ok(vec![(0, number.to_le_bytes().to_vec())]);
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
                number_reply(file.len() as u32)
            }
            code::SUM => number_reply(metadata::crc32(named()?)),
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
pub(super) fn answer(
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
