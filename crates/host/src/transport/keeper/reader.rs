//! The thread of the data socket. Read [`read`].

use ovos_toolbox_wire::Manifest;
use protocol::Notice;

use crate::contract::json;
use crate::transport::greeting;
use crate::transport::inlet;
use crate::transport::sockets::Sockets;
use crate::transport::tether::Tether;

/// Serves the data socket to its end; says why that came.
pub(super) fn read(tether: &Tether, sockets: &Sockets) -> String {
    let mut greeted = false;
    let take = |notice| {
        if !greeted {
            greet(&notice, &tether.manifest.id)?;
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

/// Reads the first notice. A program may say something else about its toolbox than when it was examined, but not be another.
fn greet(notice: &Notice, id: &str) -> Result<(), String> {
    let hello = greeting::hello(notice).map_err(|what| format!("it {what}"))?;
    let names = |manifest: &protocol::Raw<Manifest>| {
        json::read::<Manifest>(manifest.text()).is_ok_and(|manifest| manifest.id == id)
    };
    if hello.toolboxes.iter().all(names) {
        return Ok(());
    }
    Err(format!("it no longer says that it is toolbox `{id}`; reload it"))
}
