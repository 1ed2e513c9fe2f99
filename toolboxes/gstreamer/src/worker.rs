//! The process of one running pipeline.
//!
//! The toolbox starts it, tells it a description, and then gives it orders; it makes the pipeline, plays it and reports. It is one
//! run: whether there is another one is decided in the toolbox (`instance`). One thread owns the pipeline and changes its state, sends it
//! events and sets its properties (`life`), because each of these may hang in an element; then the toolbox kills the process.
//! Read [`run`].

mod bounds;
mod build;
mod change;
mod drawing;
mod headers;
mod inbox;
mod life;
mod meters;
mod picture;
mod recording;
mod tap;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::{Leash, Mouth};

use crate::config::Config;
use crate::folder::make_private;
use crate::order::{Assignment, Command, MadePipeline, Order, Word};
use crate::policy::{Policy, is_confined};
use build::{Built, build};
use inbox::Inbox;
use life::Player;

/// The role in which the toolbox starts the process.
pub(crate) const ROLE: &str = "worker";

/// Does the work of the process, until its pipeline is over or its toolbox is gone.
pub(crate) fn run(leash: Leash) {
    let Some(assignment) = leash.hear::<Assignment>() else {
        return;
    };
    let mouth = leash.mouth();
    let (policy, built) = match make(assignment) {
        Ok(parts) => parts,
        Err(error) => return mouth.say(&Word::Made(Err(error))),
    };
    let pipeline = built.pipeline;
    mouth.say(&Word::Made(Ok(MadePipeline {
        uses: built.uses,
        elements: in_order(&pipeline),
    })));
    let Some(Order::Play) = leash.hear::<Order>() else {
        return;
    };
    let (inbox, inputs) = Inbox::new();
    let player = Player::new(
        policy,
        pipeline.clone(),
        mouth.clone(),
        Arc::clone(&inbox),
        inputs,
    );
    let playing = std::thread::Builder::new().name("player".to_owned()).spawn(|| {
        if catch_unwind(AssertUnwindSafe(|| player.play())).is_err() {
            // The toolbox says so: a process that ended without its last word has crashed.
            std::process::abort();
        }
    });
    if let Err(error) = playing {
        return mouth.say(&Word::Made(Err(ToolError::busy(format!(
            "cannot start a thread for the pipeline: {error}"
        )))));
    }
    while let Some(order) = leash.hear::<Order>() {
        if let Order::Do { id, command } = order {
            obey(&pipeline, &mouth, &inbox, id, command);
        }
    }
    // The toolbox is gone. What is left of the pipeline's threads could hold up an orderly end.
    std::process::abort()
}

fn make(assignment: Assignment) -> Result<(Arc<Policy>, Built), ToolError> {
    let config = Config::check(assignment.config)?;
    make_private(&config.scratch())?;
    stand_in(&config.scratch())?;
    let confined = is_confined();
    if confined {
        make_private(&config.snapshot_dir)?;
        bounds::narrow(&config)?;
    }
    gst::init()?;
    let policy = Policy::new(&config, confined)?;
    let built = build(&policy, &assignment.pipeline)?;
    Ok((Arc::new(policy), built))
}

/// Codecs write files of their own where their process stands.
#[expect(clippy::disallowed_methods, reason = "this process is one pipeline's alone")]
fn stand_in(folder: &Path) -> Result<(), ToolError> {
    Ok(std::env::set_current_dir(folder)?)
}

fn obey(pipeline: &gst::Pipeline, mouth: &Mouth, inbox: &Inbox, id: u64, command: Command) {
    let pipeline = pipeline.clone();
    // What only looks is done aside, because the pipeline's thread may hang.
    let look: Box<dyn FnOnce() -> Result<Value, ToolError> + Send> = match command {
        Command::Picture {
            element,
            format,
            path,
        } => Box::new(move || json_of(picture::take(&pipeline, element.as_deref(), format, path)?)),
        Command::Draw { caps, properties } => {
            Box::new(move || json_of(drawing::draw(&pipeline, caps, properties)))
        }
        command => return inbox.command(id, command),
    };
    let aside = mouth.clone();
    let looking = std::thread::Builder::new().spawn(move || aside.say(&Word::Answer { id, answer: look() }));
    if let Err(error) = looking {
        let answer = Err(ToolError::busy(format!("cannot start a thread: {error}")));
        mouth.say(&Word::Answer { id, answer });
    }
}

fn json_of(answer: impl Serialize) -> Result<Value, ToolError> {
    Ok(serde_json::to_value(answer)?)
}

/// The names of all elements, in the order in which GStreamer starts them: the sinks first, and what is in a bin before the bin.
fn in_order(pipeline: &gst::Pipeline) -> Vec<String> {
    fn add(bin: &gst::Bin, names: &mut Vec<String>) {
        let mut elements = bin.iterate_sorted();
        while let Ok(Some(element)) = elements.next() {
            if let Some(inner) = element.downcast_ref::<gst::Bin>() {
                add(inner, names);
            }
            names.push(element.name().to_string());
        }
    }
    let mut names = Vec::new();
    add(pipeline.upcast_ref(), &mut names);
    names
}
