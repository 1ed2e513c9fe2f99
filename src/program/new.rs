//! `ovos-tools new`: writes the project of a toolbox.
//!
//! The files are those of the examples, with other names in them. So the tests of the examples also test what a new author
//! receives. Read [`Project`].

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use cli::{CliError, Context, count, plain};
use ovos_toolbox_wire::is_toolbox_id;
use serde::Serialize;
use serde_json::Value;

/// Arguments of `new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools new arm
  ovos-tools new arm --lang c
  ovos-tools new arm --lang python
  ovos-tools new arm --sdk ~/src/ovos-tools

Writes the folder ./NAME: a toolbox with a tool, a test and a README.md. It needs no service and no bus.")]
pub(crate) struct Arguments {
    /// The toolbox's id, and the name of the folder
    #[arg(value_parser = id)]
    name: String,
    /// What it is written in
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// A checkout of ovos-tools with the SDK for Rust [default: the one around this folder or this program]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    sdk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    Rust,
    C,
    Python,
}

/// Checks the id of a toolbox. The first tool has the same name, and the name of a tool begins with a letter.
fn id(text: &str) -> Result<String, String> {
    let wanted = "expected a letter, then up to 63 of a-z, 0-9, _ and -, and neither `service` nor `all`";
    let good = is_toolbox_id(text) && text.starts_with(|first: char| first.is_ascii_lowercase());
    good.then(|| text.to_owned()).ok_or(wanted.to_owned())
}

/// The files of a toolbox, and the commands that build and try it.
struct Project {
    files: Vec<File>,
    next: Vec<String>,
}

struct File {
    path: String,
    text: String,
    executable: bool,
}

impl Project {
    fn new(name: &str, next: &[&str]) -> Self {
        let lines = std::iter::once(format!("cd {name}"));
        Self {
            files: Vec::new(),
            next: lines.chain(next.iter().map(|line| (*line).to_owned())).collect(),
        }
    }

    /// Adds a file: a template in which each text in `changes` is replaced.
    fn file(&mut self, path: &str, template: &str, changes: &[(&str, &str)]) {
        let text = changes.iter().fold(template.to_owned(), |text, (from, to)| {
            debug_assert!(text.contains(from), "{path} has no {from}");
            text.replace(from, to)
        });
        self.files.push(File {
            path: path.to_owned(),
            text,
            executable: template.starts_with("#!"),
        });
    }
}

/// The answer.
#[derive(Serialize)]
struct NewProject {
    folder: PathBuf,
    files: Vec<String>,
    next: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let name = arguments.name.as_str();
    if arguments.sdk.is_some() && arguments.lang != Language::Rust {
        return Err(CliError::Usage("--sdk is only for --lang rust".to_owned()));
    }
    let folder = std::path::absolute(name).map_err(failed("find this folder", Path::new(".")))?;
    if folder.symlink_metadata().is_ok() {
        return Err(CliError::Usage(format!(
            "{} exists; choose another name, or remove it",
            folder.display()
        )));
    }
    let project = match arguments.lang {
        Language::Rust => rust(name, &sdk(arguments.sdk.as_deref())?),
        Language::C => c(name),
        Language::Python => python(name, &folder)?,
    };
    write(&folder, &project.files)?;
    let written = NewProject {
        folder,
        files: project.files.into_iter().map(|file| file.path).collect(),
        next: project.next,
    };
    context.output.result(&written, |_| render(name, &written))
}

fn render(name: &str, written: &NewProject) -> String {
    let files = count(written.files.len(), "file", "files");
    let mut text = format!(
        "{name}: {files} in {}. Next:\n",
        plain(&written.folder.display().to_string())
    );
    for line in &written.next {
        text += &format!("  {line}\n");
    }
    text + "README.md there says how to load it\n"
}

fn rust(name: &str, sdk: &Path) -> Project {
    // The prefix keeps the id from being the name of one of Rust's own crates, such as `test`.
    let package = format!("toolbox-{name}");
    let library = package.replace('-', "_");
    let quoted = format!("\"{name}\"");
    let check = format!("cargo build --release && ovos-tools check target/release/lib{library}.so");
    let mut project = Project::new(name, &["cargo test", &check]);
    project.file(
        "Cargo.toml",
        concat!(
            include_str!("../../examples/hello/Cargo.toml"),
            "\n# No member of a workspace around this folder.\n[workspace]\n"
        ),
        &[
            ("name = \"hello\"", &format!("name = \"{package}\"")),
            (": the toolbox to copy", ""),
            // A string in JSON is also a string in TOML.
            (
                "\"../../toolboxes/sdk\"",
                &Value::from(sdk.to_string_lossy()).to_string(),
            ),
        ],
    );
    project.file(
        "src/lib.rs",
        include_str!("../../examples/hello/src/lib.rs"),
        &[
            (" // The toolbox to copy: one tool that greets a person.", ""),
            ("\"hello\"", &quoted),
        ],
    );
    project.file(
        "tests/greets.rs",
        include_str!("../../examples/hello/tests/greets.rs"),
        &[
            ("built(\"hello\")", &format!("built(\"{library}\")")),
            ("\"hello\"", &quoted),
        ],
    );
    project.file(
        "README.md",
        include_str!("new/rust.md"),
        &[("{name}", name), ("{library}", &library)],
    );
    project.file(".gitignore", "target/\n", &[]);
    project
}

fn c(name: &str) -> Project {
    let library = format!("{name}.so");
    let test = format!("{name}.test");
    let mut project = Project::new(
        name,
        &["make test", &format!("make && ovos-tools check {library}")],
    );
    project.file(
        "toolbox.c",
        include_str!("../../examples/hello_c/hello_c.c"),
        &[
            ("The toolbox to copy, in C: one", "A toolbox with one"),
            ("hello_c\\\"", &format!("{name}\\\"")),
        ],
    );
    project.file(
        "test.c",
        include_str!("../../examples/hello_c/test.c"),
        &[("hello_c\\\"", &format!("{name}\\\""))],
    );
    project.file(
        "Makefile",
        include_str!("../../examples/hello_c/Makefile"),
        &[
            (
                " A copy elsewhere says where the headers are: make ABI=/usr/local/include/ovos-tools",
                "",
            ),
            ("hello_c.so", &library),
            ("hello_c.test", &test),
            ("hello_c.c", "toolbox.c"),
            ("../../toolboxes/abi", "."),
        ],
    );
    project.file("toolbox.h", include_str!("../../toolboxes/abi/toolbox.h"), &[]);
    project.file(
        "toolbox_json.h",
        include_str!("../../toolboxes/abi/toolbox_json.h"),
        &[],
    );
    project.file("README.md", include_str!("new/c.md"), &[("{name}", name)]);
    project.file(".gitignore", "*.so\n*.test\n", &[]);
    project
}

/// # Errors
/// The author's module is not in the folder where this program looks for it, or cannot be read.
fn python(name: &str, folder: &Path) -> Result<Project, CliError> {
    let mut project = Project::new(name, &["python3 -m unittest", "ovos-tools check ./toolbox.py"]);
    project.file(
        "toolbox.py",
        concat!(
            "#!/usr/bin/env python3\n",
            include_str!("../../examples/greeter.py")
        ),
        &[("id = \"greeter\"", &format!("id = \"{name}\""))],
    );
    project.file(
        "test_toolbox.py",
        include_str!("../../programs/python/tests/test_greeter.py"),
        &[("examples.greeter", "toolbox")],
    );
    let file = Value::from(folder.join("toolbox.py").to_string_lossy()).to_string();
    project.file(
        "mycroft.conf",
        include_str!("new/mycroft.conf"),
        &[("{name}", name), ("\"{file}\"", &file)],
    );
    project.file("README.md", include_str!("new/python.md"), &[("{name}", name)]);
    project.file(".gitignore", "__pycache__/\n", &[]);
    for (module, text) in module()? {
        project.file(&format!("{MODULE}/{module}"), &text, &[]);
    }
    Ok(project)
}

const MODULE: &str = "ovos_tools_program";

/// Returns the files of the author's module, which is beside the host of Python toolboxes.
fn module() -> Result<Vec<(String, String)>, CliError> {
    let script = host::python::script().map_err(CliError::Refused)?;
    let folder = script.ancestors().nth(2).unwrap_or(&script).join(MODULE);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed("read", &folder))? {
        let path = entry.map_err(failed("read", &folder))?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && name.ends_with(".py")
        {
            let text = fs::read_to_string(&path).map_err(failed("read", &path))?;
            files.push((name.to_owned(), text));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the folder of the SDK for Rust: in this folder or checkout, else in the checkout around the current folder or this
/// program.
///
/// # Errors
/// The SDK is not there.
fn sdk(path: Option<&Path>) -> Result<PathBuf, CliError> {
    let found = match path {
        Some(folder) => sdk_in(folder),
        None => {
            let places = [std::env::current_dir().ok(), std::env::current_exe().ok()];
            let mut folders = places.iter().flatten().flat_map(|place| place.ancestors());
            folders.find_map(sdk_in)
        }
    };
    found.ok_or_else(|| {
        let missed = match path {
            Some(folder) => format!("{} has no toolboxes/sdk", folder.display()),
            None => "there is no checkout of ovos-tools around this folder or this program".to_owned(),
        };
        let clone = concat!("git clone ", env!("CARGO_PKG_REPOSITORY"));
        CliError::Usage(format!(
            "{missed}: run `{clone}` and name its folder with --sdk; --lang c and --lang python need no checkout"
        ))
    })
}

fn sdk_in(folder: &Path) -> Option<PathBuf> {
    let mut places = [folder.join("toolboxes/sdk"), folder.to_owned()].into_iter();
    places.find_map(|place| {
        let manifest = fs::read_to_string(place.join("Cargo.toml")).ok()?;
        let is_it = manifest.contains("name = \"ovos-toolbox-sdk\"");
        is_it.then(|| place.canonicalize().ok())?
    })
}

/// Writes the files into a new folder, which no other user may write: the service would refuse the toolbox otherwise.
fn write(folder: &Path, files: &[File]) -> Result<(), CliError> {
    for file in files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(parent)
            .map_err(failed("create the folder", parent))?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path);
        opened
            .and_then(|mut opened| opened.write_all(file.text.as_bytes()))
            .map_err(failed("write", &path))?;
    }
    Ok(())
}

fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(io::Error) -> CliError + use<'a> {
    move |cause| CliError::Machine {
        what: format!("{what} {}", path.display()),
        cause,
    }
}
