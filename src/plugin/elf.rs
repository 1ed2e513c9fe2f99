//! A look at a library file without loading it.
//!
//! Owns two questions that the dynamic linker answers with a crash or not at all: is the file whole, and which symbols
//! does it export? Reads little-endian ELF of 32 and 64 bits; about anything else it says nothing, and the linker does.
//! Read [`File::open`] first.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_LOAD: u64 = 1;
const SHT_DYNSYM: u64 = 11;
/// More headers than any library has: the header is garbage.
const MAX_HEADERS: u64 = 4096;
/// Larger symbol tables are not listed.
const MAX_TABLE_BYTES: u64 = 64 * 1024 * 1024;

/// A library file.
pub(super) struct File {
    file: fs::File,
    size: u64,
    layout: &'static Layout,
}

/// Where the fields are, as (offset, bytes); the two classes order them differently.
struct Layout {
    program_headers: Field,
    section_headers: Field,
    program_header_size: Field,
    program_header_count: Field,
    section_header_size: Field,
    section_header_count: Field,
    segment_offset: Field,
    segment_size: Field,
    section_offset: Field,
    section_size: Field,
    section_link: Field,
    symbol_size: u64,
    symbol_info: Field,
    symbol_section: Field,
}

type Field = (u64, usize);

static ELF32: Layout = Layout {
    program_headers: (28, 4),
    section_headers: (32, 4),
    program_header_size: (42, 2),
    program_header_count: (44, 2),
    section_header_size: (46, 2),
    section_header_count: (48, 2),
    segment_offset: (4, 4),
    segment_size: (16, 4),
    section_offset: (16, 4),
    section_size: (20, 4),
    section_link: (24, 4),
    symbol_size: 16,
    symbol_info: (12, 1),
    symbol_section: (14, 2),
};

static ELF64: Layout = Layout {
    program_headers: (32, 8),
    section_headers: (40, 8),
    program_header_size: (54, 2),
    program_header_count: (56, 2),
    section_header_size: (58, 2),
    section_header_count: (60, 2),
    segment_offset: (8, 8),
    segment_size: (32, 8),
    section_offset: (24, 8),
    section_size: (32, 8),
    section_link: (40, 4),
    symbol_size: 24,
    symbol_info: (4, 1),
    symbol_section: (6, 2),
};

impl File {
    /// Opens a file; `None` when it is none that this module understands.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = fs::File::open(path)?;
        let size = file.metadata()?.len();
        let mut ident = [0; 6];
        if file.read_exact_at(&mut ident, 0).is_err() {
            return Ok(None);
        }
        let layout = match ident {
            [0x7f, b'E', b'L', b'F', 1, 1] => &ELF32,
            [0x7f, b'E', b'L', b'F', 2, 1] => &ELF64,
            _ => return Ok(None),
        };
        Ok(Some(Self { file, size, layout }))
    }

    /// Whether everything that the linker will map is there. A file that is cut off kills the process that loads it.
    ///
    /// # Errors
    /// How much is missing.
    pub(super) fn whole(&self) -> Result<(), String> {
        let needed = self.needed().unwrap_or(self.size.saturating_add(1));
        if needed <= self.size {
            return Ok(());
        }
        Err(format!(
            "is cut off: it has {} bytes and needs at least {needed}. Copy it to another name and rename it into place",
            self.size
        ))
    }

    fn needed(&self) -> Option<u64> {
        let at = self.read(0, self.layout.program_headers)?;
        let size = self.read(0, self.layout.program_header_size)?;
        let count = self.read(0, self.layout.program_header_count)?.min(MAX_HEADERS);
        let mut needed = at.checked_add(size.checked_mul(count)?)?;
        for index in 0..count {
            let header = at.checked_add(size * index)?;
            // A header beyond the end: what there is to know is that more is needed.
            let Some(kind) = self.read(header, (0, 4)) else {
                break;
            };
            if kind == PT_LOAD {
                let (offset, size) = (self.layout.segment_offset, self.layout.segment_size);
                let end = self.read(header, offset)?.checked_add(self.read(header, size)?)?;
                needed = needed.max(end);
            }
        }
        Some(needed)
    }

    /// The names of the symbols that other libraries can see; `None` when they cannot be read.
    pub(super) fn exports(&self) -> Option<Vec<String>> {
        let at = self.read(0, self.layout.section_headers)?;
        let size = self.read(0, self.layout.section_header_size)?;
        let count = self.read(0, self.layout.section_header_count)?.min(MAX_HEADERS);
        let header = |index: u64| at.checked_add(size.checked_mul(index)?);
        let place = |index| (0..count).find(|i| header(*i).and_then(|h| self.read(h, (4, 4))) == Some(index));
        let dynsym = header(place(SHT_DYNSYM)?)?;
        let names = header(self.read(dynsym, self.layout.section_link)?)?;
        let (symbols, names) = (self.section(dynsym)?, self.section(names)?);
        let each = usize::try_from(self.layout.symbol_size).ok()?;
        let visible = symbols
            .chunks_exact(each)
            .filter_map(|symbol| self.visible(symbol, &names));
        let mut visible: Vec<String> = visible.collect();
        visible.sort();
        visible.dedup();
        Some(visible)
    }

    /// The name of a symbol, if it is defined here and can be seen elsewhere.
    fn visible(&self, symbol: &[u8], names: &[u8]) -> Option<String> {
        const UNDEFINED: u64 = 0;
        const LOCAL: u64 = 0;
        let binding = number(symbol, self.layout.symbol_info)? >> 4;
        let section = number(symbol, self.layout.symbol_section)?;
        if binding == LOCAL || section == UNDEFINED {
            return None;
        }
        let from = usize::try_from(number(symbol, (0, 4))?).ok()?;
        let name = names.get(from..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    fn section(&self, header: u64) -> Option<Vec<u8>> {
        let at = self.read(header, self.layout.section_offset)?;
        let size = self.read(header, self.layout.section_size)?;
        if size > MAX_TABLE_BYTES || at.checked_add(size)? > self.size {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    fn read(&self, base: u64, (offset, size): Field) -> Option<u64> {
        let mut bytes = [0; 8];
        let bytes = bytes.get_mut(..size)?;
        self.file.read_exact_at(bytes, base.checked_add(offset)?).ok()?;
        number(bytes, (0, size))
    }
}

fn number(bytes: &[u8], (offset, size): Field) -> Option<u64> {
    let from = usize::try_from(offset).ok()?;
    let bytes = bytes.get(from..from.checked_add(size)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
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
