//! The share of a volume's life that is the kernel's: making the filesystem, mounting, loop devices, syncing.
//!
//! The driver runs below strace, which stops it at these calls alone (seccomp) and notes how long each took. Making a
//! filesystem is a program of its own: from its exec to its end.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::contender::{Contender, Maker, Place, Programs, Running, text};
use super::load::{Load, Part};

/// Where the time of a part goes, in milliseconds for each time it is done.
#[derive(Default)]
pub struct Share {
    /// Programs that make filesystems.
    pub mkfs: f64,
    /// mount, umount and their newer kin.
    pub mount: f64,
    pub loops: f64,
    /// fsync, fdatasync, syncfs.
    pub sync: f64,
    /// All of it, as the client sees it.
    pub whole: f64,
}

const MOUNT: [&str; 7] = ["mount", "umount2", "move_mount", "fsopen", "fsconfig", "fsmount", "open_tree"];
const SYNC: [&str; 3] = ["fsync", "fdatasync", "syncfs"];

/// Measures it, for one client; nothing where strace cannot be run.
pub fn share(programs: &Programs, contender: Contender, part: Part, time: Duration) -> io::Result<Option<Share>> {
    if !Command::new("strace").arg("-V").output().is_ok_and(|done| done.status.success()) {
        return Ok(None);
    }
    let place = Place::new()?;
    let traces = place.path("traces");
    fs::create_dir_all(&traces)?;
    let calls = [&MOUNT[..], &SYNC, &["ioctl", "execve", "exit_group"]].concat().join(",");
    let wrapper = ["strace", "-D", "-ff", "--seccomp-bpf", "-ttt", "-T", "-s", "200", "-e", &format!("trace={calls}")];
    let mut wrapper: Vec<String> = wrapper.map(str::to_string).into();
    wrapper.extend(["-o".to_string(), text(&traces.join("t"))]);
    let running = Running::start(programs, Maker::Ours, &place, &wrapper)?;
    let load = Load::new(&place, contender, 1)?;
    let measured = load.repeat(part, time)?;
    let (began, ended) = measured.span;
    drop(running);
    let mut share = Share { whole: 1000.0 / measured.per_second, ..Share::default() };
    for entry in fs::read_dir(&traces)? {
        count(&entry?.path(), began, ended, &mut share)?;
    }
    for figure in [&mut share.mkfs, &mut share.mount, &mut share.loops, &mut share.sync] {
        *figure *= 1000.0 / measured.parts.max(1) as f64;
    }
    Ok(Some(share))
}

/// Adds up the trace of one thread, in seconds.
fn count(trace: &Path, from: f64, to: f64, share: &mut Share) -> io::Result<()> {
    let text = fs::read_to_string(trace)?;
    let inside = |line: &&str| time(line).is_some_and(|at| at >= from && at <= to);
    let lines: Vec<&str> = text.lines().filter(inside).collect();
    // A thread that became another program is that program.
    if let Some(began) =
        lines.iter().find(|line| line.contains("execve(") && line.contains("= 0")).and_then(|l| time(l))
    {
        let ended = lines.last().and_then(|line| time(line)).unwrap_or(began);
        if lines.iter().any(|line| line.contains("/mkfs.")) {
            share.mkfs += ended - began;
        }
        return Ok(());
    }
    for line in lines {
        let call = line.split_whitespace().nth(1).and_then(|rest| rest.split('(').next()).unwrap_or_default();
        let Some(took) = took(line) else { continue };
        if MOUNT.contains(&call) {
            share.mount += took;
        } else if SYNC.contains(&call) {
            share.sync += took;
        } else if call == "ioctl" && line.contains("LOOP_") {
            share.loops += took;
        }
    }
    Ok(())
}

/// The time at the beginning of a line.
fn time(line: &str) -> Option<f64> {
    line.split_whitespace().next()?.parse().ok()
}

/// The time in angle brackets at the end of a line.
fn took(line: &str) -> Option<f64> {
    line.rsplit_once('<')?.1.strip_suffix('>')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_added_up_by_what_was_called() {
        let folder = std::env::temp_dir().join(format!("longshore-trace-{}", std::process::id()));
        let add = |text: &str, share: &mut Share| {
            fs::write(&folder, text).and_then(|()| count(&folder, 100.0, 200.0, share)).is_ok()
        };
        let mut share = Share::default();
        assert!(add(
            "99.0 fsync(3) = 0 <5.0>\n100.5 fsync(3) = 0 <0.5>\n101.0 mount(\"a\", \"b\") = 0 <0.25>\n\
             102.0 ioctl(3, LOOP_CONFIGURE, {}) = 0 <0.125>\n103.0 ioctl(3, TCGETS) = 0 <1.0>\n",
            &mut share
        ));
        assert!(add(
            "104.0 execve(\"/sbin/mkfs.ext4\", [\"mkfs.ext4\"], 0x1 /* 9 vars */) = 0 <0.001>\n104.5 fsync(3) = 0 <0.4>\n\
             105.0 +++ exited with 0 +++\n",
            &mut share
        ));
        let _ = fs::remove_file(&folder);
        assert_eq!([share.sync, share.mount, share.loops, share.mkfs], [0.5, 0.25, 0.125, 1.0]);
    }
}
