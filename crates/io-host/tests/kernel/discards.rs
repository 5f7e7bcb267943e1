//! Room given back to the pool.

use std::os::unix::fs::MetadataExt as _;

use control::host::{Op, Reply};
use io_host::HostError;

use crate::bench::{Bench, Volume, outsider};
use crate::copies::{MIB, volume};
use crate::hung::until;

fn taken(volume: &Volume) -> u64 {
    std::fs::metadata(&volume.image).unwrap().blocks() * 512
}

pub fn deleted_files_give_their_room_back() {
    let bench = Bench::new();
    for fstype in ["ext4", "xfs", "btrfs"] {
        let volume = volume(&bench, fstype, fstype, 512 * MIB);
        let big = format!("{}/big", volume.target);
        std::fs::write(format!("{}/kept", volume.target), "kept").unwrap();
        let noise: Vec<u8> = (0..64 * MIB).map(|n| (n % 251) as u8).collect();
        std::fs::write(&big, noise).unwrap();
        outsider("sync", &["-f", &volume.target]);
        let full = taken(&volume);
        assert!(full >= 64 * MIB, "{fstype}: {full}");
        std::fs::remove_file(&big).unwrap();
        // XFS frees the room of a deleted file in the background; what it has not come to yet is given back next time.
        let given_back = || {
            bench.twice(Op::Discard { path: volume.target.clone() });
            taken(&volume) + 60 * MIB <= full
        };
        until(&format!("{fstype} gives back the room of a file of 64 MiB"), given_back);
        assert_eq!(std::fs::read_to_string(format!("{}/kept", volume.target)).unwrap(), "kept");
        bench.remove(&volume);
    }
}

pub fn what_a_raw_device_discards_is_given_back() {
    let bench = Bench::new();
    let (image, device) = bench.attached("raw.img");
    let used = || match bench.twice(Op::Measure { path: image.clone() }) {
        Reply::Usage(usage) => usage.bytes_used,
        other => panic!("{other:?}"),
    };
    outsider("dd", &["if=/dev/urandom", &format!("of={device}"), "bs=1M", "count=32", "oflag=direct"]);
    assert!(used() >= 32 * MIB);
    outsider("blkdiscard", &["-f", "-o", "0", "-l", "16777216", &device]);
    assert!(used() <= 17 * MIB, "{}", used());
    bench.twice(Op::DetachLoop { image });
}

pub fn only_the_root_of_a_mount_is_worked_on() {
    let bench = Bench::new();
    let plain = bench.make_dir("plain");
    assert!(matches!(bench.refused(Op::Discard { path: plain.clone() }), HostError::WrongKind { .. }));
    assert!(matches!(bench.refused(Op::Discard { path: bench.path("none") }), HostError::Missing { .. }));
    // A filesystem in memory, in which there is nothing to give back.
    outsider("mount", &["-t", "tmpfs", "tmpfs", &plain]);
    let error = bench.refused(Op::Discard { path: plain.clone() });
    assert!(matches!(error, HostError::CannotDiscard { .. }), "{error}");
    bench.twice(Op::Unmount { target: plain });
}
