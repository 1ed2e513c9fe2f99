//! Answers the requests for files.
//!
//! Start with [`Link::file_request`].

use mavlink::dialects::common::FILE_TRANSFER_PROTOCOL_DATA;

use super::address::AUTOPILOT;
use super::connection::Link;
use super::files::{PATIENCE_S, Request, answer, code};
use crate::vehicle::Vehicle;

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
