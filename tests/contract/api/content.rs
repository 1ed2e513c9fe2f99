//! Content beside a result: what a toolbox returns, and what it must not.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::api::INVOKE;
use crate::support::contract::{Client, World, expect};
use crate::support::kernel::can_confine;

/// A world in which testbed has shown something, and its content folder.
struct Shown {
    world: World,
    client: Client,
    folder: PathBuf,
}

impl Shown {
    fn start(testbed: &Value) -> Self {
        let world = World::start(&json!({ "testbed": testbed }));
        let mut client = world.client();
        let answer = client.ask(INVOKE, json!({"name": "show", "args": {}, "content": "path"}));
        let Some(folder) = answer["result"]["folder"].as_str() else {
            panic!("no content folder: {answer}\n{}", world.log());
        };
        let folder = PathBuf::from(folder);
        Self {
            world,
            client,
            folder,
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.join(name), bytes).unwrap();
    }

    fn show(&mut self, mode: &str, args: &Value) -> Value {
        let answer = self
            .client
            .ask(INVOKE, json!({"name": "show", "args": args, "content": mode}));
        // Whatever becomes of the content, the result stays.
        assert!(answer["result"]["folder"].is_string(), "{answer}");
        answer
    }
}

fn item(kind: &str, mime_type: &str, key: &str, value: &str) -> Value {
    json!({"type": kind, "mime_type": mime_type, key: value})
}

fn image(path: &str) -> Value {
    item("image", "image/png", "path", path)
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Every kind, by every way.
fn every_kind_arrives(testbed: &Value) {
    let mut stage = Shown::start(testbed);
    assert_eq!(mode_of(&stage.folder), 0o700);
    stage.write("a.png", b"\x89PNG");
    stage.write("b.wav", b"RIFF\x00\xff");
    stage.write("map", b"\x00\x01");
    let args = json!({"text": "what the toolbox wrote", "items": [
        {"type": "image", "mime_type": "image/png", "path": "a.png", "title": "The front"},
        item("audio", "audio/wav", "path", "b.wav"),
        item("resource", "application/x-map", "path", "map"),
        item("image", "image/jpeg", "data", "/9j/"),
        item("text", "text/markdown", "data", "h\u{e9}llo"),
        item("resource", "text/html", "uri", "https://example.org/"),
    ]});
    let expected: [(&str, &str, &str, &[u8], &str); 6] = [
        (
            "text",
            "text/plain",
            "txt",
            b"what the toolbox wrote",
            "what the toolbox wrote",
        ),
        ("image", "image/png", "png", b"\x89PNG", "iVBORw=="),
        ("audio", "audio/wav", "wav", b"RIFF\x00\xff", "UklGRgD/"),
        ("resource", "application/x-map", "bin", b"\x00\x01", "AAE="),
        ("image", "image/jpeg", "jpg", b"\xff\xd8\xff".as_slice(), "/9j/"),
        (
            "text",
            "text/markdown",
            "md",
            "h\u{e9}llo".as_bytes(),
            "h\u{e9}llo",
        ),
    ];
    let link = item("resource", "text/html", "uri", "https://example.org/");

    let answer = stage.show("path", &args);
    let content = answer["content"].as_array().expect("content");
    assert_eq!(content.len(), 7, "{answer}");
    for (item, (kind, mime_type, extension, bytes, _)) in content.iter().zip(&expected) {
        let path = Path::new(item["path"].as_str().expect("a path"));
        assert_eq!(
            (&item["type"], &item["mime_type"]),
            (&json!(kind), &json!(mime_type))
        );
        assert_eq!(path.extension().unwrap(), *extension);
        assert_eq!(
            path.parent(),
            Some(&*stage.folder.with_file_name("service")),
            "{item}"
        );
        assert_eq!(fs::read(path).unwrap(), *bytes, "{item}");
        assert_eq!(mode_of(path), 0o600);
    }
    assert_eq!(content[1]["title"], "The front");
    assert_eq!(content[6], link);
    assert_eq!(answer["content_refused"], Value::Null);

    let answer = stage.show("inline", &args);
    let content = answer["content"].as_array().expect("content");
    for (item, (kind, mime_type, _, _, data)) in content.iter().zip(&expected) {
        expect(
            "inline",
            &json!({"...": 0, "type": kind, "mime_type": mime_type, "data": data}),
            item,
        );
        assert_eq!(item["path"], Value::Null);
    }
    assert_eq!(content[6], link);

    let call = json!({"toolbox_id": "testbed", "name": "show", "kwargs": args, "content": "path"});
    let answer = stage.client.ask("ovos.persona.tools.call", call);
    assert_eq!(answer["content"].as_array().map(Vec::len), Some(7), "{answer}");

    let files = fs::read_dir(&stage.folder).unwrap().count();
    let answer = stage.client.invoke("show", args);
    assert_eq!(answer["result"]["folder"], Value::Null, "{answer}");
    assert_eq!(fs::read_dir(&stage.folder).unwrap().count(), files);
    let keys: Vec<_> = answer.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["name", "result"],
        "an answer carries content only when it was asked for"
    );
    drop(stage.world);
}

#[test]
fn every_kind_of_content_arrives_from_a_confined_process() {
    if can_confine() {
        every_kind_arrives(&json!({"confine": {}}));
    }
}

#[test]
fn what_breaks_a_rule_is_left_out_and_named() {
    let mut stage = Shown::start(&json!({}));
    let folder = stage.folder.clone();
    stage.write("good.png", b"good");
    stage.write("broken.txt", b"\xff\xfe");
    stage.write("five", &vec![0; 5 << 20]);
    stage.write("nine", &vec![0; 9 << 20]);
    symlink("/etc/hostname", folder.join("secret")).unwrap();
    symlink("good.png", folder.join("link")).unwrap();
    fs::create_dir(folder.join("sub")).unwrap();
    symlink("/etc", folder.join("etc")).unwrap();
    fs::hard_link(folder.join("broken.txt"), folder.join("again")).unwrap();
    mknodat(
        CWD,
        folder.join("pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let text = |key: &str, value: &str| item("text", "text/plain", key, value);
    let big = "A".repeat((4 << 20) / 3 * 4 + 8);
    stage.write("broken2.txt", b"\xff\xfe");
    for (mode, given, expected) in [
        // First: folders do not stay.
        ("path", image("sub"), "not a regular file"),
        ("path", image("/etc/hostname"), "not the name of a file"),
        ("path", image("../service/x"), "not the name of a file"),
        (
            "path",
            image("sub/../../testbed/good.png"),
            "not the name of a file",
        ),
        ("path", image("secret"), "it is a link"),
        ("path", image("link"), "it is a link"),
        ("inline", image("link"), "it is a link"),
        ("path", image("etc"), "it is a link"),
        ("path", image("etc/hostname"), "not the name of a file"),
        ("path", image("again"), "another name"),
        ("path", image("pipe"), "not a regular file"),
        ("path", image("missing"), "no such file"),
        ("path", image("nine"), "9437184 bytes"),
        ("inline", image("five"), "5242880 bytes"),
        ("path", text("path", "broken2.txt"), "not UTF-8"),
        ("path", item("image", "image/png", "data", "no!"), "not base64"),
        ("inline", item("image", "image/png", "data", "no!"), "not base64"),
        (
            "inline",
            item("image", "image/png", "data", &big),
            "bytes of data",
        ),
        (
            "path",
            item("image", "image/png", "uri", "file:///etc/hostname"),
            "names a file",
        ),
        (
            "path",
            item("image", "text/html", "path", "good.png"),
            "mime_type",
        ),
        (
            "path",
            json!({"type": "image", "mime_type": "image/png"}),
            "exactly one of",
        ),
    ] {
        let answer = stage.show(mode, &json!({"items": [given, image("good.png")]}));
        expect(
            &format!("{mode} {expected}"),
            &json!({"...": 0, "content_refused": [format!("~{expected}")], "content": [{"...": 0, "type": "image"}]}),
            &answer,
        );
    }
    assert!(
        stage.world.log().contains("content is left out"),
        "{}",
        stage.world.log()
    );

    let answer = stage.show(
        "path",
        &json!({"items": [image("five"), image("five"), image("good.png")]}),
    );
    expect(
        "together too much",
        &json!({"...": 0, "content": ["*", "*"], "content_refused": ["~item 2 (path \"five\"): it is 5242880 bytes"]}),
        &answer,
    );
    // A text that is not UTF-8 takes nothing from the others.
    stage.write("five.txt", &vec![0xff; 5 << 20]);
    let answer = stage.show(
        "path",
        &json!({"items": [text("path", "five.txt"), image("five")]}),
    );
    expect(
        "given back",
        &json!({"...": 0, "content": ["*"], "content_refused": ["~not UTF-8"]}),
        &answer,
    );
    let answer = stage.show("path", &json!({"items": vec![image("good.png"); 10]}));
    expect(
        "too many",
        &json!({"...": 0, "content": vec!["*"; 8], "content_refused": ["~at most 8 items, and the tool returned 10"]}),
        &answer,
    );
    let answer = stage
        .client
        .ask(INVOKE, json!({"name": "show", "args": {}, "content": "all"}));
    expect(
        "mode",
        &json!({"...": 0, "error": "~ValueError: 'content' must be \"path\" or \"inline\""}),
        &answer,
    );
}
