//! What the kernel says of volumes: their mounts and loop devices.
//!
//! A call costs the same however many volumes there are. Mounts made since the last look are asked for by number; of those
//! known before, only the ones that the call has to do with are looked at again. So whatever others mounted, unmounted,
//! attached or detached behind the driver's back is seen. On a kernel that cannot tell single mounts, the whole table is
//! read every time.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use io_host::{Holder, MountEntry};
use rules_driver::{Config, DIRECTORY, Facts, Look, Mount};

/// Mounts by target, and loop devices by image.
pub(crate) type Seen = (BTreeMap<String, Mount>, BTreeMap<String, String>);

/// How far the kernel has been listened to.
pub(crate) struct Kernel {
    /// The newest mount that was looked at; nothing where single mounts cannot be asked for.
    newest: Mutex<Option<u64>>,
    /// The mounts that hold `/dev` and the driver's own directory.
    around: Vec<MountEntry>,
}

impl Kernel {
    /// Everything there is now.
    pub fn start(config: &Config) -> io::Result<(Kernel, Seen)> {
        let (all, newest) = match io_host::mounts_since(0) {
            Ok((all, newest)) => (all, Some(newest)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => (io_host::mounts()?, None),
            Err(error) => return Err(error),
        };
        let seen = seen(config, &all)?;
        let around = [Holder::of("/dev", &all), Holder::of(&config.state_dir, &all)];
        let around = around.into_iter().flatten().map(|holder| holder.mount().clone()).collect();
        Ok((Kernel { newest: Mutex::new(newest), around }, seen))
    }

    /// Takes in what matters for a call.
    pub fn look(&self, config: &Config, facts: &Mutex<Facts>, look: Look) -> io::Result<()> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = *newest else {
            let (mounts, loops) = seen(config, &io_host::mounts()?)?;
            held(facts).observe(mounts, loops);
            return Ok(());
        };
        let (fresh, number) = io_host::mounts_since(last)?;
        *newest = Some(number);
        for entry in fresh {
            let (target, mount) = self.shown(config, entry);
            if mount.source.starts_with("/dev/loop") || mount.fstype == DIRECTORY {
                held(facts).observe_mount(&target, Some(mount));
            }
        }
        drop(newest);
        let mut paths = look.paths;
        for id in &look.volumes {
            paths.extend(self.look_at_volume(config, facts, id)?);
        }
        for path in paths {
            let found = io_host::mount_at(&path)?.map(|entry| self.shown(config, entry).1);
            held(facts).observe_mount(&path, found);
        }
        Ok(())
    }

    /// The volume's loop device; and every place where it or its directory was last seen.
    fn look_at_volume(&self, config: &Config, facts: &Mutex<Facts>, id: &str) -> io::Result<Vec<String>> {
        let image = config.image_path(id);
        let hint = {
            let facts = held(facts);
            if !facts.volumes().contains_key(id) {
                return Ok(vec![]);
            }
            facts.device(&image).map(str::to_owned)
        };
        let device = io_host::loop_of(&image, hint.as_deref())?;
        let mut facts = held(facts);
        facts.observe_loop(&image, device.clone());
        let sources = [device, hint, Some(config.directory_path(id))];
        let places = sources.iter().flatten().flat_map(|source| facts.places(source)).map(|(at, _)| at.to_owned());
        Ok(places.chain([config.inner_path(id)]).collect())
    }

    fn shown(&self, config: &Config, entry: MountEntry) -> (String, Mount) {
        shown(&Holder::of("/dev", &self.around), &Holder::of(&config.state_dir, &self.around), entry)
    }
}

fn held(facts: &Mutex<Facts>) -> MutexGuard<'_, Facts> {
    facts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every mount and every loop device.
fn seen(config: &Config, all: &[MountEntry]) -> io::Result<Seen> {
    let (devices, state) = (Holder::of("/dev", all), Holder::of(&config.state_dir, all));
    let mounts = all.iter().map(|entry| shown(&devices, &state, entry.clone())).collect();
    let loops = io_host::loops()?.into_iter().map(|l| (l.backing_path, l.device)).collect();
    Ok((mounts, loops))
}

/// What a mount shows: a device itself, a directory of the driver's, or whatever its filesystem calls its source.
fn shown(devices: &Option<Holder<'_>>, state: &Option<Holder<'_>>, entry: MountEntry) -> (String, Mount) {
    let device = devices.as_ref().and_then(|devices| devices.shown_by(&entry));
    let directory = state.as_ref().and_then(|state| state.shown_by(&entry));
    let block = device.is_some();
    let (source, fstype) = match (device, directory) {
        (Some(device), _) => (device, String::new()),
        (None, Some(directory)) => (directory, DIRECTORY.to_string()),
        (None, None) => (entry.source, entry.fstype),
    };
    (entry.target, Mount { source, fstype, read_only: entry.read_only, block })
}
