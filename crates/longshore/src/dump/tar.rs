//! Reads tar archives, as far as dumps need it: names and contents of plain files.

const BLOCK: usize = 512;

/// Why an archive cannot be read.
pub enum TarProblem {
    /// It is damaged.
    Archive(&'static str),
    /// What it holds is wrong, in a sentence.
    Content(String),
}

/// Whether these bytes are an archive: they say so, or the name does.
pub fn is_archive(name: &str, bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar") || name.ends_with(".tar")
}

/// Who takes the files of an archive, by name and content; an error is a sentence.
pub type Taker<'a> = dyn FnMut(&str, &[u8]) -> Result<(), String> + 'a;

/// Hands over every plain file in an archive.
pub fn each(bytes: &[u8], hand: &mut Taker<'_>) -> Result<(), TarProblem> {
    let (mut at, mut long_name) = (0, None);
    if bytes.len() < BLOCK {
        return Err(TarProblem::Archive("it is too short"));
    }
    while let Some(header) = bytes.get(at..at + BLOCK) {
        // Two empty blocks end an archive; what follows is filling.
        if header.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        if number(&header[148..156]) != Some(sum(header)) {
            return Err(TarProblem::Archive("the checksum of an entry is wrong"));
        }
        let size = number(&header[124..136]).ok_or(TarProblem::Archive("the size of an entry is no number"))?;
        let start = at + BLOCK;
        let content = start.checked_add(size).and_then(|end| bytes.get(start..end));
        let content = content.ok_or(TarProblem::Archive("it ends in the middle of a file"))?;
        match header[156] {
            b'0' | 0 => {
                let name = long_name.take().unwrap_or_else(|| short_name(header));
                hand(&name, content).map_err(TarProblem::Content)?;
            }
            // GNU's way and POSIX' way to write a name that is too long for its field.
            b'L' => long_name = Some(text(content)),
            b'x' => long_name = path_of(content).or(long_name),
            b'g' => {}
            _other => long_name = None,
        }
        at = start + size.div_ceil(BLOCK) * BLOCK;
    }
    // Some programs leave the empty blocks out.
    if at >= bytes.len() { Ok(()) } else { Err(TarProblem::Archive("it ends in the middle of an entry")) }
}

/// A number in octal digits, or for large files in bytes.
fn number(field: &[u8]) -> Option<usize> {
    if field.first().is_some_and(|first| first & 0x80 != 0) {
        let mut bytes = field.iter().skip(1);
        return bytes.try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)));
    }
    let digits = text(field);
    usize::from_str_radix(digits.trim(), 8).ok()
}

/// The sum of the header's bytes, with blanks where it is written itself.
fn sum(header: &[u8]) -> usize {
    let blank = |at: usize| (148..156).contains(&at);
    header.iter().enumerate().map(|(at, byte)| if blank(at) { 32 } else { usize::from(*byte) }).sum()
}

fn short_name(header: &[u8]) -> String {
    let (name, folder) = (text(&header[..100]), text(&header[345..500]));
    if folder.is_empty() || header.get(257..263) != Some(b"ustar\0") { name } else { format!("{folder}/{name}") }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// The path in POSIX' records: `LENGTH path=NAME`, each on a line.
fn path_of(records: &[u8]) -> Option<String> {
    let records = String::from_utf8_lossy(records);
    records.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path=").map(String::from))
}
