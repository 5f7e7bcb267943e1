//! Copies of directories with everything in them.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use control::host::{Copying, Op};
use io_host::HostError;
use rustix::fs::{Mode, OFlags, XattrFlags};

use crate::bench::{Bench, outsider};
use crate::copies::copy;

/// All that is kept of one thing, but for its number, links and times of change.
fn look(path: &str) -> (u32, u32, u32, u64, i64, i64, u64) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    (meta.mode(), meta.uid(), meta.gid(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.rdev())
}

fn attribute(path: &str, name: &str) -> Vec<u8> {
    let mut value = [0; 100];
    let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
    value[..length].to_vec()
}

pub fn a_directory_is_copied_with_everything_in_it() {
    let bench = Bench::new();
    let from = bench.make_dir("from");
    let (a, sparse, link) = (format!("{from}/a"), format!("{from}/in/sparse"), format!("{from}/link"));
    bench.make_dir("from/in/empty");
    std::fs::write(&a, "of a").unwrap();
    std::os::unix::fs::chown(&a, Some(1234), Some(5678)).unwrap();
    std::fs::set_permissions(&a, std::fs::Permissions::from_mode(0o4751)).unwrap();
    rustix::fs::setxattr(&a, "trusted.longshore", b"kept", XattrFlags::empty()).unwrap();
    for name in ["in/second", "third"] {
        std::fs::hard_link(&a, format!("{from}/{name}")).unwrap();
    }
    let file = File::create(&sparse).unwrap();
    file.set_len(1 << 30).unwrap();
    file.write_all_at(b"in the middle", 512 << 20).unwrap();
    std::os::unix::fs::symlink("/nowhere/at all", &link).unwrap();
    rustix::fs::lsetxattr(&link, "trusted.of-a-link", b"too", XattrFlags::empty()).unwrap();
    outsider("mkfifo", &[&format!("{from}/fifo")]);
    outsider("mknod", &[&format!("{from}/zero"), "c", "1", "5"]);
    outsider("touch", &["-h", "-d", "2001-02-03 04:05:06.789", &link, &sparse, &format!("{from}/in/empty")]);
    // Deeper than a path can be long and than descriptors could be held open.
    let mut dir = OwnedFd::from(File::open(&from).unwrap());
    for _ in 0..3000 {
        rustix::fs::mkdirat(&dir, "deep", Mode::from_raw_mode(0o700)).unwrap();
        dir = rustix::fs::openat(&dir, "deep", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
    }
    rustix::fs::mkdirat(&dir, "bottom", Mode::from_raw_mode(0o710)).unwrap();
    drop(dir);
    outsider("touch", &["-d", "2002-02-03 04:05:06.789", &format!("{from}/in"), &from]);
    std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o2770)).unwrap();

    let to = bench.path("to");
    bench.twice(copy(&from, &to, None));
    for name in ["", "/a", "/in", "/in/empty", "/in/sparse", "/link", "/fifo", "/zero"] {
        assert_eq!(look(&format!("{to}{name}")), look(&format!("{from}{name}")), "{name}");
    }
    assert_eq!(std::fs::read_to_string(format!("{to}/a")).unwrap(), "of a");
    assert_eq!(attribute(&format!("{to}/a"), "trusted.longshore"), b"kept");
    assert_eq!(attribute(&format!("{to}/link"), "trusted.of-a-link"), b"too");
    assert_eq!(std::fs::read_link(format!("{to}/link")).unwrap(), Path::new("/nowhere/at all"));
    assert!(std::fs::symlink_metadata(format!("{to}/fifo")).unwrap().file_type().is_fifo());
    let same = ["a", "in/second", "third"].map(|name| std::fs::metadata(format!("{to}/{name}")).unwrap());
    assert!(same.iter().all(|one| one.ino() == same[0].ino() && one.nlink() == 3), "three names of one file");
    assert_ne!(same[0].ino(), std::fs::metadata(&a).unwrap().ino());
    let copied = File::open(format!("{to}/in/sparse")).unwrap();
    assert!(copied.metadata().unwrap().blocks() < 100, "holes stay holes");
    let mut found = [0; 13];
    copied.read_exact_at(&mut found, 512 << 20).unwrap();
    assert_eq!(&found, b"in the middle");
    let mut dir = OwnedFd::from(File::open(&to).unwrap());
    for _ in 0..3000 {
        dir = rustix::fs::openat(&dir, "deep", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
    }
    let bottom = rustix::fs::statat(&dir, "bottom", rustix::fs::AtFlags::empty()).unwrap();
    assert_eq!(bottom.st_mode & 0o7777, 0o710);
    drop(dir);
    assert!(!Path::new(&bench.path(".to.longshore-partial")).exists());
    bench.twice(Op::RemoveTree { path: to });
    bench.twice(Op::RemoveTree { path: from });
}

pub fn a_copy_of_a_directory_does_not_leave_it() {
    let bench = Bench::new();
    let (from, outside, to) = (bench.make_dir("from"), bench.make_dir("outside"), bench.path("to"));
    std::fs::write(bench.path("outside/file"), "somebody's").unwrap();
    std::os::unix::fs::symlink(&outside, bench.path("from/link")).unwrap();
    let mounted = bench.make_dir("from/in/mounted");
    bench.twice(Op::Bind { source: outside, target: mounted.clone(), read_only: false });
    let error = bench.refused(copy(&from, &to, None));
    assert!(matches!(error, HostError::Busy { .. }) && error.to_string().contains("mounted"), "{error}");
    assert!(!Path::new(&to).exists() && !Path::new(&bench.path(".to.longshore-partial")).exists());
    bench.twice(Op::Unmount { target: mounted });
    assert!(matches!(bench.refused(copy(&from, &bench.path("from/in/to"), None)), HostError::Path { .. }));
    bench.twice(copy(&from, &to, None));
    assert!(std::fs::symlink_metadata(bench.path("to/link")).unwrap().is_symlink());
}

// The reader of a copy must not see half of what a writer did. A directory cannot be held still, so one that is written to
// all the time is refused.
pub fn a_directory_that_does_not_stop_changing_is_not_copied() {
    let bench = Bench::new();
    let (from, to) = (bench.make_dir("from"), bench.path("to"));
    for number in 0..200 {
        std::fs::write(format!("{from}/file-{number}"), "0").unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // From the last to the first: a copy in the order of names would see a mixture.
            for round in 1_u64.. {
                for number in (0..200).rev() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    std::fs::write(format!("{from}/file-{number}"), round.to_string()).unwrap();
                }
            }
        });
        let answer = bench.host.perform(&copy(&from, &to, None));
        stop.store(true, Ordering::SeqCst);
        let error = answer.unwrap_err();
        assert!(matches!(error, HostError::Busy { .. }) && error.to_string().contains("changed"), "{error}");
    });
    assert!(!Path::new(&to).exists() && !Path::new(&bench.path(".to.longshore-partial")).exists());
    // Written to a moment ago, and no longer.
    std::fs::write(format!("{from}/last"), "x").unwrap();
    bench.twice(copy(&from, &to, None));
    assert_eq!(std::fs::read_to_string(format!("{to}/last")).unwrap(), "x");
}

pub fn an_image_and_a_directory_are_copied_together() {
    let bench = Bench::new();
    let (volume, from) = (bench.mounted("volume"), bench.make_dir("from"));
    std::fs::write(format!("{}/file", volume.target), "of the image").unwrap();
    std::fs::write(format!("{from}/file"), "of the directory").unwrap();
    let (image, tree) = (bench.path("copy.img"), bench.path("tree"));
    let copies = vec![
        Copying { from: volume.image.clone(), to: image.clone(), still: Some(volume.target.clone()) },
        Copying { from, to: tree.clone(), still: None },
    ];
    bench.twice(Op::CopyTogether { copies });
    assert_eq!(std::fs::read_to_string(format!("{tree}/file")).unwrap(), "of the directory");
    outsider("e2fsck", &["-f", "-n", &image]);
    std::fs::write(format!("{}/after", volume.target), "it goes on").unwrap();
    bench.remove(&volume);
}

pub fn half_a_copy_of_a_directory_is_never_seen() {
    let bench = Bench::new();
    let (from, to) = (bench.make_dir("all/from"), bench.path("all/to"));
    std::fs::write(format!("{from}/file"), "whole").unwrap();
    let half = || std::fs::write(format!("{}/file", bench.make_dir("all/.to.longshore-partial/tree")), "half").unwrap();
    let names = || io_host::list_dir(Path::new(&bench.path("all"))).unwrap();
    half();
    assert_eq!(names(), ["from"]);
    bench.twice(copy(&from, &to, None));
    assert_eq!(std::fs::read_to_string(format!("{to}/file")).unwrap(), "whole");
    half();
    bench.twice(Op::RemoveTree { path: to });
    assert!(!Path::new(&bench.path("all/.to.longshore-partial")).exists());
    half();
    io_host::remove_partials(Path::new(&bench.path("all"))).unwrap();
    assert!(!Path::new(&bench.path("all/.to.longshore-partial")).exists());
    assert_eq!(names(), ["from"]);
}
