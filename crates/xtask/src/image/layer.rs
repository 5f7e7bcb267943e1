//! One layer of an image: files by path, written as the same bytes whoever writes them, and when.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::layout::digest;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        data: Vec<u8>,
    },
    /// A symbolic link to this path.
    Link(String),
}

/// A folder that all may look into and root writes to, as most are.
pub const FOLDER: Entry = Entry::Folder { mode: 0o755 };

/// Paths without a slash at the beginning, and what is there. Everything belongs to root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer(BTreeMap<String, Entry>);

/// A layer as it is in an image.
#[derive(Clone)]
pub struct Packed {
    /// What is pulled.
    pub bytes: Vec<u8>,
    /// Of what is compressed.
    pub diff_id: String,
    /// How many bytes that is.
    pub unpacked: u64,
}

impl Layer {
    /// Puts something at a path, and the folders above it.
    pub fn put(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].to_string()).or_insert(FOLDER);
        }
        self.0.insert(path.to_string(), entry);
    }

    /// Everything that is in it, by path.
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.0
    }

    /// As a compressed archive. Every time in it is `date`, and what came from where is forgotten.
    pub fn pack(&self, date: u64) -> io::Result<Packed> {
        let mut archive = Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let mut header = Header::new_gnu();
            header.set_mtime(date);
            header.set_uid(0);
            header.set_gid(0);
            match entry {
                Entry::Folder { mode } => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_size(0);
                    archive.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Entry::File { mode, data } => {
                    header.set_entry_type(EntryType::Regular);
                    header.set_mode(*mode);
                    header.set_size(data.len() as u64);
                    archive.append_data(&mut header, path, data.as_slice())?;
                }
                Entry::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    header.set_size(0);
                    archive.append_link(&mut header, path, target)?;
                }
            }
        }
        let plain = archive.into_inner()?;
        // Neither a time nor the system it was made on is in the head.
        let mut packer = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(9));
        packer.write_all(&plain)?;
        Ok(Packed { bytes: packer.finish()?, diff_id: digest(&plain), unpacked: plain.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn some() -> Layer {
        let mut layer = Layer::default();
        layer.put("usr/bin/program", Entry::File { mode: 0o755, data: b"x".to_vec() });
        layer.put("bin", Entry::Link("usr/bin".into()));
        layer.put("tmp", Entry::Folder { mode: 0o1777 });
        layer
    }

    #[test]
    fn the_same_files_are_the_same_bytes_in_whatever_order_they_came() {
        let mut other = Layer::default();
        other.put("tmp", Entry::Folder { mode: 0o1777 });
        other.put("bin", Entry::Link("usr/bin".into()));
        other.put("/usr/bin/program", Entry::File { mode: 0o755, data: b"x".to_vec() });
        let (one, two) = (some().pack(7).unwrap(), other.pack(7).unwrap());
        assert_eq!((&one.bytes, &one.diff_id), (&two.bytes, &two.diff_id));
        assert_ne!(one.diff_id, some().pack(8).unwrap().diff_id, "the date is in it");
    }

    #[test]
    fn what_is_packed_is_an_archive_of_roots_files() {
        let packed = some().pack(7).unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(packed.bytes.as_slice()).read_to_end(&mut plain).unwrap();
        assert_eq!((digest(&plain), plain.len() as u64), (packed.diff_id, packed.unpacked));
        let mut archive = tar::Archive::new(plain.as_slice());
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (7, 0, 0));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap(), header.entry_type())
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("bin".into(), 0o777, EntryType::Symlink),
                ("tmp/".into(), 0o1777, EntryType::Directory),
                ("usr/".into(), 0o755, EntryType::Directory),
                ("usr/bin/".into(), 0o755, EntryType::Directory),
                ("usr/bin/program".into(), 0o755, EntryType::Regular),
            ]
        );
    }
}
