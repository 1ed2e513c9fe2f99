//! The program: from its first notice to its end. Read [`run`].

use std::process::ExitCode;
use std::time::Duration;

use ovos_toolbox_wire::Manifest;
use protocol::{Hello, Notice, Order, PROTOCOL, Raw};
use signals::Ending;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep_until;

use crate::lanes::{Brought, Lanes, NoticeSender};
use crate::served::Served;
use crate::voice::Voice;

/// How long writing the last notices may take.
const FLUSH: Duration = Duration::from_millis(300);

/// Serves the toolbox `id` until the service closes it or is gone.
pub(crate) fn run(id: &str) -> ExitCode {
    match serve_alone(id) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(70)
        }
    }
}

fn serve_alone(id: &str) -> Result<(), String> {
    let lanes = Lanes::take().map_err(|error| {
        format!("descriptors 3 and 4 are not sockets ({error}): ovos-tools starts this program, for each server in service.mounts")
    })?;
    let (notices, brought) = lanes
        .serve(&hello(id))
        .map_err(|error| format!("the service is gone: {error}"))?;
    // Everything of a mount runs on this thread, because the kernel ends the servers when the thread that started them ends.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    // This fails if another part of the program has already installed a provider, which is just as good.
    _ = rustls::crypto::ring::default_provider().install_default();
    runtime.block_on(serve(id, &notices, brought))?;
    notices.flush(FLUSH);
    // Remaining work, such as sending a cancel to a server, is not waited for.
    runtime.shutdown_background();
    Ok(())
}

fn hello(id: &str) -> Notice {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let manifest = Manifest {
        id: id.to_owned(),
        version: version.clone(),
        description: "A server of the Model Context Protocol.".to_owned(),
        licence: env!("CARGO_PKG_LICENSE").to_owned(),
        // The server may hold a device, a port or a lock.
        exclusive: true,
        ..Manifest::default()
    };
    Notice::Hello(Hello {
        protocol: PROTOCOL,
        version,
        features: Vec::new(),
        toolboxes: vec![Raw::of(&manifest)],
    })
}

async fn serve(
    id: &str,
    notices: &NoticeSender,
    mut brought: UnboundedReceiver<Brought>,
) -> Result<(), String> {
    // The channel needs no limit: it has as many ends as there are runs, which `max_queued` limits.
    let (ends, mut ended) = unbounded_channel();
    let mut ending = Ending::listen().map_err(|error| format!("signals: {error}"))?;
    let mut served: Option<Served> = None;
    // The emergency stop that became known before the toolbox was opened, if any.
    let mut epoch = 0;
    loop {
        if served.as_ref().is_some_and(Served::may_end)
            && let Some(served) = served.take()
        {
            let last = served.end().await;
            notices.say(&last);
            return Ok(());
        }
        let deadline = served.as_ref().and_then(Served::deadline);
        let over = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let given_up = async {
            match &mut served {
                Some(served) => served.given_up().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The program ends with an error; the service then starts it again.
            why = given_up => return Err(why),
            word = brought.recv() => match word {
                Some(Brought::Order(Order::Open(mut opening))) => {
                    opening.stop_epoch = opening.stop_epoch.max(epoch);
                    let voice = Voice::new(notices.clone());
                    served = Some(Served::open(id, &opening, voice, ends.clone()));
                }
                Some(Brought::Order(order)) => match &mut served {
                    Some(served) => served.order(order),
                    None => match order {
                        Order::Epoch { stop_epoch } => epoch = epoch.max(stop_epoch),
                        Order::Close { seq } => {
                            notices.say(&Notice::Closed { seq, in_time: true });
                            return Ok(());
                        }
                        _ => {}
                    },
                },
                // The keepers of the servers notice the end of this process.
                Some(Brought::End(why)) => return why.map_or(Ok(()), Err),
                None => return Ok(()),
            },
            end = ended.recv() => {
                if let (Some(end), Some(served)) = (end, &mut served) {
                    served.ended(end);
                }
            }
            _ = ending.next() => return Ok(()),
            () = over => {}
        }
    }
}

#[allow(
    clippy::print_stderr,
    reason = "the service logs it, and a person who starts it by hand reads it"
)]
fn complain(error: &str) {
    eprintln!("ovos-tools-mounts: {error}");
}
