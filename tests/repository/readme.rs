//! README.md and the pages are true: `console` blocks are run against a service with the toolboxes that ship, and listings
//! are compared with the files. `.ci/run` runs the `sh` blocks of README.md.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ovos_toolbox_wire::FailureKind;

use crate::support::process::{Process, Sandbox, free_port};

const OURS: &str = env!("CARGO_BIN_EXE_ovos-tools");

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The fenced blocks of a language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(checkout().join(page)).unwrap();
    let fence = format!("```{language}\n");
    let blocks: Vec<String> = text
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
        .collect();
    assert!(!blocks.is_empty(), "{page} has no ```{language} block");
    blocks
}

/// Whether a line is the one in the README, in which `...` stands for any text.
fn fits(shown: &str, line: &str) -> bool {
    let mut rest = line;
    for (index, part) in shown.split("...").enumerate() {
        match rest.find(part) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.trim_end().is_empty() || shown.ends_with("...")
}

#[test]
fn listings_in_the_pages_are_the_files() {
    for (page, language, file) in [
        ("README.md", "rust", "examples/hello/src/lib.rs"),
        ("docs/toolbox-in-c.md", "c", "examples/hello_c/hello_c.c"),
        (
            "python/ovos-tools-client/README.md",
            "python",
            "examples/wave_skill.py",
        ),
    ] {
        let source = std::fs::read_to_string(checkout().join(file)).unwrap();
        assert_eq!(blocks(page, language)[0], source, "{page} shows another {file}");
    }
}

#[test]
fn the_table_of_toolboxes_counts_their_tools() {
    let page = std::fs::read_to_string(checkout().join("README.md")).unwrap();
    for name in ["robot", "drone", "gstreamer", "math"] {
        let schemas = checkout().join(format!("schemas/toolboxes/{name}.json"));
        let file: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(schemas).unwrap()).unwrap();
        let tools = file["tools"].as_array().map_or(0, Vec::len);
        let mut rows = page
            .lines()
            .filter(|line| line.starts_with('|') && line.contains(&format!("`{name}`")));
        let row = rows.next().unwrap_or_else(|| panic!("no row of {name}"));
        let cell = row.split('|').nth(2).unwrap().trim();
        let number = cell
            .split(|letter: char| !letter.is_ascii_digit())
            .next()
            .unwrap();
        assert_eq!(number, tools.to_string(), "{row}");
    }
}

/// A page that is read at once, in a terminal of 200 columns or on a phone.
#[test]
fn the_readme_is_short() {
    let text = std::fs::read_to_string(checkout().join("README.md")).unwrap();
    let lines = text.lines().count();
    assert!(
        lines <= 140,
        "README.md has {lines} lines: move what is for a few to a page of docs/"
    );
}

/// docs/index.md has a line for every page of docs/.
#[test]
fn every_page_is_in_the_index() {
    let index = checkout().join("docs/index.md");
    let pages: Vec<PathBuf> = links(&index);
    for entry in std::fs::read_dir(checkout().join("docs")).unwrap() {
        let page = entry.unwrap().path();
        let is_page = page.extension().is_some_and(|ending| ending == "md") || page.is_dir();
        assert!(
            !is_page || page == index || pages.contains(&page),
            "docs/index.md does not list {}",
            page.display()
        );
    }
}

#[test]
fn configuration_is_one() {
    for page in ["README.md", "docs/configuration.md", "docs/come-over.md"] {
        for block in blocks(page, "json") {
            serde_json::from_str::<serde_json::Value>(&block)
                .unwrap_or_else(|error| panic!("{page}: {error}: {block}"));
        }
    }
}

/// A service with `plugins/hello.so` and its siblings, as `make plugins` leaves them.
fn serving(sandbox: &Sandbox, toolboxes: &[&str]) -> Process {
    let plugins = sandbox.path("plugins");
    let script = checkout().join("scripts/plugins.sh");
    let built = Command::new(script)
        .arg("debug")
        .arg(&plugins)
        .args(toolboxes)
        .status()
        .unwrap();
    assert!(built.success(), "the toolboxes that ship do not build");
    let mut serve = sandbox.command(OURS);
    serve
        .args(["serve", "--embedded-bus", "auto", "--plugins"])
        .arg(&plugins);
    let mut service = Process::start("serve", sandbox, serve);
    service.until("the summary", |service| {
        service.output().contains("Try: ").then_some(())
    });
    service
}

#[test]
fn console_blocks_show_what_happens() {
    let sandbox = Sandbox::with_bus(free_port());
    let toolboxes = [
        "examples/hello",
        "examples/hello_c",
        "toolboxes/math",
        "toolboxes/robot",
    ];
    let _service = serving(&sandbox, &toolboxes);
    for block in blocks("README.md", "console") {
        for step in block.split("$ ").filter(|step| !step.is_empty()) {
            let (command, shown) = step.split_once('\n').unwrap();
            let printed = run(&sandbox, command);
            check(command, shown, &printed);
        }
    }
}

/// examples/lines.rs: tools are called, a stop is answered, what is wrong is said, and motion ends with its client.
#[test]
fn the_door_to_copy_serves_lines() {
    let door = Path::new(OURS).with_file_name("examples/ovos-tools-lines");
    assert!(
        door.is_file(),
        "no {}: cargo build --example ovos-tools-lines",
        door.display()
    );
    let sandbox = Sandbox::with_bus(free_port());
    let _service = serving(&sandbox, &["examples/hello", "toolboxes/robot"]);
    let path = std::env::join_paths([door.parent().unwrap()]).unwrap();
    let serve = |lines: &str| {
        // As a person starts it: `ovos-tools NAME` finds the door in the path.
        let mut lines_door = sandbox.command(OURS);
        lines_door.arg("lines").env("PATH", &path);
        let mut started = lines_door
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        started.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = started.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let output = serve("hello {\"name\": \"Ada\"}\nfly\nhello Ada\n");
    for expected in [
        r#"{"tool":"hello","failed":false,"answer":{"greeting":"Hello, Ada!"}}"#,
        "there is no such tool",
        "expected a JSON object after the name",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
    // Its stdin ends while the arm waves.
    let output = serve("wave {\"arm\": \"left\"}\n");
    assert!(
        output.contains(r#""failed":true"#) && output.contains("ancel"),
        "{output}"
    );
    let output = serve("emergency_stop\n");
    assert!(
        output.contains(r#"{"tool":"emergency_stop","failed":false"#),
        "{output}"
    );
    let status = run(&sandbox, "ovos-tools status");
    assert!(status.contains("robot is in emergency stop"), "{status}");
}

/// Runs a command line, which has no quotes.
fn run(sandbox: &Sandbox, line: &str) -> String {
    let mut words = line.split_whitespace();
    assert_eq!(
        words.next(),
        Some("ovos-tools"),
        "README.md runs something else: {line}"
    );
    let output = sandbox.command(OURS).args(words).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn check(command: &str, shown: &str, printed: &str) {
    let mut printed_lines = printed.lines().peekable();
    let mut shown_lines = shown.lines().peekable();
    while let Some(line) = shown_lines.next() {
        if line == "..." {
            let next = shown_lines.peek();
            while printed_lines
                .peek()
                .is_some_and(|line| next.is_none_or(|next| !fits(next, line)))
            {
                printed_lines.next();
            }
            continue;
        }
        let found = printed_lines.next().unwrap_or("(nothing)");
        assert!(
            fits(line, found),
            "`{command}` shows\n  {line}\nbut printed\n  {found}\nin\n{printed}"
        );
    }
    let more: Vec<&str> = printed_lines.filter(|line| !line.trim().is_empty()).collect();
    assert!(
        more.is_empty(),
        "`{command}` printed more than README.md shows: {more:?}"
    );
}

/// Every `path` in backticks in the pages for contributors exists; `*` stands for any part of a file's name, and capitals for a
/// name that is to be chosen.
#[test]
fn files_the_pages_for_contributors_name_exist() {
    let architecture = std::fs::read_to_string(checkout().join("ARCHITECTURE.md")).unwrap();
    assert!(
        architecture.lines().count() < 200,
        "ARCHITECTURE.md is to be read in one go"
    );
    let tops = [
        "src/",
        "crates/",
        "doors/",
        "examples/",
        "tests/",
        "toolboxes/",
        "docs/",
        "schemas/",
        "scripts/",
    ];
    for (page, least) in [("ARCHITECTURE.md", 30), ("CONTRIBUTING.md", 15)] {
        let text = std::fs::read_to_string(checkout().join(page)).unwrap();
        let mut named = 0;
        // Every second piece is between backticks.
        for path in text.split('`').skip(1).step_by(2) {
            let in_a_folder = tops.iter().any(|top| path.starts_with(top)) && !path.contains(['<', ' ']);
            let a_file = [".rs", ".toml", ".example", ".h", ".py"]
                .iter()
                .any(|ending| path.ends_with(ending));
            let is_to_be_chosen = path.contains("NAME") || path.contains("TOPIC");
            if !in_a_folder && !a_file || is_to_be_chosen {
                continue;
            }
            named += 1;
            assert!(is_there(path), "{page} names `{path}`, which is not there");
        }
        assert!(named > least, "{page} names {named} files");
    }
}

fn is_there(path: &str) -> bool {
    let Some((before, after)) = path.split_once('*') else {
        return checkout().join(path).exists();
    };
    let (folder, start) = before.rsplit_once('/').unwrap_or((".", before));
    std::fs::read_dir(checkout().join(folder))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .any(|name| name.starts_with(start) && name.ends_with(after))
}

/// The links of a page to files beside it: not those to places within the page, nor those to the web.
fn links(page: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(page).unwrap();
    let links = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    let files = links.filter(|link| !link.is_empty() && !link.contains(':') && !link.contains(' '));
    files.map(|link| page.parent().unwrap().join(link)).collect()
}

fn pages_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !path.is_symlink() && !name.starts_with('.') && name != "target" {
            pages_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// In this tree, and in the pages that a package carries.
#[test]
fn no_link_of_a_page_is_dead() {
    let installed = tempfile::tempdir().unwrap();
    let mut script = Command::new(checkout().join("scripts/docs.sh"));
    assert!(script.arg(installed.path()).status().unwrap().success());
    for (root, least) in [(checkout(), 40), (installed.path().to_owned(), 35)] {
        let mut pages = Vec::new();
        pages_below(&root, &mut pages);
        assert!(
            pages.len() >= least,
            "{} has {} pages",
            root.display(),
            pages.len()
        );
        for page in pages {
            // The README of a Python package is installed beside the package, too, and shown by PyPI.
            if page
                .parent()
                .and_then(Path::parent)
                .is_some_and(|folder| folder.ends_with("python"))
            {
                assert!(
                    links(&page).is_empty(),
                    "{}: links to the web alone",
                    page.display()
                );
            }
            for link in links(&page) {
                assert!(
                    link.exists(),
                    "{} links to {}, which is not there",
                    page.display(),
                    link.display()
                );
            }
        }
    }
}

#[test]
fn the_kinds_of_errors_are_documented() {
    let docs = std::fs::read_to_string(checkout().join("docs/bus.md")).unwrap();
    let (_, table) = docs.split_once("| kind |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let kinds: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(kinds, FailureKind::NAMES, "the kinds of the service, sorted");
}

/// docs/bus.md begins with a row for every topic: those that the service and the doors answer or send.
#[test]
fn every_topic_is_documented() {
    let docs = std::fs::read_to_string(checkout().join("docs/bus.md")).unwrap();
    let (_, table) = docs.split_once("| topic |").expect("a table of topics");
    let (before, _) = docs.split_once("| topic |").unwrap();
    assert!(before.lines().count() < 25, "the table of topics comes first");
    let rows: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let documented: std::collections::BTreeSet<String> = rows
        .iter()
        .filter_map(|row| row.split('`').nth(1))
        .map(str::to_owned)
        .collect();
    let schemas = client::payload::schemas();
    for topic in schemas.keys().filter(|topic| !topic.ends_with(".response")) {
        assert!(documented.contains(topic), "docs/bus.md has no row for {topic}");
    }
    for (row, topic) in rows.iter().filter_map(|row| Some((row, row.split('`').nth(1)?))) {
        // A placeholder stands for the id of a toolbox.
        let kind = topic.replace("<toolbox_id>", "math");
        let is_served = ovos_tools::api::Topic::of(&kind, false).is_some()
            || ovos_tools::api::Urgent::of(&kind).is_some();
        let described = schemas.contains_key(topic) || topic == client::topic::SCHEDULE.name();
        assert!(
            is_served || described,
            "docs/bus.md describes {topic}, which is no topic"
        );
        for link in row
            .split("](../schemas/")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            assert!(
                checkout().join("schemas").join(link).exists(),
                "{topic}: no schemas/{link}"
            );
        }
        for end in ["", ".response"] {
            let file = format!("{topic}{end}");
            assert!(
                !schemas.contains_key(&file) || row.contains(&format!("](../schemas/bus/{file}.json)")),
                "docs/bus.md: the row of {topic} does not link schemas/bus/{file}.json"
            );
        }
    }
}
