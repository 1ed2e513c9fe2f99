//! How an interpreter is asked what it has: as its programs run, and only if no other user can choose its code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::python_toolboxes::scene::{PYTHON, Package, Scene};
use crate::support::kernel::can_confine;

const SAMPLE: Package = Package {
    toolbox: "sample-tools",
    version: "1",
};

fn start(packages: &[Package], entry: &Value) -> Scene {
    Scene::start(packages, entry, &json!({}))
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Has every start of the interpreter run this.
fn customize(scene: &Scene, code: &str) {
    fs::write(scene.path("site/sitecustomize.py"), code).unwrap();
}

#[test]
fn an_interpreter_that_is_asked_ends_with_the_service_and_so_does_what_it_has_forked() {
    let mut scene = start(&[], &json!({ "enabled": "auto", "interpreter": PYTHON }));
    let log = scene.path("asked");
    let code = format!(
        "import os, signal, time\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         child = os.fork()\n\
         if child:\n    \
             with open({log:?} + '.new', 'w') as file: file.write(f'{{os.getpid()}} {{child}}')\n    \
             os.rename({log:?} + '.new', {log:?})\n\
         time.sleep(600)\n"
    );
    customize(&scene, &code);
    scene.client.send("ovos.tools.reload", &json!({}));
    let pids = scene
        .service
        .process
        .until("an interpreter that is asked", |_| fs::read_to_string(&log).ok());
    scene.service.process.kill();
    let end = Instant::now() + Duration::from_secs(5);
    for pid in pids
        .split(' ')
        .map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap())
    {
        while test_kill_process(pid).is_ok() && !is_zombie(pid) {
            assert!(Instant::now() < end, "{pid:?} of {pids} lives on");
        }
    }
}

/// Whether the process has ended and is not reaped yet.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn an_interpreter_is_asked_with_the_confinement_of_its_programs() {
    if !can_confine() {
        return;
    }
    let mut scene = start(&[], &json!({ "enabled": "auto", "interpreter": PYTHON }));
    scene.install(&SAMPLE);
    let escaped = scene.path("escaped");
    customize(
        &scene,
        &format!("try: open({escaped:?}, 'w').close()\nexcept OSError: pass\n"),
    );
    let allowed = json!({ "paths_ro": [scene.path("site")] });
    scene.configure(&json!({ "interpreter": PYTHON, "confine": allowed }));
    let report = scene.reload();
    assert_eq!(report["added"], json!(["sample-tools"]), "{report}");
    assert!(
        !escaped.exists(),
        "code of a package wrote outside of what `confine` names"
    );
    // What its packages are in has to be named.
    scene.configure(&json!({ "interpreter": PYTHON, "confine": {} }));
    let report = scene.reload();
    let why = report["failed"][0]["reason"].as_str().unwrap_or_default();
    assert!(why.contains("does `paths_ro` name"), "{report}");
}

#[test]
fn what_others_could_write_is_not_imported_from() {
    let mut scene = start(&[], &json!({ "interpreter": PYTHON, "enabled": "auto" }));
    let user = Command::new(PYTHON)
        .args(["-c", "import site; print(site.getusersitepackages())"])
        .env("PYTHONUSERBASE", scene.path("user"))
        .output()
        .unwrap();
    let user = PathBuf::from(String::from_utf8(user.stdout).unwrap().trim());
    let (linked, editable, ran) = (scene.path("linked"), scene.path("editable"), scene.path("ran"));
    for folder in [&user, &linked, &editable] {
        fs::create_dir_all(folder).unwrap();
        chmod(folder, 0o755);
    }
    // A folder in a line of a .pth file; code in another; and what setuptools leaves of an editable package.
    fs::write(user.join("a.pth"), format!("{}\n", linked.display())).unwrap();
    let code = format!("import os; open({ran:?}, 'w').close()\nimport __editable___e_finder\n");
    fs::write(user.join("b.pth"), code).unwrap();
    let finder = format!(
        "import sys\nMAPPING = {{'e': {editable:?}}}\n\
         class Finder:\n    @classmethod\n    def find_spec(cls, name, path=None, target=None): return None\n\
         sys.meta_path.append(Finder)\n"
    );
    fs::write(user.join("__editable___e_finder.py"), finder).unwrap();
    scene.install(&SAMPLE);
    for (folder, runs_code) in [
        (scene.path("site"), false),
        (user, false),
        (linked, false),
        (editable, true),
    ] {
        _ = fs::remove_file(&ran);
        chmod(&folder, 0o777);
        let report = scene.reload();
        assert_eq!(report["added"], json!([]), "{report}");
        let left_out = scene.status()["pythons"][0]["left_out"].to_string();
        let expected = format!("{} has mode 0777", folder.display());
        assert!(
            left_out.contains(&expected) && left_out.contains("chmod go-w"),
            "{expected}: {left_out}"
        );
        assert_eq!(ran.exists(), runs_code, "{expected}");
        chmod(&folder, 0o755);
    }
    let report = scene.reload();
    assert_eq!(report["added"], json!(["sample-tools"]), "{report}");
    assert!(ran.exists());
    // A process is not started again from it either.
    chmod(&scene.path("site"), 0o777);
    let toolbox = scene.until("sample-tools", "its process", |toolbox| toolbox["pid"].is_u64());
    crate::support::status::signal(&toolbox, rustix::process::Signal::KILL);
    let toolbox = scene.until("sample-tools", "a failure", |toolbox| {
        toolbox["last_death"].to_string().contains("has mode 0777")
    });
    assert_ne!(toolbox["state"], "ready", "{toolbox}");
}

#[test]
fn what_the_entry_does_not_name_is_no_failure() {
    let other = Package {
        toolbox: "other-tools",
        version: "1",
    };
    let mut scene = start(
        &[SAMPLE, other],
        &json!({ "interpreter": PYTHON, "toolboxes": ["sample-*"] }),
    );
    let status = scene.status();
    assert_eq!(status["failed"], json!([]), "{status}");
    assert_eq!(status["toolboxes"].as_array().unwrap().len(), 1, "{status}");
    let left_out = status["pythons"][0]["left_out"].to_string();
    assert!(left_out.contains("other-tools: "), "{left_out}");
}

#[test]
fn check_tries_a_toolbox_of_the_interpreter_out() {
    let scene = start(&[SAMPLE], &json!({ "interpreter": PYTHON }));
    let found = scene.service.ask(&["check", "sample-tools"]);
    assert_eq!(
        (&found["manifest"]["id"], &found["errors"]),
        (&json!("sample-tools"), &json!([])),
        "{found}"
    );
    assert_eq!(found["tools"].as_array().unwrap().len(), 7, "{found}");
    let missing = scene.service.ask(&["check", "lost-tools"]);
    let why = missing["errors"].to_string();
    assert!(
        why.contains("has no toolbox `lost-tools`; it has sample-tools"),
        "{why}"
    );
}
