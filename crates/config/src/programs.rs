//! The programs that are toolboxes, `service.programs.<name>`, in the order of the files: programs to execute, and Python
//! interpreters whose toolboxes are hosted.

use std::sync::Arc;

use ovos_toolbox_wire::is_toolbox_id;
use serde_json::Value;

use super::reader::Reader;
use super::service::ServiceConfig;
use super::text::describe;
use section::{Confine, ProgramConfig, PythonConfig};

/// The path of an entry, or of a key in it.
pub(super) fn path<'a>(keys: &[&'a str]) -> Vec<&'a str> {
    [&ServiceConfig::PATH[..], &["programs"], keys].concat()
}

/// The programs and interpreters that the entries name.
pub(super) struct Programs {
    pub(super) commands: Vec<Arc<ProgramConfig>>,
    /// The built-in interpreter comes last if the configuration does not name it.
    pub(super) pythons: Vec<Arc<PythonConfig>>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Programs {
    let mut programs = Programs {
        commands: Vec::new(),
        pythons: Vec::new(),
    };
    let is_set = |entry: &Value, key: &str| entry.get(key).is_some_and(|written| !written.is_null());
    let written = reader.written(&path(&[]));
    for (name, entry) in written.iter().filter(|(_, entry)| !entry.is_null()) {
        let is_built_in = name == PythonConfig::BUILT_IN && !is_set(entry, "command");
        if is_built_in || is_set(entry, "interpreter") {
            programs.pythons.push(Arc::new(python(reader, name)));
        } else {
            programs.commands.push(Arc::new(command(reader, name)));
        }
    }
    let of_name = |name: &str| name == PythonConfig::BUILT_IN;
    let written = programs.commands.iter().any(|program| of_name(&program.name))
        || programs.pythons.iter().any(|python| of_name(&python.name));
    if !written {
        programs
            .pythons
            .push(Arc::new(python(reader, PythonConfig::BUILT_IN)));
    }
    programs
}

fn command(reader: &mut Reader<'_>, name: &str) -> ProgramConfig {
    let at = path(&[name]);
    check_name(reader, name);
    let written = reader.written(&at);
    let missing = written.get("command").is_none_or(Value::is_null);
    let (mut program, rest) = reader.open(&at, written, ProgramConfig::new(name));
    // The name is not a key of the entry.
    name.clone_into(&mut program.name);
    reader.refuse(&at, &program, rest, &["confine"]);
    if missing {
        let accepted =
            "the command to execute, such as \"command\": \"/opt/arm/arm.py\", or a list with arguments";
        reader.wrong(&at, "no command", accepted);
    }
    program.confine = confine(reader, name);
    program
}

fn python(reader: &mut Reader<'_>, name: &str) -> PythonConfig {
    let at = path(&[name]);
    check_name(reader, name);
    let written = reader.written(&at);
    let (mut python, rest) = reader.open(&at, written, PythonConfig::new(name));
    name.clone_into(&mut python.name);
    reader.refuse(&at, &python, rest, &["confine"]);
    python.confine = confine(reader, name);
    python
}

fn check_name(reader: &mut Reader<'_>, name: &str) {
    if !is_toolbox_id(name) {
        let accepted = "a name of 1 to 64 of a-z, 0-9, _ and - (`service` and `all` are reserved)";
        reader.wrong(&path(&[name]), format!("the name {name:?}"), accepted);
    }
}

fn confine(reader: &mut Reader<'_>, name: &str) -> Option<Confine> {
    let confine = path(&[name, "confine"]);
    match reader.stack.get(&confine) {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Object(_)) => Some(reader.closed(&confine, Confine::default())),
        Some(other) => {
            reader.wrong(&confine, describe(other), "an object, or false");
            None
        }
    }
}
