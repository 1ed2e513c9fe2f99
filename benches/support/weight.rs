//! What the service weighs with what comes with it: its files without symbols, and its memory while the simulators are idle.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::memory::{self, Memory};
use super::peers::{Bus, BusKind, built, plugins};
use super::table::Table;

/// Programs beside the service.
const PROGRAMS: [&str; 4] = [
    "ovos-tools-agent",
    "ovos-tools-mcp",
    "ovos-tools-voice",
    "ovos-tools-mounts",
];
/// The toolboxes whose memory has a goal, and a tool of each.
const LARGE: [(&str, &str); 3] = [
    ("robot", "wave"),
    ("drone", "vehicle_health"),
    ("gstreamer", "validate_pipeline"),
];

pub(crate) fn rows(table: &mut Table) -> io::Result<()> {
    eprintln!("bench: sizes and memory");
    table.heading("what it weighs");
    let (toolboxes, beside) = shipped()?;
    let service = PathBuf::from(env!("CARGO_BIN_EXE_ovos-tools"));
    let size = stripped(&[service].into_iter().chain(toolboxes).collect::<Vec<_>>())?;
    let figure = format!("{size:.1} MB");
    table.goal(
        "  service and toolboxes, without symbols",
        figure,
        "< 42 MB",
        size < 42.0,
    );
    let programs: Vec<PathBuf> = PROGRAMS.iter().filter_map(|name| built(name)).collect();
    if programs.len() == PROGRAMS.len() {
        let size = stripped(&programs.into_iter().chain(beside).collect::<Vec<_>>())?;
        table.goal(
            "  doors and programs, without symbols",
            format!("{size:.1} MB"),
            "< 25 MB",
            size < 25.0,
        );
    } else {
        table.note("  doors and programs", "SKIPPED, not all are built");
    }
    match with_simulators()? {
        Some((memory, processes)) => table.goal(
            format!("  PSS of service, robot, drone and gstreamer, simulators idle ({processes} processes)"),
            format!("{:.1} MB", memory.pss),
            "< 45 MB",
            memory.pss < 45.0,
        ),
        None => table.note(
            "  PSS of service, robot, drone and gstreamer",
            "SKIPPED, not all are built",
        ),
    }
    Ok(())
}

/// The toolboxes that come with the service, and the programs that come with them.
fn shipped() -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let files: io::Result<Vec<PathBuf>> = fs::read_dir(plugins("bench-toolboxes"))?
        .map(|entry| Ok(entry?.path()))
        .collect();
    Ok(files?
        .into_iter()
        .partition(|path| path.extension().is_some_and(|extension| extension == "so")))
}

/// The size of files in MB, without the symbols that packages split off.
fn stripped(files: &[PathBuf]) -> io::Result<f64> {
    let folder = tempfile::tempdir()?;
    let mut bytes = 0;
    for (number, file) in files.iter().enumerate() {
        let copy = folder.path().join(number.to_string());
        let mut strip = Command::new("strip");
        strip.args(["--strip-unneeded", "-o"]).args([&copy, file]);
        if !strip.status()?.success() {
            return Err(io::Error::other(format!("strip {}", file.display())));
        }
        bytes += fs::metadata(copy)?.len();
    }
    Ok(bytes as f64 / 1e6)
}

/// Memory of the service, its toolboxes and their simulators, without mavsdk_server, and how many processes that are.
fn with_simulators() -> io::Result<Option<(Memory, usize)>> {
    let folder = tempfile::tempdir()?;
    let all = plugins("bench-toolboxes");
    let files = LARGE.map(|(id, _)| format!("{id}.so"));
    for name in files.into_iter().chain(["px4-sim".to_owned()]) {
        let file = all.join(&name);
        if !file.exists() {
            return Ok(None);
        }
        fs::copy(file, folder.path().join(name))?;
    }
    let bus = Bus::start(BusKind::Embedded);
    let mut service = bus.serve(&json!({}), Some(folder.path().to_owned()));
    for (_, tool) in LARGE {
        service = bus.lists(service, tool, 1);
    }
    let pid = service.process.pid();
    let (mut memory, processes) = memory::below(pid, Some("mavsdk_server"));
    memory.pss += memory::own(pid).pss;
    Ok(Some((memory, processes + 1)))
}
