//! Reads a library file without loading it.
//!
//! Answers three questions: is the file for this machine (the dynamic linker only says that it cannot open it), is it complete (the
//! linker would crash), and which symbols does it export? Reads little-endian ELF of 32 and 64 bits; any other format is left to the
//! linker. Read [`usable`] and [`File::open`] first.

use std::fs;
use std::io;
use std::path::Path;

use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_MIPS, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64, FileHeader32,
    FileHeader64, Machine, PT_LOAD, SHT_DYNSYM, STB_LOCAL,
};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{LittleEndian, ReadCache, ReadRef};

/// Checks that a file is a library of this machine with everything that the linker will map.
///
/// # Errors
/// What is wrong with the file, in words that follow its name.
pub(crate) fn usable(path: &Path) -> Result<(), String> {
    let (Ok(head), Ok(own)) = (head(path), head(Path::new("/proc/self/exe"))) else {
        // The linker's own error is better for a file that cannot be read.
        return Ok(());
    };
    if let (Some(theirs), Some(ours)) = (Target::of(&head), Target::of(&own))
        && theirs != ours
    {
        return Err(format!(
            "is for another machine ({theirs}); this one is {ours}: build it here, or for this target"
        ));
    }
    if let Some(system) = OTHER_SYSTEMS.iter().find(|(start, _)| head.starts_with(start)) {
        return Err(format!(
            "is a file of {}; a toolbox is an ELF library for Linux",
            system.1
        ));
    }
    match File::open(path) {
        Ok(Some(file)) => file.whole(),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// How the libraries of other systems begin.
const OTHER_SYSTEMS: [(&[u8], &str); 4] = [
    (&[0xcf, 0xfa, 0xed, 0xfe], "macOS"),
    (&[0xce, 0xfa, 0xed, 0xfe], "macOS"),
    (&[0xca, 0xfe, 0xba, 0xbe], "macOS"),
    (b"MZ", "Windows"),
];

/// The first bytes of a file, as far as it has them.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, HEAD as u64), &mut head)?;
    Ok(head)
}

/// The part of an ELF header that says which machine the file is for, in bytes.
const HEAD: usize = 20;

/// The kind of machine that a file is for.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    bits: u8,
    is_little: bool,
    machine: Machine,
}

impl Target {
    /// `None` if the file is not ELF, or has no header.
    fn of(head: &[u8]) -> Option<Self> {
        let [
            0x7f,
            b'E',
            b'L',
            b'F',
            class @ 1..=2,
            order @ 1..=2,
            ..,
            low,
            high,
        ] = *head
        else {
            return None;
        };
        if head.len() != HEAD {
            return None;
        }
        let is_little = order == 1;
        let number = [low, high];
        Some(Self {
            bits: class * 32,
            is_little,
            machine: Machine(if is_little {
                u16::from_le_bytes(number)
            } else {
                u16::from_be_bytes(number)
            }),
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.machine {
            EM_X86_64 => "x86_64",
            EM_386 => "x86",
            EM_AARCH64 => "aarch64",
            EM_ARM => "arm",
            EM_RISCV => "riscv",
            EM_PPC64 => "powerpc64",
            EM_S390 => "s390",
            EM_LOONGARCH => "loongarch",
            EM_MIPS => "mips",
            Machine(other) => return write!(f, "ELF machine {other}, {} bits", self.bits),
        };
        let order = if self.is_little { "" } else { ", big-endian" };
        write!(f, "{name}, {} bits{order}", self.bits)
    }
}

/// A library file.
pub(crate) struct File {
    data: ReadCache<fs::File>,
    size: u64,
    is_64: bool,
}

impl File {
    /// Opens a file; `None` if it has another format.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = fs::File::open(path)?;
        let size = file.metadata()?.len();
        let data = ReadCache::new(file);
        let is_64 = match data.read_bytes_at(0, 6) {
            Ok([0x7f, b'E', b'L', b'F', 1, 1]) => false,
            Ok([0x7f, b'E', b'L', b'F', 2, 1]) => true,
            _ => return Ok(None),
        };
        Ok(Some(Self { data, size, is_64 }))
    }

    /// Checks that the file has everything that the linker will map. A truncated file kills the process that loads
    /// it.
    ///
    /// # Errors
    /// The number of bytes that the file needs, and the number that it has.
    pub(crate) fn whole(&self) -> Result<(), String> {
        let needed = if self.is_64 {
            self.needed::<FileHeader64<LittleEndian>>()
        } else {
            self.needed::<FileHeader32<LittleEndian>>()
        };
        // If the header cannot be read, the file is truncated.
        let needed = needed.unwrap_or(self.size.saturating_add(1));
        if needed <= self.size {
            return Ok(());
        }
        Err(format!(
            "is truncated: it is {} bytes and should be at least {needed}. Copy it to another name and rename it into place",
            self.size
        ))
    }

    fn needed<Header: FileHeader<Endian = LittleEndian>>(&self) -> Option<u64> {
        let header = Header::parse(&self.data).ok()?;
        let (at, size, count) = (
            header.e_phoff(LittleEndian).into(),
            u64::from(header.e_phentsize(LittleEndian)),
            u64::from(header.e_phnum(LittleEndian)),
        );
        let table_end = at.checked_add(size * count)?;
        // If the table is missing, only the end of the table is known.
        let Ok(segments) = header.program_headers(LittleEndian, &self.data) else {
            return Some(table_end.max(self.size.saturating_add(1)));
        };
        segments
            .iter()
            .filter(|segment| segment.p_type(LittleEndian) == PT_LOAD)
            .try_fold(table_end, |needed, segment| {
                let offset: u64 = segment.p_offset(LittleEndian).into();
                let end = offset.checked_add(segment.p_filesz(LittleEndian).into())?;
                Some(needed.max(end))
            })
    }

    /// The names of the exported symbols; `None` if they cannot be read.
    pub(crate) fn exports(&self) -> Option<Vec<String>> {
        if self.is_64 {
            self.visible::<FileHeader64<LittleEndian>>()
        } else {
            self.visible::<FileHeader32<LittleEndian>>()
        }
    }

    fn visible<Header: FileHeader<Endian = LittleEndian>>(&self) -> Option<Vec<String>> {
        let header = Header::parse(&self.data).ok()?;
        let sections = header.sections(LittleEndian, &self.data).ok()?;
        let symbols = sections.symbols(LittleEndian, &self.data, SHT_DYNSYM).ok()?;
        let name = |symbol: &Header::Sym| {
            let name = symbol.name(LittleEndian, symbols.strings()).ok()?;
            Some(String::from_utf8_lossy(name).into_owned())
        };
        let mut visible: Vec<String> = symbols
            .iter()
            .filter(|symbol| symbol.st_bind() != STB_LOCAL && !symbol.is_undefined(LittleEndian))
            .filter_map(name)
            .collect();
        visible.sort();
        visible.dedup();
        Some(visible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_whole_until_it_is_cut() {
        let exe = std::env::current_exe().unwrap();
        File::open(&exe).unwrap().unwrap().whole().unwrap();
        let mut cut = tempfile::NamedTempFile::new().unwrap();
        let bytes = fs::read(&exe).unwrap();
        for share in [10, 30, 60] {
            let part = &bytes[..bytes.len() * share / 1000 + 64];
            fs::write(cut.path(), part).unwrap();
            let error = File::open(cut.path()).unwrap().unwrap().whole().unwrap_err();
            assert!(error.contains("is truncated"), "{error}");
        }
        io::Write::write_all(cut.as_file_mut(), b"").unwrap();
    }

    #[test]
    fn a_library_of_another_machine_is_named_as_that() {
        let own = head(&std::env::current_exe().unwrap()).unwrap();
        let ours = Target::of(&own).unwrap().to_string();
        let file = tempfile::NamedTempFile::new().unwrap();
        let with = |class: u8, order: u8, machine: [u8; 2]| {
            let mut bytes = vec![0; 64];
            bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, order]);
            bytes[18..20].copy_from_slice(&machine);
            bytes
        };
        for (bytes, expected) in [
            (with(2, 1, [183, 0]), "aarch64, 64 bits"),
            (with(1, 1, [40, 0]), "arm, 32 bits"),
            (with(1, 1, [3, 0]), "x86, 32 bits"),
            (with(2, 1, [243, 0]), "riscv, 64 bits"),
            (with(2, 2, [0, 22]), "s390, 64 bits, big-endian"),
            (with(2, 1, [0x39, 0x30]), "ELF machine 12345, 64 bits"),
            (vec![0xcf, 0xfa, 0xed, 0xfe, 7, 0, 0, 1], "a file of macOS"),
            (b"MZ\x90\0".to_vec(), "a file of Windows"),
        ] {
            fs::write(file.path(), &bytes).unwrap();
            let found = usable(file.path());
            if expected == ours {
                continue;
            }
            let error = found.unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(expected.starts_with("a file") || error.contains(&ours), "{error}");
        }
        usable(&std::env::current_exe().unwrap()).unwrap();
    }

    #[test]
    fn garbage_is_left_to_the_linker_and_never_panics() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for bytes in [&b""[..], b"text", &[0xff; 4096]] {
            fs::write(file.path(), bytes).unwrap();
            assert!(File::open(file.path()).unwrap().is_none());
        }
        let mut bytes = vec![0xff; 4096];
        for class in [1, 2] {
            bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
            fs::write(file.path(), &bytes).unwrap();
            let found = File::open(file.path()).unwrap().unwrap();
            assert!(found.whole().is_err());
            assert_eq!(found.exports(), None);
        }
    }
}
