//! Which crate, folder and module may use which. The rules of ARCHITECTURE.md that no compiler and no lint checks.

mod circles;
mod ratchets;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use config::Doors;
use ovos_toolbox_wire::FailureKind;
use serde_json::Value;

use sources::{code, collect};

/// The crates of this workspace that each crate may depend on. Cargo refuses circles; this refuses every other edge.
const EDGES: &[(&str, &[&str])] = &[
    ("bus", &[]),
    (
        "cli",
        &[
            "bus",
            "client",
            "config",
            "executable",
            "logs",
            "ovos-toolbox-wire",
            "schema",
            "signals",
        ],
    ),
    ("client", &["bus", "ovos-toolbox-wire"]),
    ("schema", &["ovos-toolbox-wire"]),
    ("section", &[]),
    ("signals", &[]),
    ("config", &["ovos-toolbox-wire", "section"]),
    ("door", &["client", "config", "ovos-toolbox-wire", "signals"]),
    ("engine", &["ovos-toolbox-wire"]),
    ("executable", &[]),
    ("logs", &["client", "config"]),
    ("protocol", &["ovos-toolbox-wire"]),
    ("program", &["ovos-toolbox-wire", "protocol", "signals"]),
    (
        "plugin",
        &[
            "ovos-toolbox-abi",
            "ovos-toolbox-wire",
            "program",
            "protocol",
            "signals",
        ],
    ),
    (
        "host",
        &[
            "engine",
            "executable",
            "ovos-toolbox-wire",
            "program",
            "protocol",
            "schema",
            "section",
        ],
    ),
];

/// The same for the doors, on which nothing depends.
const DOORS: &[(&str, &[&str])] = &[
    ("agent", &["client", "config", "door", "ovos-toolbox-wire"]),
    ("console", &["client", "config", "door", "ovos-toolbox-wire"]),
    ("mcp", &["client", "config", "door", "ovos-toolbox-wire"]),
    ("schedule", &["client", "config", "door", "ovos-toolbox-wire"]),
    ("voice", &["client", "config", "door", "ovos-toolbox-wire"]),
];

/// The same for the programs that are crates. One has the configuration's types, because the service reads its mounts for it.
/// It has the schemas, because it drops what the service refuses of those of a server. Another is a client of the bus, and says its
/// tools as authors of toolboxes do. The one for several machines hosts toolboxes as the service does, without a bus.
const PROGRAMS: &[(&str, &[&str])] = &[
    (
        "fabric",
        &[
            "config",
            "engine",
            "host",
            "logs",
            "ovos-toolbox-wire",
            "program",
            "protocol",
            "signals",
        ],
    ),
    (
        "mounts",
        &[
            "config",
            "executable",
            "ovos-toolbox-wire",
            "program",
            "protocol",
            "schema",
            "signals",
        ],
    ),
    (
        "ovos",
        &[
            "bus",
            "config",
            "ovos-toolbox-sdk",
            "ovos-toolbox-wire",
            "program",
            "protocol",
        ],
    ),
];

/// The crates for authors, which `scripts/registry.sh` packs.
const FOR_AUTHORS: &[&str] = &[
    "ovos-toolbox-abi",
    "ovos-toolbox-wire",
    "ovos-toolbox-sdk",
    "ovos-tools-protocol",
    "ovos-tools-signals",
    "ovos-tools-program",
    "ovos-tools-bus",
    "ovos-tools-client",
];

/// What the doors are made of and the service is not.
const OF_DOORS: &[&str] = &["axum", "hyper", "http", "rmcp", "rusqlite", "tokio-tungstenite"];

/// The folders of the host, and those that each may use.
const FOLDERS: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("process", &[]),
    ("state", &["process"]),
    ("artifact", &["contract", "process"]),
    ("transport", &["contract", "process", "artifact"]),
    ("lifecycle", &["contract", "process", "artifact", "transport"]),
];

/// The names that modules of the service may not use.
const RULES: &[(&str, &[&str], &str)] = &[
    (
        "src/export",
        &[
            "crate::api",
            "crate::registry",
            "crate::service",
            "bus",
            "engine",
            "host",
            "config",
        ],
        "exports are pure",
    ),
    (
        "src/names.rs",
        &[
            "crate::api",
            "crate::export",
            "crate::registry",
            "crate::service",
            "bus",
            "engine",
            "host",
            "config",
        ],
        "what a name means follows from names alone",
    ),
    (
        "src/registry.rs",
        &["crate::api", "crate::service", "bus", "engine", "host", "config"],
        "the registry is a snapshot",
    ),
    (
        "src/policy",
        &[
            "crate::api",
            "crate::registry",
            "crate::service",
            "bus",
            "engine",
            "host",
        ],
        "a policy decides on names and effects",
    ),
    (
        "src/content",
        &[
            "crate::api",
            "crate::registry",
            "crate::service",
            "bus",
            "engine",
            "host",
            "config",
        ],
        "content is rules and files",
    ),
    (
        "src/api",
        &["crate::service", "host", "config"],
        "the API loads no library and runs no task of the service",
    ),
];

/// The files that may have unsafe code.
const UNSAFE: &[&str] = &[
    "crates/plugin/src",
    "toolboxes/abi",
    "toolboxes/sdk",
    // It asks video devices for their properties.
    "toolboxes/gstreamer/src/devices/v4l2/kernel",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below `place`, and `place.rs` beside a folder.
fn files(place: &str) -> Vec<PathBuf> {
    let path = root().join(place);
    let mut found = Vec::new();
    let beside = path.with_extension("rs");
    if beside.is_file() {
        found.push(beside);
    }
    collect(&path, &mut found);
    assert!(
        !found.is_empty(),
        "{place} has no Rust file: the rule is out of date"
    );
    found
}

/// The names of the folders in a folder, sorted.
fn folders(place: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(place)).expect("a readable folder");
    let entries = entries.map(|entry| entry.expect("a readable folder"));
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("a name in UTF-8"))
        .collect();
    names.sort();
    names
}

fn sorted<'a>(rows: &[(&'a str, &[&str])]) -> Vec<&'a str> {
    let mut names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

#[test]
fn crates_depend_only_on_what_they_may() {
    for (place, edges) in [("crates", EDGES), ("doors", DOORS), ("programs", PROGRAMS)] {
        let mut crates = folders(place);
        crates.retain(|name| root().join(place).join(name).join("Cargo.toml").is_file());
        assert_eq!(crates, sorted(edges), "each crate has its row");
        if place == "doors" {
            assert_eq!(crates, Doors::NAMES, "each door has its keys");
        }
        for (name, allowed) in edges {
            let dependencies = dependencies(&root().join(place).join(name));
            let is_ours =
                |key: &&String| key.starts_with("ovos-") || EDGES.iter().any(|(other, _)| key == other);
            let ours: Vec<&String> = dependencies.iter().filter(is_ours).collect();
            assert_eq!(ours, *allowed, "{place}/{name}");
        }
    }
}

/// What authors of toolboxes and clients depend on: fit for a registry, and for a toolchain that is older than ours.
#[test]
fn crates_for_authors_need_no_newer_rust_than_they_say() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    let output = cargo.current_dir(root()).output().expect("cargo metadata");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let list = list.as_array().expect("a list").iter();
        list.map(|one| (one["id"].as_str().expect("an id").to_owned(), one.clone()))
            .collect()
    };
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let rust = |package: &Value| -> Vec<u32> {
        let version = package["rust_version"].as_str().unwrap_or("1");
        let mut parts: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
        parts.resize(3, 0);
        parts
    };
    for name in FOR_AUTHORS {
        let found = packages.iter().find(|(_, package)| package["name"] == *name);
        let (id, own) = found.unwrap_or_else(|| panic!("there is no {name}"));
        let mut seen = BTreeSet::new();
        let mut next = vec![id.clone()];
        while let Some(id) = next.pop() {
            let package = &packages[&id];
            assert!(
                rust(package) <= rust(own),
                "{name} says Rust {}, and depends on {} {}, which needs {}",
                own["rust_version"],
                package["name"],
                package["version"],
                package["rust_version"]
            );
            let used = nodes[&id]["deps"].as_array().expect("dependencies").iter();
            let used = used.filter(|one| {
                let kinds = one["dep_kinds"].as_array().expect("kinds");
                kinds.iter().any(|kind| kind["kind"] != "dev")
            });
            let used = used.map(|one| one["pkg"].as_str().expect("an id").to_owned());
            next.extend(used.filter(|id| seen.insert(id.clone())));
        }
    }
}

#[test]
fn the_service_carries_nothing_of_a_door() {
    let of_doors: Vec<String> = DOORS
        .iter()
        .flat_map(|(name, _)| dependencies(&root().join("doors").join(name)))
        .collect();
    let mut places = vec![root()];
    // The service does not use what the doors have in common.
    let of_service = EDGES.iter().filter(|(name, _)| *name != "door");
    places.extend(of_service.map(|(name, _)| root().join("crates").join(name)));
    for name in OF_DOORS {
        assert!(of_doors.iter().any(|other| other == name), "no door uses {name}");
        for place in &places {
            let carries = dependencies(place).iter().any(|other| other == name);
            assert!(!carries, "{} depends on {name}", place.display());
        }
    }
}

/// The keys of a manifest's dependencies, without those of its tests.
fn dependencies(folder: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let (_, dependencies) = manifest.split_once("\n[dependencies]").expect("dependencies");
    let dependencies = dependencies.split("\n[").next().expect("a first part");
    let keys = dependencies
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next());
    keys.map(str::to_owned).collect()
}

/// Dependencies that no code names, because macros do, and the word of the code that needs them.
const UNNAMED: &[(&str, &[&str])] = &[
    ("schemars", &["JsonSchema"]),
    ("serde", &["Deserialize", "Serialize"]),
    ("tonic-prost", &["tonic_prost_build"]),
];

/// Each dependency has a user: the code of its crate, or, for one of its tests alone, theirs.
#[test]
fn code_names_each_dependency() {
    let mut unused = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml", "toolboxes/robot-r2r/Cargo.toml"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
            "--manifest-path",
        ]);
        let output = cargo.arg(root().join(manifest)).output().expect("cargo metadata");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for package in metadata["packages"].as_array().expect("a list") {
            let manifest = package["manifest_path"].as_str().expect("a path");
            let folder = Path::new(manifest).parent().expect("a folder");
            let own = code_of(folder, &["src", "build.rs", "fuzz_targets"]);
            let of_tests = code_of(folder, &["tests", "benches", "examples"]);
            for dependency in package["dependencies"].as_array().expect("a list") {
                let written = dependency["rename"]
                    .as_str()
                    .or_else(|| dependency["name"].as_str());
                let name = written.expect("a name");
                let unnamed = UNNAMED.iter().find(|(other, _)| *other == name);
                let plain = name.replace('-', "_");
                let is_named = |code: &String| {
                    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
                    words.any(|word| word == plain || unnamed.is_some_and(|(_, of)| of.contains(&word)))
                };
                if !is_named(&own) && (dependency["kind"] != "dev" || !is_named(&of_tests)) {
                    unused.push(format!("{manifest}: {name}"));
                }
            }
        }
    }
    assert!(unused.is_empty(), "no code names\n{}", unused.join("\n"));
}

/// The code of these folders and files, and of what they take in from elsewhere with `#[path]`.
fn code_of(folder: &Path, places: &[&str]) -> String {
    let mut next = Vec::new();
    for place in places.iter().map(|place| folder.join(place)) {
        match place.is_file() {
            true => next.push(place),
            false => collect(&place, &mut next),
        }
    }
    let (mut all, mut seen) = (String::new(), BTreeSet::new());
    while let Some(file) = next.pop().map(|file| file.canonicalize().unwrap_or(file)) {
        if !file.is_file() || !seen.insert(file.clone()) {
            continue;
        }
        let code = code(&file);
        let taken = code
            .split("#[path = \"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        next.extend(taken.filter_map(|path| Some(file.parent()?.join(path))));
        all.push_str(&code);
    }
    all
}

#[test]
fn folders_of_the_host_use_only_what_they_may() {
    assert_eq!(
        folders("crates/host/src"),
        sorted(FOLDERS),
        "each folder has its row"
    );
    let mut broken = Vec::new();
    for (place, allowed) in FOLDERS {
        let strangers = FOLDERS.iter().map(|(other, _)| *other);
        let strangers = strangers.filter(|other| other != place && !allowed.contains(other));
        let strangers: Vec<String> = strangers.map(|other| format!("crate::{other}")).collect();
        for file in files(&format!("crates/host/src/{place}")) {
            let code = code(&file);
            let named = strangers.iter().filter(|stranger| names(&code, stranger));
            broken.extend(named.map(|stranger| format!("{} names `{stranger}`", file.display())));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn only_the_process_of_a_plugin_loads_it() {
    let mut found = Vec::new();
    for place in ["src", "crates"].into_iter().flat_map(files) {
        if !place.starts_with(root().join("crates/plugin")) && names(&code(&place), "plugin") {
            found.push(place);
        }
    }
    assert_eq!(found, [root().join("src/program/toolbox_host.rs")]);
}

#[test]
fn modules_of_the_service_name_only_what_they_may() {
    let mut broken = Vec::new();
    for (place, strangers, because) in RULES {
        for file in files(place) {
            let code = code(&file);
            let named = strangers.iter().filter(|stranger| names(&code, stranger));
            broken.extend(named.map(|stranger| format!("{} names `{stranger}`: {because}", file.display())));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Whether code uses a module or a crate, named by its path from the root. A group of imports from the root of the
/// own crate could hide it, and counts as a use.
fn names(code: &str, path: &str) -> bool {
    let hides = path.starts_with("crate::") && code.contains("crate::{");
    let is_its_own = |at: usize| {
        let before = &code[..at];
        let before = before.strip_suffix("::").unwrap_or(before);
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    let begins = |form: &String| code.match_indices(form.as_str()).any(|(at, _)| is_its_own(at));
    hides
        || [format!("{path}::"), format!("{path};"), format!("{path} as ")]
            .iter()
            .any(begins)
}

#[test]
fn the_service_names_the_kinds_of_failures_by_their_type() {
    let names: Vec<String> = FailureKind::NAMES
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect();
    let mut broken = Vec::new();
    for file in ["src", "crates", "doors"].into_iter().flat_map(files) {
        let path = file.to_string_lossy();
        if path.contains("/tests/") || path.ends_with("_tests.rs") {
            continue;
        }
        let code = code(&file);
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        let named = code
            .lines()
            .filter(|line| names.iter().any(|name| line.contains(name)));
        broken.extend(named.map(|line| format!("{path}: {line}")));
    }
    assert!(
        broken.is_empty(),
        "expected `FailureKind`:\n{}",
        broken.join("\n")
    );
}

#[test]
fn unsafe_code_stays_at_the_boundary() {
    let allowed: Vec<PathBuf> = UNSAFE.iter().flat_map(|place| files(place)).collect();
    let mut broken = Vec::new();
    for place in [
        "src",
        "crates",
        "doors",
        "examples",
        "toolboxes",
        "tests",
        "benches",
    ] {
        let mut found = Vec::new();
        collect(&root().join(place), &mut found);
        for file in found.into_iter().filter(|file| !allowed.contains(file)) {
            let uses = |line: &str| {
                line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl")
            };
            if code(&file).lines().any(uses) && !file.ends_with("tests/repository/dependencies.rs") {
                broken.push(file.display().to_string());
            }
        }
    }
    assert!(
        broken.is_empty(),
        "unsafe code outside {UNSAFE:?}:\n{}",
        broken.join("\n")
    );
}

#[test]
fn toolboxes_depend_on_the_sdk_alone() {
    let mut checked = 0;
    for place in ["toolboxes", "tests/toolboxes"] {
        for entry in std::fs::read_dir(root().join(place)).expect("a readable folder") {
            let folder = entry.expect("a readable folder").path();
            let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else {
                continue;
            };
            let ours = manifest.lines().filter(|line| line.starts_with("ovos-tool"));
            let is_library = folder.ends_with("sdk") || folder.ends_with("wire") || folder.ends_with("abi");
            let may = |line: &str| {
                line.starts_with("ovos-toolbox-sdk") || (is_library && line.starts_with("ovos-toolbox-"))
            };
            let strangers: Vec<&str> = ours.filter(|line| !may(line)).collect();
            assert!(
                strangers.is_empty(),
                "{} depends on {strangers:?}: a toolbox depends on the SDK",
                folder.display()
            );
            checked += 1;
        }
    }
    assert!(checked >= 6, "only {checked} manifests were found");
}

/// A panic in a toolbox can be caught only in the toolbox.
#[test]
fn the_sdk_is_not_built_with_panic_abort() {
    let scratch = tempfile::tempdir().expect("a folder for what rustc writes");
    let output = |panic: &str| {
        let mut rustc = Command::new("rustc");
        rustc.args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "-C",
        ]);
        rustc
            .arg(format!("panic={panic}"))
            .arg("--out-dir")
            .arg(scratch.path());
        let out = rustc
            .arg(root().join("toolboxes/sdk/src/lib.rs"))
            .output()
            .expect("rustc");
        // It does not compile without its dependencies; only the other error counts here.
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let refusal = "a toolbox must be built with panic = ";
    assert!(output("abort").contains(refusal), "{}", output("abort"));
    assert!(!output("unwind").contains(refusal));
}

/// Libraries are bound at once and locally, and never unloaded.
#[test]
fn libraries_are_loaded_in_one_place_and_one_way() {
    let mut found = Vec::new();
    collect(&root().join("src"), &mut found);
    collect(&root().join("crates"), &mut found);
    for file in found {
        let code = code(&file);
        for banned in ["dlmopen", "RTLD_GLOBAL", "RTLD_LAZY", "dlclose"] {
            assert!(!code.contains(banned), "{} uses {banned}", file.display());
        }
        assert!(
            !code.contains("libloading") || file.ends_with("crates/plugin/src/load.rs"),
            "{} loads libraries",
            file.display()
        );
    }
    let load = code(&root().join("crates/plugin/src/load.rs"));
    assert!(load.contains("RTLD_NOW") && load.contains("RTLD_LOCAL") && load.contains("ManuallyDrop"));
}

/// `path#test` in the documents names an existing test.
#[test]
fn documents_name_tests_that_exist() {
    let mut documents: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .expect("a readable folder")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    documents.extend(["README.md", "ARCHITECTURE.md"].map(|name| root().join(name)));
    let mut checked = 0;
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("a readable file");
        for quoted in text.split('`').skip(1).step_by(2) {
            let Some((path, test)) = quoted.split_once(".rs#") else {
                continue;
            };
            let file = root().join(format!("{path}.rs"));
            let code = std::fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{} names {}: {error}", document.display(), file.display()));
            assert!(
                code.contains(&format!("fn {test}(")),
                "{} names {quoted}, which is not there",
                document.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} were found");
}
