//! The thread of the data socket. Read [`read`].

use protocol::{Hello, Notice, PROTOCOL};

use crate::transport::inlet;
use crate::transport::sockets::Sockets;
use crate::transport::tether::Tether;

/// Serves the data socket to its end; says why that came.
pub(super) fn read(tether: &Tether, sockets: &Sockets) -> String {
    let mut greeted = false;
    let take = |notice| {
        if !greeted {
            greet(&notice)?;
            greeted = true;
            sockets.greeted.send_replace(true);
        }
        let closed = matches!(notice, Notice::Closed { .. });
        tether.hear(notice);
        if closed {
            sockets.bell.ring();
        }
        Ok(())
    };
    inlet::serve(&sockets.data, take, || {}).to_string()
}

/// Reads the first notice.
fn greet(notice: &Notice) -> Result<(), String> {
    match notice {
        Notice::Hello(Hello { protocol, .. }) if *protocol == PROTOCOL => Ok(()),
        Notice::Hello(Hello {
            protocol, version, ..
        }) => Err(format!(
            "it is of another version ({version}, protocol {protocol}); restart the service"
        )),
        _ => Err("its first word was not hello".to_owned()),
    }
}
