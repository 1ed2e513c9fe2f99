//! What has to hold for any bytes that come from the other end of a toolbox's sockets, and for any manifest or list of
//! tools. Built for tests and fuzzing only.
#![allow(clippy::unwrap_used, reason = "a finding panics")]

use schema::Unknown;

use crate::contract::{manifest as manifests, tools as lists};
use crate::transport::frame::{Decoder, Frame, FrameError, Notice, Order};

/// Where the bytes are cut does not matter, no frame is longer than the limit, and what can be read can be written and
/// read again as the same. The first byte says how the bytes are cut; behind each frame its body is read as every kind.
pub fn frames(data: &[u8]) {
    const LIMIT: usize = 4096;
    let Some((&how, bytes)) = data.split_first() else {
        return;
    };
    let piece = [1, 2, 3, 7, 15, 16, 17, 1000][usize::from(how) % 8];
    let whole = cut(LIMIT, bytes, usize::MAX);
    assert_eq!(whole, cut(LIMIT, bytes, piece), "in pieces of {piece}");
    for frame in whole.0 {
        assert!(frame.body.len() <= LIMIT);
        assert_eq!(
            cut(LIMIT, &frame.encode(), usize::MAX),
            (vec![frame.clone()], None)
        );
        understand(frame);
    }
}

fn understand(frame: Frame) {
    if let Ok(notice) = Notice::read(frame.clone()) {
        assert_eq!(Notice::read(notice.frame()).as_ref(), Ok(&notice));
    }
    if let Ok(order) = Order::read(frame) {
        assert_eq!(Order::read(order.frame()).as_ref(), Ok(&order));
    }
}

fn cut(limit: usize, bytes: &[u8], piece: usize) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::new(limit);
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece.min(bytes.len()).max(1)) {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

/// A manifest: taken or refused with reasons, and what is taken can be written and is taken again.
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

/// A list of tools: each is taken or left out with reasons, and those that were taken can be called.
pub fn tools(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(set) = lists::read(&text, true) else { return };
    assert!(set.dropped.iter().all(|tool| !tool.wrong.is_empty()));
    for tool in set.tools {
        _ = tool.prepare(&serde_json::Map::new(), Unknown::Refuse);
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
