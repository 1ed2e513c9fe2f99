//! `ovos-tools check`: tells the author of a plugin or a program what is wrong with it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use ::config::Section;
use cli::{CliError, Context, Paint, Tone, ToolRow, count, plain, tool_table};
use host::python::look;
use host::{
    Counterpart, Greeter, Inspection, ProgramConfig, Switch, inspect, inspect_own, inspect_program, scan,
    section_of, why_unconfined,
};
use ovos_toolbox_wire::is_toolbox_id;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools check target/debug/libhello.so
  ovos-tools check plugins/math.so --json
  ovos-tools check ./arm.py
  ovos-tools check arm
  ovos-tools check ovos-math-tools
  ovos-tools check my-robot.toml
  ovos-tools check my-robot.toml --live
  ovos-tools check my-robot.toml --plugins ./plugins

Needs no service and no bus. Runs the code that you check: a plugin is loaded in a child process with the `env` of the section \
that has the file's name, and a program is started as the service would start it. A file that ends in .toml is opened by the \
installed toolbox that reads such files, and moves nothing; --live reaches the machine as well, tells it to stand, and says what \
it lacks. FILE is looked up as the name of a program in the configuration, \
then as a file, then as an entry point of the Python toolboxes that the service hosts. Exits with 1 when something keeps the \
plugin or one of its tools from being used; warnings do not affect the exit code.")]
pub(crate) struct Arguments {
    /// The plugin (.so), the program, the name of a program in the configuration, the entry point of a Python toolbox, or a
    /// robot's file (.toml)
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// For a robot's file: compare it with the robot itself, which has to be on; nothing else may use it at that time
    #[arg(long)]
    live: bool,
    /// For a robot's file: where its toolbox is looked for, instead of the configured folders; may be given several times
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    plugins: Vec<PathBuf>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    if arguments.live && !is_file_of_a_toolbox(&arguments.file) {
        return Err(CliError::Refused(format!(
            "--live compares a robot's file with the robot: {} is not a file that ends in .toml",
            arguments.file.display()
        )));
    }
    let mut greeter = greeter()?;
    if let Some(entry) = entry(&arguments.file, context) {
        return show(&inspect_program(&entry, &greeter).await, context);
    }
    if is_file_of_a_toolbox(&arguments.file) {
        let folders = match arguments.plugins.as_slice() {
            [] => context.config()?.service.plugins_dir.clone(),
            paths => paths.to_vec(),
        };
        let (plugins, _) = scan(&folders);
        let counterpart = match arguments.live {
            true => Counterpart::Machine,
            false => Counterpart::Nothing,
        };
        let found = inspect_own(&arguments.file, counterpart, &plugins, &greeter).await;
        return show(&found.map_err(CliError::Refused)?, context);
    }
    if let Some(id) = toolbox_id(&arguments.file) {
        let found = match entry_point(id, &greeter, context).await {
            Ok(entry) => inspect_program(&entry, &greeter).await,
            Err(errors) => Inspection {
                path: arguments.file.clone(),
                errors,
                ..Inspection::default()
            },
        };
        return show(&found, context);
    }
    let mut unread = None;
    match environment(&arguments.file, context) {
        Ok(env) => greeter.env = env,
        Err(error) => {
            unread = Some(format!(
                "the configuration is invalid, so `env` was not applied: {error}"
            ))
        }
    }
    let mut found = inspect(&arguments.file, &greeter).await;
    found.warnings.extend(unread);
    let section = section_of(&arguments.file).and_then(|id| context.config().ok()?.toolbox(id).ok());
    found
        .warnings
        .extend(section.and_then(|section| unconfined(&section)));
    show(&found, context)
}

/// Returns what is needed to try files out with this program.
///
/// # Errors
/// The file of this program is not known.
pub(super) fn greeter() -> Result<Greeter, CliError> {
    Greeter::current_exe().map_err(|cause| CliError::Machine {
        what: "find this program".to_owned(),
        cause,
    })
}

/// Returns the program that an argument names: the program of the configuration with this name, or an executable file that is not
/// a plugin.
fn entry(argument: &Path, context: &Context<'_, '_>) -> Option<Arc<ProgramConfig>> {
    let config = context.config().ok();
    let mut programs = config.iter().flat_map(|config| &config.programs);
    if let Some(named) = programs.find(|program| Path::new(&program.name) == argument) {
        return Some(named.clone());
    }
    let is_plugin = argument.extension().is_some_and(|ending| ending == "so");
    let mode = std::fs::metadata(argument)
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .mode();
    if is_plugin || mode & 0o111 == 0 {
        return None;
    }
    let command = std::path::absolute(argument)
        .ok()?
        .into_os_string()
        .into_string()
        .ok()?;
    Some(Arc::new(ProgramConfig {
        command: vec![command],
        toolboxes: vec!["*".to_owned()],
        ..ProgramConfig::new("program")
    }))
}

/// Whether the argument is a file that a toolbox reads, such as that of a robot: neither a plugin nor executable.
fn is_file_of_a_toolbox(argument: &Path) -> bool {
    let ending = argument.extension();
    argument.is_file() && ending.is_some_and(|ending| ending == "toml")
}

/// Returns the argument as a possible toolbox id, if it does not name a file.
fn toolbox_id(argument: &Path) -> Option<&str> {
    let id = argument.to_str().filter(|id| is_toolbox_id(id));
    id.filter(|_| std::fs::symlink_metadata(argument).is_err())
}

/// Returns the program that hosts one toolbox of a Python interpreter alone.
///
/// # Errors
/// The places where the toolbox was looked for.
async fn entry_point(
    id: &str,
    greeter: &Greeter,
    context: &Context<'_, '_>,
) -> Result<Arc<ProgramConfig>, Vec<String>> {
    let config = context.config().map_err(|error| vec![error.to_string()])?;
    let mut missing = vec![format!(
        "{id} is neither a file nor a program of the configuration"
    )];
    for entry in config.pythons.iter().filter(|entry| entry.enabled != Switch::Off) {
        let name = &entry.name;
        let found = match look(entry, greeter).await {
            Ok(found) => found,
            Err(reason) => return Err(vec![reason]),
        };
        missing.extend(
            found
                .passed_over
                .iter()
                .map(|why| format!("program `{name}`: {why}")),
        );
        let Some(interpreter) = found.interpreter else {
            continue;
        };
        match interpreter.alone(entry, id) {
            Ok(Some(program)) => return Ok(program),
            Ok(None) => {
                let all: Vec<&str> = interpreter
                    .toolboxes
                    .iter()
                    .map(|one| one.entry_point.as_str())
                    .collect();
                let (path, all) = (interpreter.path.display(), all.join(", "));
                missing.push(format!(
                    "program `{name}`: {path} has no toolbox `{id}`; it has {all}"
                ));
            }
            Err(problem) => return Err(vec![problem]),
        }
    }
    Err(missing)
}

fn show(found: &Inspection, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    context.output.result(found, |paint| render(found, paint))?;
    match found.errors() {
        0 => Ok(()),
        errors => Err(CliError::Refused(format!(
            "{}: {}",
            found.path.display(),
            count(errors, "error", "errors")
        ))),
    }
}

/// The `env` of the file's section, with which the service loads the file.
fn environment(file: &Path, context: &Context<'_, '_>) -> Result<BTreeMap<String, String>, CliError> {
    match section_of(file) {
        Some(id) => Ok(context.config()?.toolbox(id)?.toolbox.env.clone()),
        None => Ok(BTreeMap::new()),
    }
}

/// Tells why this machine cannot confine the toolbox as its section asks.
fn unconfined(section: &Section) -> Option<String> {
    let missed = why_unconfined(section.toolbox.confine.as_ref()?)?;
    Some(format!("runs unconfined: {missed}"))
}

fn render(found: &Inspection, paint: Paint) -> String {
    let mut text = render_toolbox(found, paint);
    for toolbox in &found.toolboxes {
        text += &format!("\n{}", render_toolbox(toolbox, paint));
    }
    text
}

/// Describes a file, a program, or one toolbox of a program.
fn render_toolbox(found: &Inspection, paint: Paint) -> String {
    let mut text = String::new();
    match &found.manifest {
        Some(manifest) => {
            let or = |text: &str, none: &str| plain(if text.is_empty() { none } else { text }).into_owned();
            text += &format!(
                "{} {} · {}\n{}\n",
                paint.tone(Tone::Strong, &manifest.id),
                or(&manifest.version, "without version"),
                or(&manifest.licence, "no licence"),
                or(manifest.description.trim(), "No description.")
            );
        }
        None => {
            text += &format!(
                "{}\n",
                paint.tone(Tone::Strong, &found.path.display().to_string())
            )
        }
    }
    if !found.tools.is_empty() {
        let rows = found.tools.iter().map(|tool| ToolRow {
            name: &tool.name,
            effect: Some((tool.effect, tool.audience)),
            argument_schema: &tool.argument_schema,
            description: &tool.description,
        });
        text += &format!("\n{}\n", tool_table(rows, paint));
    }
    for error in &found.errors {
        text += &format!("{} {}\n", paint.tone(Tone::Bad, "error:"), plain(error));
    }
    for warning in &found.warnings {
        text += &format!("{} {}\n", paint.tone(Tone::Warning, "warning:"), plain(warning));
    }
    if found.errors.is_empty() && found.warnings.is_empty() {
        text += &format!("{}\n", paint.tone(Tone::Good, "no problems found"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn findings_are_listed_below_the_manifest() {
        for (found, text) in [
            (
                json!({"path": "/p/x.so", "manifest": null, "tools": [], "warnings": [],
                    "errors": ["/p/x.so is cut off: 12 of 4096 bytes", "bad\u{1b}[2J"]}),
                "/p/x.so\nerror: /p/x.so is cut off: 12 of 4096 bytes\nerror: bad\\u{1b}[2J\n",
            ),
            (
                json!({"path": "/p/x.so", "errors": [], "warnings": [], "tools": [{"name": "hello",
                        "description": "Greets.\nTwice.", "effect": "write", "output_schema": {},
                        "argument_schema": {"required": ["who"], "properties": {"who": {}, "how": {}}}}],
                    "manifest": {"id": "hello", "version": "1.0.0", "licence": "Apache-2.0", "description": "Hi."}}),
                "hello 1.0.0 · Apache-2.0\nHi.\n\n NAME   EFFECT  ARGUMENTS   DESCRIPTION\n hello  write   who, [how]  \
                 Greets.\n\nno problems found\n",
            ),
            (
                json!({"path": "/p/x.so", "errors": [], "tools": [], "manifest": {"id": "hello"},
                    "warnings": ["it has no tool that can be used"]}),
                "hello without version · no licence\nNo description.\nwarning: it has no tool that can be used\n",
            ),
            (
                json!({"path": "/p/x.py", "manifest": null, "tools": [], "errors": [], "warnings": [], "toolboxes": [
                    {"path": "", "manifest": {"id": "a", "version": "1", "licence": "MIT", "description": "A."},
                        "tools": [], "errors": ["it hangs"], "warnings": []},
                    {"path": "", "manifest": {"id": "b", "version": "2", "licence": "MIT", "description": "B."},
                        "tools": [], "errors": [], "warnings": []}]}),
                "/p/x.py\nno problems found\n\na 1 · MIT\nA.\nerror: it hangs\n\n\
                 b 2 · MIT\nB.\nno problems found\n",
            ),
        ] {
            let found: Inspection = serde_json::from_value(found).unwrap();
            assert_eq!(render(&found, Paint::default()), text);
        }
    }
}
