//! Confinement: what a toolbox's process may access outside its own memory.
//!
//! [`Confine`] is what the configuration asks for, and the process applies it to itself while it has one thread and no
//! foreign code. It is applied as a whole: if this kernel cannot enforce a part of it, that is an error, and the
//! toolbox is not loaded. Only a confinement that no section asks for ([`DefaultConfinement`]) is left out, as a whole and before
//! the process is started. The tables below list what is always allowed. Read [`put_on`].

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::process::default_confinement::{make_folders, matching};
use section::{Confine, DefaultConfinement};

/// Always readable: libraries and the files by which they are found and configured, time zones, certificates,
/// properties of the machine. Not the home folder, not all of `/etc`, nothing below `/run`, `/var` or `/tmp`.
const READABLE: &[&str] = &[
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/proc",
    "/sys",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
    // The files above are often links into this folder.
    "/run/systemd/resolve",
];

/// Harmless devices that every program may use.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The oldest usable version (Linux 6.2): older ones let a process truncate files that it may only read.
const NEEDED: ABI = ABI::V3;

/// The newest version that is used if the kernel has it: `ioctl` on devices (5), signals to other processes (6).
const KNOWN: ABI = ABI::V6;

/// How many files a confined process may have open.
const OPEN_FILES: u64 = 1024;

/// The capabilities that root keeps: those for files, which the rules above restrict, and for priorities.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::IPC_LOCK);

/// The capabilities that root keeps in addition if the process may use the network.
const KEPT_FOR_NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_BROADCAST)
    .union(CapabilitySet::NET_RAW);

/// Why a process cannot be confined. No foreign code was loaded then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    /// Landlock is missing or too old.
    #[error(
        "this kernel cannot confine a process to `paths_rw`, `paths_ro` and `devices`: that requires Linux 6.2 or newer with \
         Landlock enabled ({0})"
    )]
    Landlock(String),
    /// seccomp is missing, or does not support this processor.
    #[error("this machine cannot keep a process from the network ({0})")]
    Network(String),
    /// A call to the system failed.
    #[error("cannot confine the process: cannot {what}: {source}")]
    System {
        what: &'static str,
        source: std::io::Error,
    },
}

impl ConfineError {
    /// The error, with advice.
    fn advise(&self) -> String {
        match self {
            Self::Landlock(_) => {
                format!("{self}; remove `confine` from the toolbox's section to load it unconfined")
            }
            Self::Network(_) => format!(
                "{self}; set `confine.network` to true, or remove `confine` from the toolbox's section"
            ),
            Self::System { .. } => self.to_string(),
        }
    }
}

/// The argument for the command line of the process. Paths come from JSON, so they are Unicode.
pub(crate) fn argument(confine: &Confine) -> String {
    serde_json::to_string(&(confine, &confine.default)).unwrap_or_default()
}

/// # Errors
/// The text was not made by [`argument`].
fn from_argument(text: &str) -> Result<Confine, String> {
    let (confine, default): (Confine, Option<DefaultConfinement>) =
        serde_json::from_str(text).map_err(|e| format!("--confine: {e}"))?;
    Ok(Confine { default, ..confine })
}

/// Why this machine cannot enforce a confinement that no section asks for: the toolbox then runs without it.
/// Tested once, on a thread that restricts itself and ends.
#[must_use]
pub fn why_unconfined(confine: &Confine) -> Option<&'static str> {
    static WITHOUT_NETWORK: OnceLock<Option<String>> = OnceLock::new();
    static WITH_NETWORK: OnceLock<Option<String>> = OnceLock::new();
    confine.default.as_ref()?;
    let network = confine.network;
    let tried = if network { &WITH_NETWORK } else { &WITHOUT_NETWORK };
    let attempt = move || {
        let nothing = Confine {
            network,
            ..Confine::default()
        };
        restrict(&nothing, Path::new("/proc/self/exe"))
    };
    let found = tried.get_or_init(|| match std::thread::spawn(attempt).join() {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the attempt panicked".to_owned()),
    });
    found.as_deref()
}

/// Confines this process, which will load `plugin`. Returns the paths that do not exist: they cannot be accessed
/// even if they are created later.
///
/// Must be called before any thread is started: other threads would stay unconfined.
///
/// # Errors
/// See [`ConfineError`]. The process may be confined in part then, and must not load the plugin.
fn put_on(confine: &Confine, plugin: &Path) -> Result<Vec<PathBuf>, ConfineError> {
    let files = getrlimit(Resource::Nofile);
    let most = files.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    limit(Resource::Nofile, most, "limit its open files")?;
    drop_capabilities(confine)?;
    if let Some(default) = &confine.default {
        make_folders(default);
    }
    let missing = restrict(confine, plugin)?;
    // The list of a default confinement also names files that only other machines have.
    Ok(if confine.default.is_some() {
        Vec::new()
    } else {
        missing
    })
}

/// Restricts this thread and those it starts.
fn restrict(confine: &Confine, plugin: &Path) -> Result<Vec<PathBuf>, ConfineError> {
    let (rules, missing) = rules(confine, plugin).map_err(landlocked)?;
    let status = rules.restrict_self().map_err(landlocked)?;
    match status {
        RestrictionStatus {
            ruleset: RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            no_new_privs: true,
            ..
        } => {}
        other => return Err(ConfineError::Landlock(format!("{:?}", other.ruleset))),
    }
    if !confine.network {
        forbid_sockets()?;
    }
    Ok(missing)
}

fn rules(confine: &Confine, plugin: &Path) -> Result<(RulesetCreated, Vec<PathBuf>), landlock::RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::Signal)?;
    let ruleset = if confine.network {
        ruleset
    } else {
        // `forbid_sockets` forbids every socket; this is a second guard for TCP.
        ruleset.handle_access(AccessNet::from_all(KNOWN))?
    };
    let mut missing = Vec::new();
    let mut rules = Rules(ruleset.create()?);
    let read = AccessFs::from_read(KNOWN);
    let write = AccessFs::from_write(NEEDED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
    for path in READABLE {
        rules.allow(Path::new(path), read)?;
    }
    for path in DEVICES {
        rules.allow(Path::new(path), device)?;
    }
    // The list of devices can be read in /sys, too.
    rules.allow(Path::new("/dev"), AccessFs::ReadDir.into())?;
    // Also this program, because it is started again to bring the hardware to rest.
    for path in [plugin, Path::new("/proc/self/exe")] {
        rules.allow(path, read)?;
    }
    for (paths, access) in [(&confine.paths_ro, read), (&confine.paths_rw, read | write)] {
        for path in paths {
            if !rules.allow(path, access)? {
                missing.push(path.clone());
            }
        }
    }
    for pattern in &confine.devices {
        let mut is_there = false;
        for path in matching(pattern) {
            is_there |= rules.allow(&path, device | AccessFs::IoctlDev)?;
        }
        if !is_there {
            missing.push(pattern.clone());
        }
    }
    Ok((rules.0, missing))
}

fn drop_capabilities(confine: &Confine) -> Result<(), ConfineError> {
    let kept = if confine.network {
        KEPT | KEPT_FOR_NETWORK
    } else {
        KEPT
    };
    let system = |source: rustix::io::Errno| ConfineError::System {
        what: "drop capabilities",
        source: source.into(),
    };
    let had = capabilities(None).map_err(system)?;
    let sets = CapabilitySets {
        effective: had.effective & kept,
        permitted: had.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(system)
}

/// Confines this process, which still has only one thread and will load or become `file`, as an argument of its command line
/// says. Returns the paths that do not exist.
///
/// # Errors
/// The reason, with advice. The process must not go on then.
pub fn enter(argument: Option<&str>, file: &Path) -> Result<Vec<PathBuf>, String> {
    no_core().map_err(|e| format!("forbid core files: {e}"))?;
    match argument {
        None => Ok(Vec::new()),
        Some(text) => put_on(&from_argument(text)?, file).map_err(|e| e.advise()),
    }
}

/// Confines a process that only says hello for a file: it may change no file and open no connection, as far as this kernel
/// can enforce that. The id of the toolbox is not known yet, and so its section is not, either.
pub fn confine_greeting() {
    let writes = || {
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_write(KNOWN))?
            .handle_access(AccessNet::from_all(KNOWN))?
            .scope(Scope::Signal)?;
        let mut rules = Rules(ruleset.create()?);
        for path in DEVICES {
            rules.allow(Path::new(path), AccessFs::WriteFile.into())?;
        }
        rules.0.restrict_self()
    };
    _ = no_core();
    _ = rustix::thread::set_no_new_privs(true);
    if let Err::<_, landlock::RulesetError>(error) = writes() {
        tracing::debug!(%error, "a plugin file is inspected without confinement: this kernel cannot enforce it");
    }
    _ = forbid_sockets();
}

/// Forbids core files: they would contain the toolbox's secrets, and writing one would delay the safe stop after a
/// crash.
fn no_core() -> std::io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Core, none)?)
}

struct Rules(RulesetCreated);

impl Rules {
    /// Allows access to a path; false if it does not exist.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<bool, landlock::RulesetError> {
        let Ok(there) = PathFd::new(path) else {
            return Ok(false);
        };
        let access = if path.is_dir() {
            access
        } else {
            access & AccessFs::from_file(KNOWN)
        };
        (&mut self.0).add_rule(PathBeneath::new(there, access))?;
        Ok(true)
    }
}

fn landlocked(error: landlock::RulesetError) -> ConfineError {
    ConfineError::Landlock(match error {
        // The error's own text is only a list of bits.
        landlock::RulesetError::HandleAccesses(_) => "here Landlock is missing or older".to_owned(),
        other => other.to_string(),
    })
}

fn limit(resource: Resource, most: u64, what: &'static str) -> Result<(), ConfineError> {
    let both = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(resource, both).map_err(|source| ConfineError::System {
        what,
        source: source.into(),
    })
}

/// Makes `socket` fail with EACCES for every kind of socket: Landlock does not cover UDP, and through the socket file
/// of another program the process could reach what it may not reach itself. The calls that could create a socket
/// without `socket` fail, too. Pairs of connected sockets reach no other program and stay allowed.
#[cfg(target_pointer_width = "64")]
fn forbid_sockets() -> Result<(), ConfineError> {
    use seccompiler::{SeccompAction, SeccompFilter};

    let trouble = |error: &dyn std::fmt::Display| ConfineError::Network(error.to_string());
    let mut calls = vec![libc::SYS_socket, libc::SYS_io_uring_setup];
    if cfg!(target_arch = "x86_64") {
        /// The same calls in the x32 ABI, if the kernel has it.
        const X32: i64 = 0x4000_0000;
        calls.extend([libc::SYS_socket | X32, libc::SYS_io_uring_setup | X32]);
    }
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into();
    let arch = arch.map_err(|e: seccompiler::BackendError| trouble(&e))?;
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch).map_err(|e| trouble(&e))?;
    let program: seccompiler::BpfProgram = filter
        .try_into()
        .map_err(|e: seccompiler::BackendError| trouble(&e))?;
    seccompiler::apply_filter(&program).map_err(|e| trouble(&e))
}

#[cfg(not(target_pointer_width = "64"))]
fn forbid_sockets() -> Result<(), ConfineError> {
    let why = "filters of system calls are made for 64-bit processors only";
    Err(ConfineError::Network(why.to_owned()))
}
