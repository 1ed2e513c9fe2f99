//! The settings of the plugin manager and of the engine, from the configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::Manifest;

use super::admission;
use config::{CallLimits, Config, ConfigErrors, ProcessEnvironment, Section};
use engine::Limits;
use host::greeter::FILE_LIMIT;
use host::{Greeter, Settings, Switch, ToolboxSettings};

/// The name of the program that mounts servers as toolboxes.
const MOUNTS: &str = "ovos-tools-mounts";

/// The settings of the plugin manager. `newest` returns the configuration for the next toolbox to load, and its number.
///
/// # Errors
/// The path of this program is unknown.
pub(super) fn manager_settings(
    config: &Arc<Config>,
    newest: impl Fn() -> Option<(Arc<Config>, u64)> + Send + Sync + 'static,
) -> Result<Settings, String> {
    let service = &config.service;
    let mut greeter = Greeter::current_exe().map_err(|error| format!("find this program: {error}"))?;
    // Programs have a longer default than files. A configured `probe_ms` is the limit of both.
    if service.probe != FILE_LIMIT {
        (greeter.limit, greeter.hello) = (service.probe, service.probe);
    }
    let (max_result_bytes, fallback) = (service.max_result_bytes, config.clone());
    let newest = Arc::new(move || newest().unwrap_or_else(|| (fallback.clone(), 0)));
    let mounts = mounts_program();
    let programs = {
        let newest = newest.clone();
        move || {
            let config = newest().0;
            let mounts = config.mount_programs(&mounts, &ProcessEnvironment);
            let programs = config.programs.iter().cloned().chain(mounts);
            programs.filter(|program| program.enabled).collect()
        }
    };
    let pythons = {
        let newest = newest.clone();
        move || {
            let pythons = newest().0.pythons.clone();
            let on = pythons.into_iter().filter(|python| python.enabled != Switch::Off);
            on.collect()
        }
    };
    let configured = move |section: Result<Arc<Section>, ConfigErrors>, reading: u64| {
        let section = section.map_err(|errors| errors.to_string())?;
        let limits = &section.limits;
        let times = (limits.open, limits.close);
        let toolbox = section.toolbox.clone();
        Ok(ToolboxSettings {
            reading,
            ..ToolboxSettings::new(toolbox, limits.memory_mb, max_result_bytes, times)
        })
    };
    let mounted = {
        let newest = newest.clone();
        move |id: &str| {
            let (config, reading) = newest();
            configured(config.mounted(id), reading)
        }
    };
    let admit = {
        let newest = newest.clone();
        move |manifest: &Manifest, path: &Path| admission::admit(&newest().0, manifest, path)
    };
    let section = move |id: &str| {
        let (config, reading) = newest();
        configured(config.toolbox(id), reading)
    };
    Ok(Settings {
        stage_dirs: service.stage_dirs.clone(),
        content_dir: Some(service.content_dir()),
        max_failures: service.max_failures,
        drain: service.drain,
        config: Arc::new(section),
        mounted: Arc::new(mounted),
        admit: Arc::new(admit),
        programs: Arc::new(programs),
        pythons: Arc::new(pythons),
        ..Settings::new(service.plugins_dir.clone(), greeter)
    })
}

/// The program that mounts servers: the one beside this program, else the one in `PATH`.
fn mounts_program() -> String {
    let own = std::env::current_exe().ok();
    let beside = own.map(|own| own.with_file_name(MOUNTS));
    let beside = beside.filter(|beside| beside.is_file());
    let beside = beside.and_then(|beside| beside.into_os_string().into_string().ok());
    beside.unwrap_or_else(|| MOUNTS.to_owned())
}

/// The engine's limits for the calls of a toolbox, which may take `halt` to answer a halt.
pub(super) fn engine_limits(limits: &CallLimits, config: &Config, halt: Duration) -> Limits {
    Limits {
        max_waiting: limits.max_waiting,
        max_wait: limits.max_wait,
        plan: config.service.plan,
        default_timeout: limits.default_timeout,
        grace: limits.grace,
        settle: limits.settle,
        safe_limit: limits.safe_limit,
        halt,
    }
}
