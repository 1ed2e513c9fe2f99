//! Reads a library file without loading it.
//!
//! Answers two questions: is the file complete (the dynamic linker would crash), and which symbols does it export?
//! Reads little-endian ELF of 32 and 64 bits; any other format is left to the linker. Read [`File::open`] first.

use std::fs;
use std::io;
use std::path::Path;

use object::elf::{FileHeader32, FileHeader64, PT_LOAD, SHT_DYNSYM, STB_LOCAL};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{LittleEndian, ReadCache, ReadRef};

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
            "is cut off: it has {} bytes and needs at least {needed}. Copy it to another name and rename it into place",
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
            assert!(error.contains("cut off"), "{error}");
        }
        io::Write::write_all(cut.as_file_mut(), b"").unwrap();
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
