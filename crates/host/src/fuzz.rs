//! Properties of any bytes from the other end of a toolbox's sockets, and of any manifest or list of tools. Built for
//! tests and fuzzing only.
#![allow(clippy::unwrap_used, reason = "a finding panics")]

use protocol::{MAX_DATA, Notice, Order};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract::{manifest as manifests, tools as lists};
use program::frame::{self, Cutter, Frame, FrameError};

/// Checks that the result does not depend on how the bytes are split into reads, that no body exceeds the limit, and
/// that an order or a notice survives being written and read again. The first byte selects the split.
pub fn frames(data: &[u8]) {
    const LIMIT: usize = 4096;
    let Some((&how, bytes)) = data.split_first() else {
        return;
    };
    let piece = [1, 2, 3, 4, 5, 15, 16, 1000][usize::from(how) % 8];
    let whole = cut(LIMIT, bytes, usize::MAX);
    assert_eq!(whole, cut(LIMIT, bytes, piece), "in pieces of {piece}");
    for body in whole.0 {
        assert!(body.len() <= LIMIT);
        understand::<Order>(&body);
        understand::<Notice>(&body);
    }
}

fn understand<T: Serialize + DeserializeOwned>(body: &[u8]) {
    let Ok(message) = frame::read::<T>(body) else {
        return;
    };
    let written = Frame::of(&message);
    let (bodies, error) = cut(MAX_DATA, &written, usize::MAX);
    assert_eq!((bodies.len(), error), (1, None));
    assert_eq!(Frame::of(&frame::read::<T>(&bodies[0]).unwrap()), written);
    let (bodies, _) = cut(MAX_DATA, &Frame::about(&message, Some("arm")), usize::MAX);
    assert_eq!(frame::address(&bodies[0]).unwrap().as_deref(), Some("arm"));
    assert_eq!(Frame::of(&frame::read::<T>(&bodies[0]).unwrap()), written);
}

fn cut(limit: usize, bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let mut cutter = Cutter::new(limit);
    let mut bodies = Vec::new();
    for piece in bytes.chunks(piece.min(bytes.len()).max(1)) {
        cutter.push(piece);
        loop {
            match cutter.body() {
                Ok(Some(body)) => bodies.push(body.to_vec()),
                Ok(None) => break,
                Err(error) => return (bodies, Some(error)),
            }
        }
    }
    (bodies, None)
}

/// Checks that a manifest is accepted or refused with reasons, and that an accepted one survives being written and
/// read again.
pub fn manifest(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match manifests::read(&text) {
        Ok(manifest) => {
            let again = serde_json::to_string(&manifest).unwrap();
            assert_eq!(manifests::read(&again).as_ref(), Ok(&manifest));
        }
        Err(wrong) => assert!(!wrong.is_empty()),
    }
}

/// Checks that each tool of a list is accepted or left out with reasons, and that accepted tools can be called.
pub fn tools(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(set) = lists::read(&text, lists::Maker::Plugin, lists::Motion::Halts) else {
        return;
    };
    assert!(set.dropped.iter().all(|tool| !tool.wrong.is_empty()));
    for tool in set.tools {
        _ = tool.prepare(&serde_json::Map::new(), true);
        _ = tool.check(&serde_json::Value::Null);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn host_frames() {
        replay::check("host_frames", super::frames);
    }

    #[test]
    fn manifest() {
        replay::check("manifest", super::manifest);
    }

    #[test]
    fn tools() {
        replay::check("tools", super::tools);
    }
}
