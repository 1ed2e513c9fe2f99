//! A websocket client with minimal overhead, so that a bench measures the other end.
//!
//! Blocking, on loopback, text frames only, a zero mask, and `TCP_QUICKACK` after every read (otherwise Python's bus
//! and its clients stall for 40 ms per hop). Read [`Wire`].

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use socket2::SockRef;

/// A bench fails after this time instead of hanging.
const DEADLINE: Duration = Duration::from_secs(30);

/// A connection to a bus.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Where the next frame starts in `buffer`.
    next: usize,
    /// A reusable read buffer; growing `buffer` for each read would zero the memory first.
    room: Box<[u8]>,
    out: Vec<u8>,
}

impl Wire {
    /// Connects to the bus at this port on loopback.
    pub(crate) fn join(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let mut wire = Self {
            stream,
            buffer: Vec::new(),
            next: 0,
            room: vec![0; 256 << 10].into(),
            out: Vec::new(),
        };
        let head = format!(
            "GET /core HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        wire.stream.write_all(head.as_bytes())?;
        loop {
            wire.read()?;
            if let Some(end) = wire.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                if !wire.buffer.starts_with(b"HTTP/1.1 101") {
                    return Err(io::Error::other("the bus refused the websocket"));
                }
                wire.next = end + 4;
                return Ok(wire);
            }
        }
    }

    /// Another handle to the socket, to write from another thread. Only one of the two may read.
    pub(crate) fn writer(&self) -> io::Result<Self> {
        Ok(Self {
            stream: self.stream.try_clone()?,
            buffer: Vec::new(),
            next: 0,
            room: vec![0; 256 << 10].into(),
            out: Vec::new(),
        })
    }

    /// Appends a text frame to the output buffer.
    pub(crate) fn put(&mut self, text: &[u8]) {
        self.frame(0x81, text);
    }

    fn frame(&mut self, first: u8, payload: &[u8]) {
        self.out.push(first);
        match payload.len() {
            size @ 0..126 => self.out.push(0x80 | size as u8),
            size @ 126..65_536 => {
                self.out.push(0x80 | 126);
                self.out.extend_from_slice(&(size as u16).to_be_bytes());
            }
            size => {
                self.out.push(0x80 | 127);
                self.out.extend_from_slice(&(size as u64).to_be_bytes());
            }
        }
        // An all-zero mask, so that the payload is sent unchanged.
        self.out.extend_from_slice(&[0; 4]);
        self.out.extend_from_slice(payload);
    }

    /// Writes the output buffer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.stream.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Writes one frame.
    pub(crate) fn send(&mut self, text: &[u8]) -> io::Result<()> {
        self.put(text);
        self.flush()
    }

    /// The next text frame in the buffer, if there is one.
    pub(crate) fn take(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let Some((opcode, payload)) = self.parse()? else {
                return Ok(None);
            };
            match opcode {
                1 => return Ok(Some(&self.buffer[payload])),
                9 => {
                    let payload = self.buffer[payload].to_vec();
                    self.frame(0x8A, &payload);
                    self.flush()?;
                }
                10 => {}
                8 => return Err(io::Error::other("the bus closed the connection")),
                other => return Err(io::Error::other(format!("a frame of opcode {other}"))),
            }
        }
    }

    fn parse(&mut self) -> io::Result<Option<(u8, Range<usize>)>> {
        let bytes = &self.buffer[self.next..];
        let (Some(&first), Some(&second)) = (bytes.first(), bytes.get(1)) else {
            return Ok(None);
        };
        if first & 0x80 == 0 || second & 0x80 != 0 {
            return Err(io::Error::other("a fragmented or masked frame"));
        }
        let (head, size) = match second {
            126 => match bytes.get(2..4) {
                Some(size) => (4, usize::from(u16::from_be_bytes([size[0], size[1]]))),
                None => return Ok(None),
            },
            127 => match bytes.get(2..10).and_then(|size| size.try_into().ok()) {
                Some(size) => (10, u64::from_be_bytes(size) as usize),
                None => return Ok(None),
            },
            size => (2, usize::from(size)),
        };
        if bytes.len() < head + size {
            return Ok(None);
        }
        let start = self.next + head;
        self.next = start + size;
        Ok(Some((first & 0x0F, start..start + size)))
    }

    /// Waits for more bytes.
    pub(crate) fn read(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.next);
        self.next = 0;
        let read = self.stream.read(&mut self.room)?;
        self.buffer.extend_from_slice(&self.room[..read]);
        SockRef::from(&self.stream).set_tcp_quickack(true)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Waits for a frame of this type and passes it to `found`; skips all others.
    pub(crate) fn until<T>(&mut self, kind: &str, found: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        loop {
            while let Some(text) = self.take()? {
                if is(text, kind) {
                    return Ok(found(text));
                }
            }
            self.read()?;
        }
    }
}

/// Whether a frame has this type; every peer here writes the type first.
pub(crate) fn is(text: &[u8], kind: &str) -> bool {
    let after = |text: &[u8], part: &[u8]| text.strip_prefix(part).map(<[u8]>::len);
    let Some(left) = after(text, b"{\"type\":") else {
        return false;
    };
    let value = text[text.len() - left..].trim_ascii_start();
    value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_prefix(kind.as_bytes()))
        .is_some_and(|rest| rest.starts_with(b"\""))
}
