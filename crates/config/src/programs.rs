//! The programs that are toolboxes, `service.programs.<name>`, in the order of the files.

use std::sync::Arc;

use ovos_toolbox_wire::is_toolbox_id;
use serde_json::Value;

use super::reader::Reader;
use super::service::ServiceConfig;
use super::text::describe;
use section::{Confine, ProgramConfig};

/// The path of an entry, or of a key in it.
pub(super) fn path<'a>(keys: &[&'a str]) -> Vec<&'a str> {
    [&ServiceConfig::PATH[..], &["programs"], keys].concat()
}

pub(super) fn read(reader: &mut Reader<'_>) -> Vec<Arc<ProgramConfig>> {
    let written = reader.written(&path(&[]));
    let entries = written.iter().filter(|(_, entry)| !entry.is_null());
    entries.map(|(name, _)| Arc::new(entry(reader, name))).collect()
}

fn entry(reader: &mut Reader<'_>, name: &str) -> ProgramConfig {
    let at = path(&[name]);
    if !is_toolbox_id(name) {
        let accepted = "a name of 1 to 64 of a-z, 0-9, _ and - (`service` and `all` are reserved)";
        reader.wrong(&at, format!("the name {name:?}"), accepted);
    }
    let written = reader.written(&at);
    let missing = written.get("command").is_none_or(Value::is_null);
    let (mut program, mut rest) = reader.open(&at, written, ProgramConfig::new(name));
    // It is no key of the entry.
    name.clone_into(&mut program.name);
    rest.shift_remove("confine");
    reader.refuse(&at, &program, &rest);
    if missing {
        let accepted = "what is executed: \"command\": \"/opt/arm/arm.py\", or a list with arguments";
        reader.wrong(&at, "no command", accepted);
    }
    let confine = path(&[name, "confine"]);
    match reader.stack.get(&confine) {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::Object(_)) => program.confine = Some(reader.closed(&confine, Confine::default())),
        Some(other) => reader.wrong(&confine, describe(other), "an object, or false"),
    }
    program
}
