//! The process `ovos-tools toolbox-host`: confined first, then the plugin. The only use of `plugin` in the service.

use std::path::Path;
use std::process::ExitCode;

use ovos_tools::cli::toolbox_host::{Arguments, Task};
use program::Sockets;

/// Does the task of the process.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let Task {
        probe,
        serve,
        safe_stop,
    } = &arguments.task;
    let confine = arguments.confine.as_deref();
    if let Some(file) = probe {
        host::put_on_probe();
        return host::probe::answer(plugin::probe(file));
    }
    let done = if let Some(file) = serve {
        self::serve(file, confine).map_err(|error| format!("host {}: {error}", file.display()))
    } else if let Some(file) = safe_stop {
        host::enter(confine, file)
            .map_err(|error| format!("safe_stop was not called: {error}"))
            .and_then(|_| plugin::safe_stop(file))
    } else {
        // clap's group requires one of them.
        Err("there is no task".to_owned())
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn serve(file: &Path, confine: Option<&str>) -> std::io::Result<()> {
    program::stand_alone()?;
    let sockets = Sockets::take_stdio()?;
    plugin::serve(file, sockets, host::enter(confine, file))
}

#[expect(clippy::print_stderr, reason = "the service reads it there")]
fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}
