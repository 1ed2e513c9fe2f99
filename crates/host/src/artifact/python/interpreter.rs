//! A Python interpreter, and the programs that host the toolboxes that are installed for it. Read [`Interpreter`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use section::{Confine, ProgramConfig, PythonConfig};

/// An interpreter and what is installed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The interpreter's file.
    pub path: PathBuf,
    /// The version of Python.
    pub version: String,
    /// The toolboxes that are installed for it, one for each entry point.
    pub toolboxes: Vec<InstalledToolbox>,
    /// The folders from which it imports.
    pub imports: Vec<PathBuf>,
}

/// An entry point of the group `opm.agents.toolbox`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct InstalledToolbox {
    /// The entry point's name, which is the id of the toolbox.
    pub entry_point: String,
    /// The package that has the entry point.
    pub distribution: String,
    /// The version of that package.
    pub version: String,
    /// Identifies the installed code: another revision needs a new process.
    pub revision: String,
    /// Why the toolbox cannot be offered.
    pub problem: Option<String>,
}

impl Interpreter {
    /// The toolboxes of this interpreter that an entry may offer.
    pub(crate) fn offered(&self, entry: &PythonConfig) -> impl Iterator<Item = &InstalledToolbox> {
        let good = self.toolboxes.iter().filter(|one| one.problem.is_none());
        good.filter(|one| entry.may_offer(&one.entry_point))
    }

    /// The program that hosts one toolbox alone; `None` if the interpreter does not have this toolbox.
    ///
    /// # Errors
    /// The toolbox cannot be offered, or the program that hosts toolboxes is missing.
    pub fn alone(&self, entry: &PythonConfig, id: &str) -> Result<Option<Arc<ProgramConfig>>, String> {
        let Some(installed) = self.toolboxes.iter().find(|one| one.entry_point == id) else {
            return Ok(None);
        };
        if let Some(problem) = &installed.problem {
            return Err(problem.clone());
        }
        let alone = PythonConfig {
            alone: true,
            toolboxes: vec![id.to_owned()],
            ..entry.clone()
        };
        Ok(self.programs(&alone, &script()?).pop())
    }

    /// The programs that host the toolboxes that an entry may offer.
    pub(crate) fn programs(&self, entry: &PythonConfig, script: &Path) -> Vec<Arc<ProgramConfig>> {
        let program = |name: String, toolboxes: &[&InstalledToolbox], arguments: &[&str]| {
            let words = [&self.path, script as &Path].map(|path| path.to_string_lossy().into_owned());
            let arguments = arguments.iter().map(|word| (*word).to_owned());
            Arc::new(ProgramConfig {
                command: words.into_iter().chain(arguments).collect(),
                env: entry.env.clone(),
                toolboxes: toolboxes.iter().map(|one| one.entry_point.clone()).collect(),
                confine: confine(entry, script),
                imports: self.imports.clone(),
                revisions: Some(toolboxes.iter().map(|one| one.revision.clone()).collect()),
                ..ProgramConfig::new(&name)
            })
        };
        let offered: Vec<&InstalledToolbox> = self.offered(entry).collect();
        if !entry.alone {
            // The program must not offer the toolboxes that the entry excludes.
            let only = offered.iter().flat_map(|one| ["--only", &one.entry_point]);
            return vec![program(entry.name.clone(), &offered, &only.collect::<Vec<_>>())];
        }
        let alone = offered.iter().map(|one| {
            let id = one.entry_point.as_str();
            // A name that no entry of the configuration can have.
            program(format!("{}:{id}", entry.name), &[one], &["--alone", id])
        });
        alone.collect()
    }
}

/// The confinement of an entry's programs, which may also read the folder of the program that hosts toolboxes.
pub(super) fn confine(entry: &PythonConfig, script: &Path) -> Option<Confine> {
    let mut confine = entry.confine.clone()?;
    confine
        .paths_ro
        .extend(script.ancestors().nth(2).map(Path::to_owned));
    Some(confine)
}

/// The path of the program that hosts Python toolboxes: in the source tree of this program, or where it is installed.
///
/// # Errors
/// The program was not found; the text names the folders that were searched.
pub fn script() -> Result<PathBuf, String> {
    const SCRIPT: &str = "ovos_tools_python/__main__.py";
    let program = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    let installed = program
        .ancestors()
        .nth(2)
        .map(|prefix| prefix.join("lib/ovos-tools/python"));
    let tree = program
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("programs/python"));
    let mut folders = installed.iter().cloned().chain(tree);
    let found = folders.find(|folder| folder.join(SCRIPT).is_file());
    found.map(|folder| folder.join(SCRIPT)).ok_or_else(|| {
        let installed = installed.unwrap_or_default();
        format!(
            "there is no {SCRIPT} in {} and in programs/python above {}; `make install` puts it there",
            installed.display(),
            program.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(entry_point: &str, problem: Option<&str>) -> InstalledToolbox {
        InstalledToolbox {
            entry_point: entry_point.to_owned(),
            distribution: "tools".to_owned(),
            version: "1".to_owned(),
            revision: "r".to_owned(),
            problem: problem.map(str::to_owned),
        }
    }

    #[test]
    fn what_may_be_offered_is_hosted_with_its_revisions() {
        let interpreter = Interpreter {
            path: "/v/bin/python3".into(),
            version: "3.11".to_owned(),
            toolboxes: vec![
                installed("a", None),
                installed("b", Some("no id")),
                installed("c", None),
            ],
            imports: vec!["/v/lib".into()],
        };
        let entry = |alone: bool, toolboxes: &[&str]| PythonConfig {
            alone,
            toolboxes: toolboxes.iter().map(|id| (*id).to_owned()).collect(),
            ..PythonConfig::new("python")
        };
        let command = "/v/bin/python3 /s";
        for (entry, expected) in [
            (
                entry(false, &["*"]),
                vec![format!("python {command} --only a --only c: a c")],
            ),
            (
                entry(true, &["*"]),
                vec![
                    format!("python:a {command} --alone a: a"),
                    format!("python:c {command} --alone c: c"),
                ],
            ),
            (
                entry(true, &["c"]),
                vec![format!("python:c {command} --alone c: c")],
            ),
            (entry(true, &["b"]), vec![]),
        ] {
            let programs = interpreter.programs(&entry, Path::new("/s"));
            let rows: Vec<String> = programs
                .iter()
                .map(|program| {
                    let (command, ids) = (program.command.join(" "), program.toolboxes.join(" "));
                    format!("{} {command}: {ids}", program.name)
                })
                .collect();
            assert_eq!(rows, expected);
            for program in &programs {
                let revisions = program.toolboxes.iter().map(|_| "r".to_owned());
                assert_eq!(program.revisions, Some(revisions.collect()));
                assert_eq!(program.imports, [Path::new("/v/lib")]);
            }
        }
    }
}
