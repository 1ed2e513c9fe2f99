//! The process that judges: everything that is asked of GStreamer without running a pipeline.
//!
//! The toolbox starts it with the first question. It ends by itself when nothing has been asked for a while, and gives the memory of
//! GStreamer's registry back. Read [`run`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ovos_toolbox_sdk::Leash;
use ovos_toolbox_sdk::prelude::ToolError;

use crate::answer::answer;
use crate::catalog::Catalog;
use crate::config::{Config, Section};
use crate::devices::{Devices, Monitor};
use crate::machine::Machine;
use crate::policy::{Policy, is_confined};
use crate::question::{JudgeMessage, NumberedQuestion};
use crate::suggest::Suggestions;
use crate::validate::Spares;

/// The role in which the toolbox starts the process.
pub(crate) const ROLE: &str = "judge";

/// How long it waits for the next question.
const IDLE: Duration = Duration::from_secs(30);

/// Does the work of the process, until nothing is asked any more or its toolbox is gone.
pub(crate) fn run(leash: Leash) {
    let Some(config) = leash.hear::<Section>() else {
        return;
    };
    let mouth = leash.mouth();
    let machine = machine(config, &leash).map(Arc::new);
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let question = match leash.hear_within::<NumberedQuestion>(IDLE) {
            Ok(Some(asked)) => asked,
            Err(_) if busy.load(Ordering::SeqCst) > 0 => continue,
            Ok(None) | Err(_) => return,
        };
        let (machine, mouth, under_way) = (machine.clone(), mouth.clone(), Arc::clone(&busy));
        busy.fetch_add(1, Ordering::SeqCst);
        let id = question.id;
        let answering = move || {
            let answer = machine.and_then(|machine| answer(&machine, question.question, &question.holders));
            mouth.say(&JudgeMessage::Answer { id, answer });
            under_way.fetch_sub(1, Ordering::SeqCst);
        };
        if let Err(error) = std::thread::Builder::new().spawn(answering) {
            busy.fetch_sub(1, Ordering::SeqCst);
            let answer = Err(ToolError::busy(format!("cannot start a thread: {error}")));
            leash.mouth().say(&JudgeMessage::Answer { id, answer });
        }
    }
}

fn machine(written: Section, leash: &Leash) -> Result<Machine, ToolError> {
    // Reads or builds the plugin registry, which forks and may take seconds the first time.
    gst::init()?;
    let config = Config::check(written)?;
    let policy = Policy::new(&config, is_confined())?;
    let is_real = config.sysroot == std::path::Path::new("/");
    Ok(Machine {
        config,
        policy,
        catalog: Catalog::default(),
        suggestions: Suggestions::default(),
        spares: Spares::default(),
        devices: Devices::new(is_real.then(|| Monitor::start(leash.mouth()))),
    })
}
