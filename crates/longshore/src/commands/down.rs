//! `longshore down`: ends what `longshore up` started on this machine, and says what remains.
//!
//! What it leaves is what a machine that was shut down leaves: objects and volumes stay, so that `longshore up` goes on
//! from there. Only `--purge` takes those away too.

use std::io::{BufRead as _, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use control::host::{Op, ProcessState};
use io_host::{Host, OrphanProcess, Orphans};
use rustix::process::{Pid, Signal, kill_process};

use crate::args::Down;
use crate::layout::{self, Layout};
use crate::out;

/// How long `longshore up` may take to end: it waits for calls that are under way.
const UP_LIMIT: Duration = Duration::from_secs(130);

/// The whole command.
pub fn command(args: &Down) -> Result<()> {
    if let Some(dir) = &args.orphans {
        return end_orphans(args, dir);
    }
    let layout = Layout::new(args.data_dir.clone())?;
    if let Some(name) = &args.node {
        return switch_off(&layout, name);
    }
    let root = layout.root().display().to_string();
    if !layout.api().join("format").exists() && !layout.processes().exists() {
        let orphans = Orphans::find().unwrap_or_default();
        let hint = if orphans.is_empty() { String::new() } else { format!("; {}", orphans_found(&orphans)) };
        bail!("{root} holds nothing of Longshore; name the directory that `longshore up` uses with --data-dir{hint}");
    }
    let losses = losses(&layout);
    if args.purge && !args.yes {
        confirm(&root, &losses)?;
    }
    stop(&layout.api().join("lock"), "`longshore up`")?;
    let mut ended = 0;
    for (name, further) in layout.all_further() {
        stop(&further.agent_lock(), &format!("the agent of node {name}"))?;
        let host = Host::new(further.processes()).context("cannot look at the processes of pods")?;
        ended += stop_pods(&host, args.grace_period)?;
    }
    let host = Host::new(layout.processes()).context("cannot look at the processes of pods")?;
    ended += stop_pods(&host, args.grace_period)?;
    let (mounts, loops) = take_down(&host, &layout)?;
    out::say(&format!(
        "ended: {}, {}, {}",
        count(ended, "process"),
        count(mounts, "mount"),
        count(loops, "loop device")
    ));
    if !args.purge {
        out::say(&format!(
            "kept:  {losses} in {root}; `longshore up` goes on from there, `longshore down --purge` removes it"
        ));
        return Ok(());
    }
    perform(&host, Op::RemoveTree { path: layout::text(layout.root()) })?;
    out::say(&format!("removed: {root} with {losses}"));
    Ok(())
}

/// One sentence, without its end, on what data directories that were removed left behind, and how to end it.
pub fn orphans_found(orphans: &Orphans) -> String {
    format!(
        "a data directory that was removed left {}; `longshore down --orphans` names and ends them",
        orphans_counted(orphans)
    )
}

fn orphans_counted(orphans: &Orphans) -> String {
    let Orphans { processes, mounts, loops } = orphans;
    let all = [(processes.len(), "process"), (mounts.len(), "mount"), (loops.len(), "loop device")];
    all.map(|(number, what)| count(number, what)).join(", ")
}

/// Ends what data directories that were removed left behind, after naming it.
fn end_orphans(args: &Down, dir: &Path) -> Result<()> {
    let dir = layout::text(&std::path::absolute(dir)?);
    let orphans = Orphans::find().context("cannot look for orphans")?.beneath(&dir);
    if orphans.is_empty() {
        out::say("no orphans: every process, mount and loop device of Longshore belongs to a data directory");
        return Ok(());
    }
    for OrphanProcess { pid, dir, .. } in &orphans.processes {
        out::say(&format!("process {pid}, supervisor of {dir}"));
    }
    orphans.mounts.iter().for_each(|target| out::say(&format!("mount at {target}")));
    orphans
        .loops
        .iter()
        .for_each(|(device, image)| out::say(&format!("loop device {device} on {image}, which is gone")));
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            bail!("nothing was done; say --yes to end these");
        }
        ask("This ends all of them.")?;
    }
    orphans.end(Duration::from_secs(args.grace_period.into()))?;
    out::say(&format!("ended: {}", orphans_counted(&orphans)));
    Ok(())
}

/// The volumes that removing the directory would lose.
pub fn losses(layout: &Layout) -> String {
    let (mut volumes, mut bytes) = (0, 0);
    for folder in ["images", "directories"] {
        let entries = std::fs::read_dir(layout.driver().join(folder)).into_iter().flatten().flatten();
        for entry in entries {
            volumes += 1;
            bytes += entry.metadata().map_or(0, |meta| meta.blocks() * 512);
        }
    }
    format!("all objects and {} ({} MiB on disk)", count(volumes, "volume"), bytes >> 20)
}

fn confirm(root: &str, losses: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("--purge removes {root} with {losses}; say --yes if that is meant");
    }
    ask(&format!("This removes {root} with {losses}, for ever."))
}

fn ask(what: &str) -> Result<()> {
    out::say(&format!("{what} Type yes to go on:"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    if answer.trim() != "yes" {
        bail!("nothing was done");
    }
    Ok(())
}

/// Ends a further node as a loss of power does: nobody is asked, and what it had is only what is on disk.
fn switch_off(layout: &Layout, name: &str) -> Result<()> {
    let all = layout.all_further();
    let Some((_, node)) = all.iter().find(|(known, _)| known == name) else {
        let known: Vec<&str> = all.iter().map(|(known, _)| known.as_str()).collect();
        bail!("there is no further node {name} in {}; there are: {}", layout.root().display(), known.join(", "));
    };
    stop(&node.agent_lock(), &format!("the agent of node {name}"))?;
    let host = Host::new(node.processes()).context("cannot look at the processes of pods")?;
    let ended = stop_pods(&host, 0)?;
    let (mounts, _) = take_down(&host, node)?;
    out::say(&format!("node {name} is off; ended: {}, {}", count(ended, "process"), count(mounts, "mount")));
    Ok(())
}

/// Asks the process that holds a lock to end, and waits for it.
fn stop(lock: &Path, what: &str) -> Result<()> {
    let begun = Instant::now();
    let mut told = None;
    while let Some(holder) = holder(lock)? {
        if told != Some(holder) {
            out::say(&format!("stopping {what} (process {holder})"));
            let pid = Pid::from_raw(holder).context("the kernel named no process")?;
            kill_process(pid, Signal::INT)
                .with_context(|| format!("cannot stop process {holder}; are you its user?"))?;
            told = Some(holder);
        }
        if begun.elapsed() > UP_LIMIT {
            bail!("process {holder} does not end; look at what it waits for, or end it with kill -9 {holder}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Who holds the lock of a file, as the kernel lists it.
pub fn holder(lock: &Path) -> Result<Option<i32>> {
    let Ok(file) = std::fs::metadata(lock) else { return Ok(None) };
    let locks = std::fs::read_to_string("/proc/locks").context("cannot read /proc/locks")?;
    Ok(locks.lines().find_map(|line| held(line, file.ino())))
}

/// The process in a line such as `1: FLOCK  ADVISORY  WRITE 4711 fd:01:42 0 EOF`, if it is about the file of this
/// number.
fn held(line: &str, inode: u64) -> Option<i32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "FLOCK")?;
    let (pid, file) = (words.get(place + 3)?, words.get(place + 4)?);
    (file.rsplit(':').next()?.parse() == Ok(inode)).then(|| pid.parse().ok())?
}

/// All at once, so that the longest grace period is waited for once.
fn stop_pods(host: &Host, grace_seconds: u32) -> Result<usize> {
    let processes = host.processes().context("cannot look at the processes of pods")?;
    let running = processes.into_iter().filter(|(_, state)| matches!(state, ProcessState::Running { .. }));
    let names: Vec<String> = running.map(|(name, _)| name).collect();
    let grace_millis = u64::from(grace_seconds) * 1000;
    std::thread::scope(|scope| {
        let stop = |name: String| scope.spawn(move || perform(host, Op::StopProcess { name, grace_millis }));
        let stopping: Vec<_> = names.iter().cloned().map(stop).collect();
        stopping.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| bail!("stopping a process failed")))
    })?;
    Ok(names.len())
}

/// Mounts of pods and volumes, inner ones first, then the loop devices beneath them.
fn take_down(host: &Host, layout: &Layout) -> Result<(usize, usize)> {
    let root = layout::text(layout.root());
    let mut targets: Vec<String> = io_host::mounts_beneath(&root)?.into_iter().map(|mount| mount.target).collect();
    targets.sort_by_key(|target| std::cmp::Reverse(target.len()));
    for target in &targets {
        perform(host, Op::Unmount { target: target.clone() })?;
    }
    let beneath = format!("{root}/");
    let devices = io_host::loops()?.into_iter().map(|device| device.backing_path);
    let images: Vec<String> = devices.filter(|path| path.starts_with(&beneath)).collect();
    for image in &images {
        let image = image.trim_end_matches(" (deleted)").to_owned();
        perform(host, Op::DetachLoop { image })?;
    }
    Ok((targets.len(), images.len()))
}

fn perform(host: &Host, op: Op) -> Result<()> {
    host.perform(&op)?;
    Ok(())
}

/// A number of things, as people say it.
pub fn count(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}"),
        1 => format!("1 {what}"),
        _ if what.ends_with('s') => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_read_from_the_kernels_list() {
        assert_eq!(held("12: FLOCK  ADVISORY  WRITE 4711 fd:01:42 0 EOF", 42), Some(4711));
        assert_eq!(held("12: FLOCK  ADVISORY  WRITE 4711 fd:01:421 0 EOF", 42), None);
        assert_eq!(held("12: -> FLOCK  ADVISORY  WRITE 7 fd:01:42 0 EOF", 42), Some(7));
        assert_eq!(held("3: POSIX  ADVISORY  WRITE 9 fd:01:42 0 EOF", 42), None);
        assert_eq!(held("", 42), None);
    }

    #[test]
    fn numbers_are_said_as_people_say_them() {
        assert_eq!((count(0, "mount"), count(1, "mount")), ("no mount".into(), "1 mount".into()));
        assert_eq!((count(2, "process"), count(3, "loop device")), ("2 processes".into(), "3 loop devices".into()));
    }
}
