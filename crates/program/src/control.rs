//! The control lane of a toolbox's process: cancel, halt, resume and beats, on a thread that does nothing else.
//!
//! Also ends the process: when the service is gone, it first brings everything to rest. Read [`serve_control`].

use std::io::{ErrorKind, Read};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ovos_toolbox_wire::{Event, Severity};
use protocol::{MAX_CONTROL, Notice, Raw};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::frame::Cutter;
use crate::process::Process;
use crate::sockets::kill_self;

/// How often the process checks whether the service is silent, while something moves.
const LOOK: Duration = Duration::from_millis(50);

/// How long a toolbox has to halt when the service is gone, before a fresh process brings its hardware to rest.
const LAST_HALT: Duration = Duration::from_millis(300);
/// How long the toolbox then has to close.
const LAST_CLOSE: Duration = Duration::from_secs(2);

/// How often a call into the toolbox is checked for a hang. Beats, which come while the service waits for the
/// toolbox, start the checks; the checks go on afterwards, because a toolbox may hang when no call waits for it.
const HANGS_LOOK: Duration = Duration::from_secs(1);

/// Serves the control lane. Ends the process.
pub(crate) fn serve_control(process: &Process) {
    let mut cutter = Cutter::new(MAX_CONTROL);
    let reason = loop {
        wait(process);
        process.notices.woken().clear();
        process.notices.control.flush();
        if let Err(reason) = read(process, &mut cutter) {
            break reason;
        }
        if process.leaving.load(Ordering::SeqCst) {
            break "the service is gone, or asked the process to end".to_owned();
        }
        let silence = process.silence_ms.load(Ordering::SeqCst);
        if process.server.is_moving() && process.notices.silence() > Duration::from_millis(silence) {
            break format!("nothing was heard from the service for {silence} ms while something moved");
        }
        let overdue = process.server.toolbox().and_then(|toolbox| toolbox.overdue());
        if let Some(function) = overdue {
            die(
                process,
                &format!("{function}() has not returned within `limits.open_ms`"),
            );
        }
    };
    end(process, &reason);
}

/// Waits for something to do.
fn wait(process: &Process) {
    let notices = &process.notices;
    let behind = if notices.control.is_behind() {
        PollFlags::OUT
    } else {
        PollFlags::empty()
    };
    let timeout = if process.server.is_moving() {
        Some(LOOK)
    } else {
        let hangs_perhaps = process
            .server
            .toolbox()
            .is_some_and(|toolbox| toolbox.is_inside());
        hangs_perhaps.then_some(HANGS_LOOK)
    };
    let mut fds = [
        PollFd::new(notices.control.stream(), PollFlags::IN | behind),
        PollFd::new(notices.woken(), PollFlags::IN),
    ];
    let timeout = timeout.and_then(|limit| Timespec::try_from(limit).ok());
    _ = poll(&mut fds, timeout.as_ref());
}

/// Reads the orders that have arrived and carries them out.
fn read(process: &Process, cutter: &mut Cutter) -> Result<(), String> {
    let mut bytes = [0; 16 * 1024];
    loop {
        match process.notices.control.stream().read(&mut bytes) {
            Ok(0) => return Err("the service is gone".to_owned()),
            Ok(count) => cutter.push(&bytes[..count]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(format!("the control connection broke: {e}")),
        }
        process.notices.note_contact();
        while let Some(order) = cutter.read().map_err(|e| e.to_string())? {
            process.server.control(order);
        }
    }
}

/// Ends a process whose toolbox hangs, so that the service starts another one. The work that is under way is lost; its callers
/// get the reason.
fn die(process: &Process, reason: &str) -> ! {
    // Halted here, because the fresh process can only call `safe_stop`, which not every toolbox has.
    let halted = halt(process);
    process.warn(reason);
    is_confirmed(&halted);
    kill_self()
}

/// Brings everything to rest and ends the process.
fn end(process: &Process, reason: &str) -> ! {
    let moved = process.server.is_moving();
    if let Some(toolbox) = process.server.toolbox() {
        toolbox.lost_service();
    }
    // Before anything is said on the data lane, which may have much to send.
    let halted = halt(process);
    process.warn(reason);
    if moved {
        // In case the service still exists: this is an emergency stop, and nothing moves after it until a resume.
        process.notices.data(&Notice::Event(Raw::of(&Event {
            kind: "latched".to_owned(),
            severity: Severity::Error,
            data: Some(serde_json::json!({ "reason": reason })),
        })));
    }
    if let Some(toolbox) = process.server.toolbox() {
        if !is_confirmed(&halted) {
            toolbox.safe_stop();
        }
        toolbox.leave();
        process.close_within(LAST_CLOSE);
    }
    kill_self()
}

/// Halts everything and voids the starts that are on their way. Returns at once; the receiver gets whether that succeeded.
fn halt(process: &Process) -> Receiver<bool> {
    let (sender, receiver) = channel();
    process
        .server
        .halt_all(Box::new(move |result| _ = sender.send(result.is_ok())));
    receiver
}

/// Whether a halt is confirmed in time.
fn is_confirmed(halted: &Receiver<bool>) -> bool {
    halted.recv_timeout(LAST_HALT).unwrap_or(false)
}
