//! What the service weighs with what comes with it: its files without symbols, and its memory while the simulators are idle.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::memory;
use super::peers::{Bus, BusKind, built, plugins};
use super::table::Table;

/// How long nothing is asked before it is measured, and for how long it is: a simulator rests after ten seconds.
const UNASKED: Duration = Duration::from_secs(25);
const WATCHED: Duration = Duration::from_secs(30);

/// Toolboxes beside a service, with goals for what they take while they are idle.
struct Fleet {
    name: &'static str,
    /// Each with one of its tools.
    toolboxes: &'static [(&'static str, &'static str)],
    beside: &'static [&'static str],
    /// MB.
    pss: f64,
    /// Percent of a core.
    percent: f64,
}

/// Without Python toolboxes: what they take is Python's.
const INSTALLED: Fleet = Fleet {
    name: "an installed service without a configuration, idle",
    toolboxes: &[("math", "add"), ("gstreamer", "validate_pipeline")],
    beside: &[],
    pss: 20.0,
    percent: 0.1,
};
const EVERYTHING: Fleet = Fleet {
    name: "service, robot, drone and gstreamer, simulators idle",
    toolboxes: &[
        ("robot", "wave"),
        ("drone", "vehicle_health"),
        ("gstreamer", "validate_pipeline"),
    ],
    beside: &["px4-sim"],
    pss: 50.0,
    percent: 1.0,
};

/// What a fleet takes while it is idle.
struct Idle {
    /// MB.
    pss: f64,
    processes: usize,
    /// Of one core.
    percent: f64,
}

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
    let names = programs()?;
    let programs: Vec<PathBuf> = names.iter().filter_map(|name| built(name)).collect();
    if programs.len() == names.len() {
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
    for fleet in [&INSTALLED, &EVERYTHING] {
        let Some(idle) = fleet.idle()? else {
            table.note(format!("  PSS of {}", fleet.name), "SKIPPED, not all are built");
            continue;
        };
        table.goal(
            format!("  PSS of {} ({} processes)", fleet.name, idle.processes),
            format!("{:.1} MB", idle.pss),
            &format!("< {:.0} MB", fleet.pss),
            idle.pss < fleet.pss,
        );
        table.goal(
            "    its processor time, of one core",
            format!("{:.2} %", idle.percent),
            &format!("< {:.1} %", fleet.percent),
            idle.percent < fleet.percent,
        );
    }
    Ok(())
}

/// The programs beside the service, which are named by their folders.
fn programs() -> io::Result<Vec<String>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut names = Vec::new();
    for place in ["doors", "programs"] {
        for entry in fs::read_dir(root.join(place))? {
            let folder = entry?.path();
            if let (true, Some(name)) = (folder.join("Cargo.toml").is_file(), folder.file_name()) {
                names.push(format!("ovos-tools-{}", name.to_string_lossy()));
            }
        }
    }
    Ok(names)
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

impl Fleet {
    /// What they take when no call has asked for them for a while; `None` if one of them is not built.
    fn idle(&self) -> io::Result<Option<Idle>> {
        let folder = tempfile::tempdir()?;
        let all = plugins("bench-toolboxes");
        let libraries = self.toolboxes.iter().map(|(id, _)| format!("{id}.so"));
        for name in libraries.chain(self.beside.iter().map(|name| (*name).to_owned())) {
            let file = all.join(&name);
            if !file.exists() {
                return Ok(None);
            }
            fs::copy(file, folder.path().join(name))?;
        }
        let bus = Bus::start(BusKind::Embedded);
        let mut service = bus.serve(&json!({}), Some(folder.path().to_owned()));
        for (_, tool) in self.toolboxes {
            service = bus.lists(service, tool, 1);
        }
        std::thread::sleep(UNASKED);
        let pid = service.process.pid();
        let mut pids = memory::tree(pid);
        pids.push(pid);
        let used = memory::processor_s(&pids);
        std::thread::sleep(WATCHED);
        let percent = (memory::processor_s(&pids) - used) / WATCHED.as_secs_f64() * 100.0;
        Ok(Some(Idle {
            pss: pids.iter().map(|&pid| memory::own(pid).pss).sum(),
            processes: pids.len(),
            percent,
        }))
    }
}
