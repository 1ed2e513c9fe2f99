//! The thread of the data socket. Read [`read`].

use ovos_toolbox_wire::Manifest;
use protocol::{MAX_CONTROL, Notice};

use crate::transport::members::Members;
use crate::transport::peer::Peer;
use crate::transport::sockets::Sockets;
use program::json;
use program::{data_lane, frame};

use crate::transport::greeting;

/// Serves the data socket until it ends; returns the reason.
pub(super) fn read(peer: &Peer, sockets: &Sockets, members: Option<&Members>) -> String {
    let mut greeted = false;
    let take = |body: &[u8]| {
        let notice = frame::read(body).map_err(|error| error.to_string())?;
        if !greeted {
            if body.len() > MAX_CONTROL {
                return Err(format!(
                    "its hello is {} bytes; the limit is {MAX_CONTROL}",
                    body.len()
                ));
            }
            match members {
                Some(members) => greet_several(&notice, members)?,
                None => greet(&notice, &peer.manifest.id)?,
            }
            greeted = true;
            sockets.greeted.send_replace(true);
            return Ok(());
        }
        let closed = matches!(notice, Notice::Closed { .. });
        if let Some(members) = members {
            let toolbox = frame::address(body).map_err(|error| error.to_string())?;
            if !members.hear(peer, toolbox.as_deref(), notice) {
                let of = toolbox.map_or_else(|| "no toolbox".to_owned(), |id| format!("toolbox {id:?}"));
                peer.unasked.complain(&format!(
                    "it sent a notice about {of}, which is not open or has no such notice"
                ));
            }
        } else {
            peer.hear(notice);
        }
        if closed {
            sockets.wake.signal();
        }
        Ok(())
    };
    data_lane::serve(&sockets.data, take, || {}).to_string()
}

/// Checks the first notice. A program may send another manifest than when it was examined, but not another toolbox id, and
/// exactly one.
fn greet(notice: &Notice, id: &str) -> Result<(), String> {
    let hello = greeting::hello(notice).map_err(|what| format!("it {what}"))?;
    if greeting::has_several(hello) {
        return Err("its hello now names several toolboxes; run `ovos-tools reload`".to_owned());
    }
    // Its answer to the order to open has the reason, and the kind of the failure.
    if hello.refusal.is_some() {
        return Ok(());
    }
    if let [manifest] = hello.toolboxes.as_slice()
        && json::read::<Manifest>(manifest.text()).is_ok_and(|manifest| manifest.id == id)
    {
        return Ok(());
    }
    Err(format!(
        "its hello no longer names toolbox `{id}`; run `ovos-tools reload`"
    ))
}

/// As `greet`, for a program that is several toolboxes.
fn greet_several(notice: &Notice, members: &Members) -> Result<(), String> {
    let hello = greeting::hello(notice).map_err(|what| format!("it {what}"))?;
    if !greeting::has_several(hello) {
        return Err("its hello no longer names several toolboxes; run `ovos-tools reload`".to_owned());
    }
    let offers = greeting::several(hello).map_err(|what| format!("it {what}"))?;
    members.list(&offers);
    Ok(())
}
