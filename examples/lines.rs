//! The door to copy: calls from stdin, one a line as `NAME {"argument": value}`, each answered with a line of JSON.
//!
//! It shows what makes a door: the tools of a toolset, both stops ahead of everything, calls that begin in the order of arrival,
//! and an end of what moves when its client is gone. `ovos-tools lines` starts it from beside `ovos-tools` or from the path.

#![forbid(unsafe_code)]

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use client::Step;
use client::payload::{CallOptions, InvokeRequest};
use config::Toolset;
use door::program::{self, DoorConnection, Options, ProgramError, block_on, failed};
use door::{Answer, Door, ListedTool, OwnTool as _, StopTool, Turn, own_id};
use ovos_toolbox_wire::{Effect, Object};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The name of the door on the bus.
const SOURCE: &str = "ovos-tools-lines";

/// How many lines wait to be read.
const WAITING: usize = 16;

/// The tools of a running ovos-tools, for lines on stdin
#[derive(Debug, Parser)]
#[command(name = SOURCE, bin_name = "ovos-tools lines", version)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let arguments: Arguments = match program::arguments() {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    arguments.options.log("warn", "info", "");
    match block_on(serve(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, error.exit_code()),
    }
}

/// Serves the lines until stdin ends or the program is told to end.
async fn serve(arguments: &Arguments) -> Result<(), ProgramError> {
    let config = arguments.options.load()?;
    let Some(connection) = DoorConnection::connect(&config, SOURCE).await? else {
        return Ok(());
    };
    let door = connection.door("lines", &Toolset::default(), &[]);
    door.refreshed().await;
    let follower = Arc::clone(&door);
    door.tasks.spawn(async move { follower.follow().await });
    let (arrivals, calls, gone) = (door.arrivals(), TaskTracker::new(), CancellationToken::new());
    let mut lines = read_lines();
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = connection.shutdown.cancelled() => None,
        };
        let Some(line) = line else { break };
        let (name, arguments) = line.trim().split_once(' ').unwrap_or((line.trim(), "{}"));
        // A stop looks at nothing but its name, and waits for nothing.
        if let Some(stop) = StopTool::named(name) {
            let (name, stopping) = (name.to_owned(), door.begin_stop(stop));
            calls.spawn(async move { print(&name, &stopping.await) });
            continue;
        }
        let listing = door.listing();
        match (listing.tool(name), serde_json::from_str(arguments)) {
            (Some(tool), Ok(arguments)) => {
                let (door, tool) = (Arc::clone(&door), Arc::clone(tool));
                let (turn, gone) = (arrivals.turn(), gone.clone());
                calls.spawn(async move {
                    let answer = call(&door, &turn, &tool, arguments, &gone).await;
                    print(&tool.exported, &answer);
                });
            }
            (None, _) => print(name, &refused("there is no such tool")),
            (_, Err(error)) => print(
                name,
                &refused(&format!("expected a JSON object after the name: {error}")),
            ),
        }
    }
    // The client is gone: what moves for it comes to rest, and what does not is answered.
    gone.cancel();
    calls.close();
    calls.wait().await;
    connection.close().await;
    Ok(())
}

/// Makes one call, and ends it when the client is gone while something moves.
async fn call(door: &Door, turn: &Turn, tool: &ListedTool, args: Object, gone: &CancellationToken) -> Answer {
    let call_id = own_id("lines");
    let request = InvokeRequest {
        name: tool.name.clone(),
        args,
        toolbox_id: Some(tool.toolbox_id.clone()),
        options: CallOptions {
            call_id: Some(call_id.clone()),
            ..CallOptions::default()
        },
    };
    let send = |patience| door.client.invoke(request, patience);
    let mut carried = match door.carry(turn, tool, &call_id, send).await {
        Ok(carried) => carried,
        Err(why) => return Answer::not_begun(tool, &why),
    };
    let mut ends = tool.effect == Effect::Motion;
    loop {
        tokio::select! {
            () = gone.cancelled(), if ends => {
                ends = false;
                carried.cancel("its client is gone");
            }
            step = carried.next() => match step {
                Ok(Step::Answer(answer)) => return Answer::of(tool, &answer),
                Ok(Step::Progress(_)) => {}
                Err(lost) => return Answer::lost(tool, &lost, "its client is gone"),
            },
        }
    }
}

fn refused(why: &str) -> Answer {
    Answer::failure(why, json!({"error": {"kind": "ValueError", "message": why}}))
}

fn print(name: &str, answer: &Answer) {
    let line = json!({"tool": name, "failed": answer.failed, "answer": answer.data});
    // Without stdout nothing hears the answer, and the end of stdin follows.
    _ = writeln!(std::io::stdout(), "{line}");
}

/// Reads stdin on a thread of its own, because such a read cannot be cancelled.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
