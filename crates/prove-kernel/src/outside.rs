//! What others do on the machine: programs that use volumes, people at a shell. Only what they could really do.

use alloc::string::{String, ToString};

use control::host::{Failure, FailureKind, Process, ProcessState};

use crate::tree::{File, Node};
use crate::{Kernel, refused};

impl Kernel {
    /// Every process started and not forgotten, with what it was started as.
    pub fn started(&self) -> impl Iterator<Item = (&Process, &ProcessState)> {
        self.processes.values().map(|known| (&known.process, &known.state))
    }

    /// How many bytes an image has, and how many the filesystem in it, if there is one.
    pub fn sizes_of(&self, image: &str) -> Option<(u64, Option<u64>)> {
        let at = self.walk(image).ok().flatten()?;
        let file = self.file(at.ino, image).ok()?;
        Some((file.size, file.filesystem.as_ref().map(|found| found.size)))
    }

    /// A program writes a file, and does not sync it: the loss of power takes it away, unless its filesystem was
    /// unmounted, held still or written out before.
    pub fn user_writes(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        let place = self.place_existing(path)?;
        self.writable(place.dir, path)?;
        let ino = match self.look(&place) {
            Some(at) => {
                self.file(at.ino, path)?;
                at.ino
            }
            None => {
                let ino = self.add(Node::File(File::default()));
                self.link(place.dir.ino, place.name, Some(ino));
                ino
            }
        };
        self.nodes.insert(ino, Node::File(File::of(bytes)));
        self.take_room(place.dir.mount, bytes.len() as u64);
        Ok(())
    }

    /// What is written in a mounted filesystem takes room in its image, and goes on taking it when it is deleted.
    fn take_room(&mut self, mount: u32, bytes: u64) {
        let crate::mounts::Fs::Loop(number) = self.fs_of(mount) else { return };
        let Some(image) = self.loops.get(&number).map(|entry| entry.ino) else { return };
        for nodes in [&mut self.nodes, &mut self.disk] {
            if let Some(Node::File(file)) = nodes.get_mut(&image) {
                file.used = file.used.saturating_add(bytes).min(file.size);
            }
        }
    }

    /// Somebody makes a symbolic link.
    pub fn user_links(&mut self, path: &str, to: &str) -> Result<(), Failure> {
        let place = self.place_existing(path)?;
        if self.look(&place).is_some() {
            return Err(refused(FailureKind::WrongKind, path.to_string()));
        }
        self.enter(&place, Node::Link(to.to_string())).map(drop)
    }

    /// Somebody gives a file a second name.
    pub fn user_names_again(&mut self, path: &str, second: &str) -> Result<(), Failure> {
        let (at, place) = (self.walk_existing(path)?, self.place_existing(second)?);
        self.file(at.ino, path)?;
        self.writable(place.dir, second)?;
        // Not even within one filesystem, if it is seen through two mounts.
        if self.look(&place).is_some() || at.mount != place.dir.mount {
            return Err(refused(FailureKind::WrongKind, second.to_string()));
        }
        let (dir, name) = (place.dir.ino, place.name);
        self.link(dir, name, Some(at.ino));
        self.sync(&[dir]);
        Ok(())
    }

    /// Somebody removes a file's name, whatever uses the file.
    pub fn user_removes(&mut self, path: &str) -> Result<(), Failure> {
        let at = self.walk_existing(path)?;
        self.file(at.ino, path)?;
        let place = self.place_existing(path)?;
        self.leave(&place)
    }

    /// Somebody attaches a file that has a loop device already to a second one.
    pub fn user_attaches(&mut self, image: &str) -> Result<String, Failure> {
        let at = self.open_to_write(image)?;
        Ok(alloc::format!("/dev/loop{}", self.attach_another(image, at, true)))
    }

    /// A program keeps something open, and with it the mount it is in.
    pub fn user_holds(&mut self, holding: &str, path: &str) -> Result<(), Failure> {
        let at = self.walk_existing(path)?;
        self.held.insert(holding.to_string(), at.mount);
        Ok(())
    }

    /// And lets go of it.
    pub fn user_lets_go(&mut self, holding: &str) {
        self.held.remove(holding);
    }
}
