//! What connects the service with a toolbox's process. Read [`Sockets`].

use std::os::unix::net::UnixStream;

/// Two socketpairs; every end is closed on exec.
pub(super) struct Sockets {
    pub(super) data: UnixStream,
    pub(super) their_data: UnixStream,
    pub(super) control: UnixStream,
    pub(super) their_control: UnixStream,
}

impl Sockets {
    pub(super) fn new() -> std::io::Result<Self> {
        let (data, their_data) = UnixStream::pair()?;
        let (control, their_control) = UnixStream::pair()?;
        // The data socket has a thread of its own that waits in it.
        control.set_nonblocking(true)?;
        Ok(Self {
            data,
            their_data,
            control,
            their_control,
        })
    }
}
