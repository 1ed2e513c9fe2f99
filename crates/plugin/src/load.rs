//! Loading a staged file: dynamic linker, entry point, table, manifest.
//!
//! Owns the decision whether a library may be called at all. A library that was loaded is never unloaded: thread-local
//! destructors, leftover threads and release functions of a toolbox would point into unmapped memory.
//! Read [`Library`] first.
#![expect(unsafe_code, reason = "loads a library and reads the table it returns")]

use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use ovos_toolbox_abi as abi;
use ovos_toolbox_abi::Status;
use ovos_toolbox_wire::{ENTRY_SYMBOL, Failure, Manifest, ROLE_SYMBOL};
use protocol::{Functions, MAX_CONTROL, Raw};

use crate::bytes::{borrow, lend};
use crate::table::Table;

/// The largest manifest, a page of text with a schema in it: the hello that holds it may not be longer than 1 MiB.
const MAX_MANIFEST_BYTES: usize = MAX_CONTROL - 4096;
/// No version of the table will be larger; a larger size is garbage.
const MAX_TABLE_BYTES: u64 = 64 * 1024;

/// Why a file is not a toolbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The dynamic linker refused the file.
    #[error("load {}: {message}", path.display())]
    Link {
        /// The file.
        path: PathBuf,
        /// The linker's error.
        message: String,
    },
    /// The file exports no entry point.
    #[error("{} has no symbol {ENTRY_SYMBOL}; a toolbox exports it (toolbox.h)", path.display())]
    NoEntry {
        /// The file.
        path: PathBuf,
    },
    /// The file exports no roles.
    #[error("{} has no symbol {ROLE_SYMBOL}, so it has no roles (toolbox.h)", path.display())]
    NoRole {
        /// The file.
        path: PathBuf,
    },
    /// The entry point returned nothing usable.
    #[error("{}: {ENTRY_SYMBOL} returned {what}; expected a tb_toolbox that lives as long as the library", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
        /// The value that it returned.
        what: &'static str,
    },
    /// The table is of another version.
    #[error("{}: its table has {found} bytes; expected at least {} (tb_toolbox of version 1.0)", path.display(), abi::TOOLBOX_SIZE_V1_0)]
    Size {
        /// The file.
        path: PathBuf,
        /// The table's `size`.
        found: u64,
    },
    /// Required functions are null.
    #[error("{}: required functions are null: {}", path.display(), missing.join(", "))]
    Missing {
        /// The file.
        path: PathBuf,
        /// Their names.
        missing: Vec<&'static str>,
    },
    /// The manifest cannot be used.
    #[error("{}: manifest: {wrong}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The problem.
        wrong: String,
    },
}

/// Loads `file`, which this toolbox has started again, and does the work of a role in it. Returns its status.
///
/// # Errors
/// The library cannot be loaded, or has no roles.
pub(crate) fn play(file: &Path, role: &str, leash: OwnedFd) -> Result<Status, LoadError> {
    let handle = open(file)?;
    // SAFETY: the symbol's name carries the version of its type (toolbox.h).
    let entry = unsafe { handle.get::<abi::RoleEntry>(ROLE_SYMBOL.as_bytes()) };
    let entry = entry.map_err(|_| LoadError::NoRole {
        path: file.to_owned(),
    })?;
    // SAFETY: called once, on the only thread; the text lives until it returns, and the socket is handed over (toolbox.h).
    Ok(unsafe { entry(lend(role), leash.into_raw_fd()) })
}

/// Opens a library, which is never closed again.
fn open(file: &Path) -> Result<ManuallyDrop<Handle>, LoadError> {
    // SAFETY: runs foreign constructors. This process is for this file alone, and loading it is code execution by a file
    // that `check` found to be ours.
    let handle = unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
    let handle = handle.map_err(|e| LoadError::Link {
        path: file.to_owned(),
        message: without(&e, file),
    })?;
    Ok(ManuallyDrop::new(handle))
}

/// A loaded, checked library, which may be opened any number of times.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) table: Table,
    manifest: Raw<Manifest>,
    // Last, and never dropped: everything above points into it.
    _handle: ManuallyDrop<Handle>,
}

impl Library {
    /// Loads `file`, which should be a staged copy that nothing else writes.
    ///
    /// Runs the library's constructors and its entry point: greet the file in a child process first.
    ///
    /// # Errors
    /// See [`LoadError`]. A library that was refused stays mapped.
    pub(crate) fn load(file: &Path) -> Result<Self, LoadError> {
        let path = || file.to_owned();
        let handle = open(file)?;
        // SAFETY: the symbol's name carries the version of its type (toolbox.h).
        let entry = unsafe { handle.get::<abi::Entry>(ENTRY_SYMBOL.as_bytes()) };
        let Ok(entry) = entry else {
            return Err(LoadError::NoEntry { path: path() });
        };
        // SAFETY: an argument-free function by the contract of its name.
        let raw = unsafe { entry() };
        let table = read_table(raw, file)?;
        let checked = Table::new(&table).map_err(|missing| LoadError::Missing {
            path: path(),
            missing,
        })?;
        // SAFETY: static text by toolbox.h; the library is never unloaded.
        let text = unsafe { borrow(table.manifest, MAX_MANIFEST_BYTES) };
        let text = text.map_err(|e| LoadError::Manifest {
            path: path(),
            wrong: format!("the text {e}"),
        })?;
        let manifest = Raw::from_text(text.to_owned()).map_err(|e| LoadError::Manifest {
            path: path(),
            wrong: format!("the manifest is not JSON: {e}"),
        })?;
        Ok(Self {
            table: checked,
            manifest,
            _handle: handle,
        })
    }

    /// The toolbox's manifest, as it says it. The service checks it.
    #[must_use]
    pub(crate) fn manifest(&self) -> &Raw<Manifest> {
        &self.manifest
    }

    /// The optional functions that the toolbox has.
    pub(crate) fn functions(&self) -> Functions {
        self.table.functions()
    }

    /// Brings the hardware to rest without an instance; `None` where the toolbox has no such function. Blocks.
    pub(crate) fn safe_stop(&self, config: &str) -> Option<Result<(), Failure>> {
        self.table.safe_stop(config)
    }
}

/// Copies the part of the table that both sides know.
fn read_table(raw: *const abi::Toolbox, file: &Path) -> Result<abi::Toolbox, LoadError> {
    let no_table = |what| LoadError::NoTable {
        path: file.to_owned(),
        what,
    };
    if raw.is_null() {
        return Err(no_table("null"));
    }
    if !raw.is_aligned() {
        return Err(no_table("a pointer that is not aligned"));
    }
    // SAFETY: not null and aligned; every version of the table begins with its size. Read through a raw pointer, because
    // a reference to a table that is shorter than ours would be undefined (tests/process_isolation/misbehaviour.rs, short_size).
    let size = unsafe { raw.cast::<u64>().read() };
    if !(abi::TOOLBOX_SIZE_V1_0..=MAX_TABLE_BYTES).contains(&size) {
        return Err(LoadError::Size {
            path: file.to_owned(),
            found: size,
        });
    }
    // MAX_TABLE_BYTES fits every usize.
    let length = (size as usize).min(size_of::<abi::Toolbox>());
    let mut table = MaybeUninit::<abi::Toolbox>::zeroed();
    // SAFETY: `known` bytes are readable by the table's own word and writable in ours; all zeroes is a valid table of
    // null pointers, so fields beyond `known` are null (tests/process_isolation/misbehaviour.rs, newer_minor).
    let table = unsafe {
        std::ptr::copy_nonoverlapping(raw.cast::<u8>(), table.as_mut_ptr().cast::<u8>(), length);
        table.assume_init()
    };
    Ok(table)
}

/// The linker's error without the staged path, which means nothing to the reader.
fn without(error: &libloading::Error, file: &Path) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text.replace(&format!("{}: ", file.display()), "")
        .replace(&file.display().to_string(), "the file")
}
