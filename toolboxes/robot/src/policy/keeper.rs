//! The process between the toolbox and a program that moves the robot.
//!
//! It starts the program and ends it, with every process that the program has started: when it is told to, and when the toolbox is
//! gone, however that ended, or when it is sent a signal that ends it. It stands in a process group of its own, because a service that ends a toolbox kills the toolbox's
//! group, and it adopts what the program leaves behind, so that it finds that, too. Read [`run`].

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use executable::check;
use executable::command::{command_of, script_of};
use ovos_toolbox_sdk::Leash;
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    set_parent_process_death_signal, setpgid, wait,
};

use super::words::{Cause, Ending, Errand, Means, Order, Word};

/// The role in which the toolbox starts the process.
pub const ROLE: &str = "policy";
/// How long a program has after SIGTERM.
const TERMINATED: Duration = Duration::from_secs(1);
/// How many of the last lines of a program are kept, and how many bytes of a line.
const LINES: usize = 12;
const LINE: u64 = 400;
/// The most that a program may write in all: a line of 100 bytes at 30 Hz takes an hour for a third of it.
const MOST: u64 = 32 << 20;
/// The pause before the children are listed again where the list had none and there is one.
const AGAIN: Duration = Duration::from_millis(1);
/// How long the last lines of a program may take to be read when it has ended.
const LAST_LINES: Duration = Duration::from_millis(200);

/// What happens to a keeper.
enum Event {
    Told(Order),
    /// The toolbox is gone.
    Alone,
    Ended(ExitStatus),
    Flood,
    /// This process was sent the signal of this name.
    Signal(&'static str),
}

/// Keeps one program, until it has ended or the toolbox is gone.
pub fn run(leash: Leash) {
    let Some(errand) = leash.hear::<Errand>() else {
        return;
    };
    let mouth = leash.mouth();
    let (happens, events) = channel();
    let ready = heed_signals(happens.clone()).and_then(|()| stand_apart());
    let (child, written) = match ready.and_then(|()| begin(&errand)) {
        Ok(begun) => begun,
        Err(why) => return mouth.say(&Word::NotBegun(why)),
    };
    // The number of a process fits.
    mouth.say(&Word::Begun(i32::try_from(child.id()).unwrap_or_default()));
    // Each thread ends with what it waits for.
    let ear = happens.clone();
    std::thread::spawn(move || {
        while let Some(order) = leash.hear::<Order>() {
            _ = ear.send(Event::Told(order));
        }
        _ = ear.send(Event::Alone);
    });
    let mouths = written.map(|pipe| Lines::read(pipe, happens.clone()));
    let ending = accompany(child, &happens, &events, Duration::from_millis(errand.grace_ms));
    let output = Lines::last(mouths);
    mouth.say(&Word::Ended(Ending { output, ..ending }));
}

/// From now on no signal by which people and services end a program ends this process before the program.
fn heed_signals(happens: Sender<Event>) -> Result<(), String> {
    let trouble = |error: std::io::Error| format!("signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(trouble)?;
    let listening = {
        let _entered = runtime.enter();
        signals::Ending::listen()
    };
    let mut ending = listening.map_err(trouble)?;
    // The thread ends with this process.
    std::thread::spawn(move || {
        while happens
            .send(Event::Signal(runtime.block_on(ending.next())))
            .is_ok()
        {}
    });
    Ok(())
}

/// Makes this process outlive the toolbox for the moment that it takes to end the program.
fn stand_apart() -> Result<(), String> {
    let trouble = |what: &'static str| move |error: Errno| format!("{what}: {error}");
    // That signal would end this process alone. Its end of the socket says that the toolbox is gone.
    set_parent_process_death_signal(None).map_err(trouble("PDEATHSIG"))?;
    setpgid(None, None).map_err(trouble("a process group of its own"))?;
    set_child_subreaper(Some(getpid())).map_err(trouble("subreaper"))
}

type Pipes = [Box<dyn Read + Send>; 2];

fn begin(errand: &Errand) -> Result<(Child, Pipes), String> {
    let [program, arguments @ ..] = errand.command.as_slice() else {
        return Err("no command".to_owned());
    };
    let path = checked(errand, program)?;
    let mut command = Command::new(&path);
    command
        .args(arguments)
        .envs(&errand.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    match (child.stdout.take(), child.stderr.take()) {
        (Some(out), Some(err)) => Ok((child, [Box::new(out), Box::new(err)])),
        _ => {
            _ = child.kill();
            Err(format!("{program}: it has no pipes"))
        }
    }
}

/// The path of the program, if no other user could have put code there or into its script.
fn checked(errand: &Errand, program: &str) -> Result<PathBuf, String> {
    let searched = errand.env.get("PATH").map(OsString::from);
    let searched = searched.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let path = command_of(program, &searched)?;
    for file in [Some(path.clone()), script_of(&errand.command)]
        .into_iter()
        .flatten()
    {
        check::file(&file).map_err(|error| error.to_string())?;
    }
    Ok(path)
}

/// Waits for the end of the program, and brings it about when it is time.
fn accompany(mut child: Child, happens: &Sender<Event>, events: &Receiver<Event>, grace: Duration) -> Ending {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let waiter = happens.clone();
    std::thread::spawn(move || {
        if let Ok(status) = child.wait() {
            _ = waiter.send(Event::Ended(status));
        }
    });
    let send = |means: Means| {
        let signal = match means {
            Means::Interrupt => Signal::INT,
            Means::Terminate => Signal::TERM,
            Means::Kill => Signal::KILL,
        };
        // It may have ended just now.
        _ = group.map(|group| kill_process_group(group, signal));
    };
    let mut ending = Ending::default();
    // The next, stronger signal, and when it is sent.
    let mut next: Option<(Means, Instant)> = None;
    loop {
        let event = match next {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((_, at)) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        let means = match event {
            Ok(Event::Ended(status)) => {
                (ending.code, ending.signal) = (status.code(), status.signal());
                break;
            }
            Ok(Event::Told(Order::End)) if ending.means.is_some() => continue,
            Ok(Event::Told(Order::End)) => Means::Interrupt,
            Ok(Event::Flood) => {
                ending.cause.get_or_insert(Cause::Flood);
                Means::Kill
            }
            Ok(Event::Signal(name)) => {
                ending.cause.get_or_insert(Cause::Signal(name.to_owned()));
                Means::Kill
            }
            Ok(Event::Told(Order::Kill) | Event::Alone) | Err(RecvTimeoutError::Disconnected) => Means::Kill,
            Err(RecvTimeoutError::Timeout) => next.map_or(Means::Kill, |(means, _)| means),
        };
        send(means);
        ending.means = ending.means.max(Some(means));
        next = match means {
            Means::Interrupt => Some((Means::Terminate, Instant::now() + grace)),
            Means::Terminate => Some((Means::Kill, Instant::now() + TERMINATED)),
            Means::Kill => None,
        };
    }
    // What is left of its group first, all at once.
    send(Means::Kill);
    ending.left_behind = end_descendants();
    ending
}

/// Kills what the program has left behind, and what that leaves behind in turn; returns how many processes that were. Does not return
/// while the kernel knows of one: a port must not be opened beside it.
fn end_descendants() -> usize {
    let mut ended = 0;
    loop {
        let children = children();
        for pid in &children {
            _ = kill_process(*pid, Signal::KILL);
        }
        // With children that were killed it returns as soon as one of them has ended. The list can leave out a child while others end.
        let options = match children.is_empty() {
            true => WaitOptions::NOHANG,
            false => WaitOptions::empty(),
        };
        match wait(options) {
            Ok(Some(_)) => ended += 1,
            Ok(None) => std::thread::sleep(AGAIN),
            Err(Errno::INTR) => {}
            Err(_) => return ended,
        }
    }
}

/// The children of this process, adopted ones included.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().map(str::parse);
            pids.flatten().filter_map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect()
}

/// The last lines of a pipe, which is read to its end whatever is written.
struct Lines {
    kept: Arc<Mutex<VecDeque<String>>>,
    done: Receiver<()>,
}

impl Lines {
    fn read(pipe: Box<dyn Read + Send>, happens: Sender<Event>) -> Self {
        let kept: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let (ended, done) = channel();
        let lines = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut all = 0;
            loop {
                let mut line = Vec::new();
                // A longer line is cut into several.
                match pipe.by_ref().take(LINE).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
                let before = all;
                all += line.len() as u64;
                if before <= MOST && all > MOST {
                    _ = happens.send(Event::Flood);
                }
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                let mut kept = lines.lock();
                if !text.is_empty() {
                    if kept.len() == LINES {
                        kept.pop_front();
                    }
                    kept.push_back(text);
                }
            }
            drop(ended);
        });
        Self { kept, done }
    }

    /// The last lines of both pipes: those of the output first.
    fn last(pipes: [Self; 2]) -> Vec<String> {
        let mut last = Vec::new();
        for Self { kept, done } in pipes {
            // Its writers have ended.
            _ = done.recv_timeout(LAST_LINES);
            last.extend(kept.lock().drain(..));
        }
        last
    }
}
