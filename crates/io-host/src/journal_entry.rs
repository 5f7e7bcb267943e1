//! One entry of the log: what a file holds from now on, or that it is gone; and a sum that says whether it is whole.

/// What a disk writes whole or not at all. Entries begin at a multiple of it, so writing one never touches another.
pub(crate) const SECTOR: usize = 512;
const MARK: &[u8; 4] = b"LSJ1";
/// Mark, whole length, number, sum, length of the path, whether there is content.
const HEAD: usize = 4 + 4 + 8 + 8 + 2 + 1;

/// An entry of the journal on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// One more than that of the entry before it.
    pub number: u64,
    /// Relative to the log's directory.
    pub path: String,
    /// What the file holds; `None` if it is gone.
    pub content: Option<Vec<u8>>,
}

impl Entry {
    /// Its bytes, in whole sectors. `None` if its path is longer than any path.
    pub(crate) fn encode(number: u64, path: &str, content: Option<&[u8]>) -> Option<Vec<u8>> {
        let length = HEAD + path.len() + content.map_or(0, <[u8]>::len);
        let mut bytes = Vec::with_capacity(length.next_multiple_of(SECTOR));
        bytes.extend(MARK);
        bytes.extend(u32::try_from(length).ok()?.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(u16::try_from(path.len()).ok()?.to_le_bytes());
        bytes.push(u8::from(content.is_some()));
        bytes.extend(path.as_bytes());
        bytes.extend(content.unwrap_or_default());
        let sum = sum(&bytes).to_le_bytes();
        bytes[16..24].copy_from_slice(&sum);
        bytes.resize(length.next_multiple_of(SECTOR), 0);
        Some(bytes)
    }

    /// The entry that begins here, and how long it is in whole sectors.
    fn decode(bytes: &[u8]) -> Option<(Entry, usize)> {
        let length = length(bytes)?;
        let mut whole = bytes.get(..length)?.to_vec();
        let number = u64::from_le_bytes(whole.get(8..16)?.try_into().ok()?);
        let told = u64::from_le_bytes(whole.get(16..24)?.try_into().ok()?);
        whole[16..24].fill(0);
        if sum(&whole) != told {
            return None;
        }
        let path_length = usize::from(u16::from_le_bytes(whole.get(24..26)?.try_into().ok()?));
        let (path, content) = whole.get(HEAD..)?.split_at_checked(path_length)?;
        let path = String::from_utf8(path.to_vec()).ok()?;
        let content = (whole[26] == 1).then(|| content.to_vec());
        Some((Entry { number, path, content }, length.next_multiple_of(SECTOR)))
    }
}

fn length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
    (bytes.starts_with(MARK) && length >= HEAD).then_some(length)
}

/// The entries of a segment: from its beginning, as long as they are whole and each follows the one before.
pub(crate) fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    while let Some((entry, length)) = Entry::decode(bytes) {
        // What lies behind the last entry is from an earlier round.
        if found.last().is_some_and(|last| entry.number != last.number + 1) {
            break;
        }
        found.push(entry);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    found
}

/// How long the entries are that lie one behind the other, in whole sectors.
pub(crate) fn lengths(mut bytes: &[u8]) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let length = length(bytes)?.next_multiple_of(SECTOR);
        bytes = bytes.get(length..).unwrap_or_default();
        Some(length)
    })
}

/// FNV-1a, 64 bits, over words that depend on their place. It tells a torn write, which is all that is asked of it.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(numbers: std::ops::Range<u64>) -> Vec<u8> {
        numbers.flat_map(|number| Entry::encode(number, "volumes/v.json", Some(b"{}")).unwrap()).collect()
    }

    #[test]
    fn entries_are_read_until_one_is_torn_or_of_an_earlier_round() {
        let numbers = |bytes: &[u8]| entries(bytes).iter().map(|entry| entry.number).collect::<Vec<_>>();
        let mut bytes = log(7..10);
        assert_eq!(numbers(&bytes), [7, 8, 9]);
        bytes.extend(log(3..5));
        assert_eq!(numbers(&bytes), [7, 8, 9]);
        for at in [0, 5, 9, 30, 40] {
            let mut torn = bytes.clone();
            torn[SECTOR + at] ^= 1;
            assert_eq!(numbers(&torn), [7], "byte {at}");
        }
        assert!(numbers(&bytes[..SECTOR / 20]).is_empty() && numbers(&[0; 4096]).is_empty());
    }

    #[test]
    fn content_of_any_length_and_none_come_back() {
        for content in [None, Some(vec![]), Some(vec![7; 5000])] {
            let bytes = Entry::encode(1, "a/b", content.as_deref()).unwrap();
            assert_eq!(bytes.len() % SECTOR, 0);
            assert_eq!(entries(&bytes), [Entry { number: 1, path: "a/b".into(), content }]);
        }
    }
}
