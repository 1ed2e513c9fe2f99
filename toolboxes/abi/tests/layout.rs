//! The Rust mirror has the layout that a C compiler gives toolbox.h, and the header compiles without warnings as C and
//! C++.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, c_int};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ovos_toolbox_abi::{
    Bytes, Entry, Host, RoleEntry, Status, Str, TOOLBOX_SIZE_V1_0, Toolbox, level, status,
};

/// The exported symbols: what C has to say of each, for which the mirror of its type below stands.
const SYMBOLS: [&str; 2] = [
    "_Generic(&toolbox_entry_v1, const tb_toolbox *(*)(void): 1, default: 0)",
    "_Generic(&toolbox_role_v1, tb_status (*)(tb_str, int): 1, default: 0)",
];

extern "C" fn entry() -> *const Toolbox {
    std::ptr::null()
}

extern "C" fn role(_: Str, _: c_int) -> Status {
    status::OK
}

/// Compiles only while the mirror says of the symbols what `SYMBOLS` asks of C.
const _: (Entry, RoleEntry) = (entry, role);

fn compile(compiler: &str, arguments: &[&str], source: &Path, out: &Path) {
    let output = Command::new(compiler)
        .args(arguments)
        .args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-I",
            env!("CARGO_MANIFEST_DIR"),
            "-o",
        ])
        .arg(out)
        .arg(source)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} (Debian: apt install build-essential): {error}"));
    assert!(
        output.status.success(),
        "{compiler} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn scratch(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Rust's name, C's expression and Rust's value of everything that has to match.
macro_rules! facts {
    ($($mirror:ident is $c:ident { $($field:ident),* })*) => {{
        let mut facts: BTreeMap<String, usize> = BTreeMap::new();
        $(
            facts.insert(format!("sizeof({})", stringify!($c)), size_of::<$mirror>());
            facts.insert(format!("_Alignof({})", stringify!($c)), align_of::<$mirror>());
            $(
                let offset = format!("offsetof({}, {})", stringify!($c), stringify!($field));
                facts.insert(offset, offset_of!($mirror, $field));
            )*
        )*
        facts
    }};
}

fn facts() -> BTreeMap<String, usize> {
    let mut facts = facts! {
        Str is tb_str { ptr, len }
        Bytes is tb_bytes { ptr, len, owner, release }
        Host is tb_host { size, ctx, log, complete, progress, event, request }
        Toolbox is tb_toolbox {
            size, manifest, open, tools, plan, start, cancel, conclude, halt, resume, message, on_response,
            may_close, safe_stop, close
        }
    };
    facts.insert("sizeof(tb_status)".to_string(), size_of::<Status>());
    facts.insert("sizeof(int)".to_string(), size_of::<c_int>());
    facts.extend(SYMBOLS.map(|symbol| (symbol.to_string(), 1)));
    for (name, value) in [
        ("TB_OK", status::OK),
        ("TB_ERR", status::ERR),
        ("TB_BAD_ARGS", status::BAD_ARGS),
        ("TB_CANCELLED", status::CANCELLED),
        ("TB_BUSY", status::BUSY),
        ("TB_PANIC", status::PANIC),
        ("TB_UNKNOWN_TOOL", status::UNKNOWN_TOOL),
        ("TB_LOG_ERROR", level::ERROR),
        ("TB_LOG_WARN", level::WARN),
        ("TB_LOG_INFO", level::INFO),
        ("TB_LOG_DEBUG", level::DEBUG),
        ("TB_LOG_TRACE", level::TRACE),
    ] {
        facts.insert(name.to_string(), value as usize);
    }
    facts
}

#[test]
fn the_mirror_has_the_layout_of_the_header() {
    let facts = facts();
    let prints: String = facts
        .keys()
        .map(|fact| format!("  printf(\"%s=%zu\\n\", \"{fact}\", (size_t)({fact}));\n"))
        .collect();
    let source = scratch(
        "layout.c",
        &format!("#include \"toolbox.h\"\n#include <stdio.h>\nint main(void) {{\n{prints}  return 0;\n}}\n"),
    );
    let program = source.with_extension("run");
    compile("cc", &["-std=c11"], &source, &program);
    let output = Command::new(&program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let measured: BTreeMap<String, usize> = text
        .lines()
        .filter_map(|line| line.rsplit_once('='))
        .map(|(fact, value)| (fact.to_string(), value.parse().unwrap()))
        .collect();
    assert_eq!(measured, facts, "left: the C compiler, right: the mirror");
}

#[test]
fn every_field_and_constant_of_the_header_is_compared() {
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("toolbox.h")).unwrap();
    let facts = facts();
    let constants: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define TB_"))
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    assert_eq!(
        constants.len(),
        facts.keys().filter(|fact| fact.starts_with("TB_")).count(),
        "{constants:?}"
    );
    for constant in constants {
        assert!(
            facts.contains_key(&format!("TB_{constant}")),
            "TB_{constant} is not compared"
        );
    }
    let prototypes = header.lines().filter(|line| {
        !line.starts_with([' ', '/', '*']) && line.contains("toolbox_") && line.ends_with(");")
    });
    assert_eq!(prototypes.count(), SYMBOLS.len(), "a prototype is not compared");
    let is_field = |line: &&str| {
        line.starts_with("    ") && line.contains(';') && !line.trim_start().starts_with(['/', '*'])
    };
    // A field is either `type name;` or `type (*name)(...)` inside a struct; its line begins with four blanks.
    for (name, body) in header.split("typedef struct ").skip(1).filter_map(|text| {
        let (name, rest) = text.split_once(" {")?;
        Some((name, rest.split_once("\n}")?.0))
    }) {
        let fields = body.lines().filter(is_field).count();
        let compared = facts
            .keys()
            .filter(|fact| fact.starts_with(&format!("offsetof({name},")))
            .count();
        assert_eq!(fields, compared, "fields of {name}");
    }
}

#[test]
fn version_1_ends_with_close() {
    assert_eq!(
        offset_of!(Toolbox, close) + size_of::<usize>(),
        usize::try_from(TOOLBOX_SIZE_V1_0).unwrap()
    );
}

#[test]
fn the_headers_are_clean_c_and_cpp() {
    let uses = "#include \"toolbox.h\"\n#include \"toolbox_json.h\"\nconst tb_toolbox *unused(void);\nconst tb_toolbox *unused(void) { return 0; }\n";
    for (compiler, standard, source) in [
        ("cc", "-std=c99", scratch("clean99.c", uses)),
        ("cc", "-std=c11", scratch("clean11.c", uses)),
        ("c++", "-std=c++17", scratch("clean17.cpp", uses)),
        ("c++", "-std=c++20", scratch("clean20.cpp", uses)),
    ] {
        compile(
            compiler,
            &[standard, "-fvisibility=hidden", "-c"],
            &source,
            &source.with_extension("o"),
        );
    }
}

#[test]
fn any_bytes_become_a_json_string() {
    let source = scratch(
        "quote.c",
        "#include \"toolbox_json.h\"\nint main(int argc, char **argv) {\n    (void)argc;\n    \
         char *quoted = tb_quote(argv[1], strlen(argv[1]));\n    puts(quoted);\n    free(quoted);\n    return 0;\n}\n",
    );
    let program = source.with_extension("");
    compile("cc", &["-fsanitize=undefined"], &source, &program);
    let rows: [(&[u8], &str); 9] = [
        (b"", r#""""#),
        (b"plain.png", r#""plain.png""#),
        (b"a \"b\" \\ c", r#""a \u0022b\u0022 \u005c c""#),
        (b"line\n\x01", r#""line\u000a\u0001""#),
        ("héllo ☃ 🤖".as_bytes(), "\"héllo ☃ 🤖\""),
        (b"\xff-\xc3", r#""\ufffd-\ufffd""#),
        (b"\xc0\xaf", r#""\ufffd\ufffd""#),
        (b"\xed\xa0\x80", r#""\ufffd\ufffd\ufffd""#),
        (b"\xf4\x90\x80\x80", r#""\ufffd\ufffd\ufffd\ufffd""#),
    ];
    for (text, expected) in rows {
        let output = Command::new(&program)
            .arg(OsStr::from_bytes(text))
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim_end(),
            expected,
            "{text:?}"
        );
    }
}
