//! Directories, files, images.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use control::host::{Copying, FailureKind, Op};
use io_host::{HostError, list_dir, read_file};

use crate::bench::{Bench, outsider, owned};

pub fn directories_are_made_once_and_removed_once() {
    let bench = Bench::new();
    let deep = bench.make_dir("a/b/c");
    // reliability 122
    assert_eq!(std::fs::metadata(&deep).unwrap().permissions().mode() & 0o7777, 0o750);
    bench.twice(Op::RemoveDir { path: deep });
    bench.twice(Op::RemoveDir { path: bench.path("never/was/there") });
    assert!(bench.dir().join("a/b").exists());
}

// KL-97.
pub fn a_directory_with_content_or_a_mount_is_not_removed() {
    // reliability 111
    let bench = Bench::new();
    let (full, target) = (bench.make_dir("full"), bench.make_dir("target"));
    std::fs::write(bench.path("full/file"), "kept").unwrap();
    assert!(matches!(bench.refused(Op::RemoveDir { path: full.clone() }), HostError::NotEmpty { .. }));
    assert!(matches!(bench.refused(Op::RemoveDir { path: bench.path("full/file") }), HostError::WrongKind { .. }));

    let empty = bench.make_dir("empty");
    bench.twice(Op::Bind { source: empty, target: target.clone(), read_only: false });
    assert!(matches!(bench.refused(Op::RemoveDir { path: target.clone() }), HostError::MountPoint { .. }));
    bench.twice(Op::Unmount { target: target.clone() });
    bench.twice(Op::RemoveDir { path: target });
    assert_eq!(std::fs::read_to_string(bench.path("full/file")).unwrap(), "kept");
}

pub fn a_symbolic_link_in_a_path_is_refused() {
    // reliability 123
    let bench = Bench::new();
    let (real, target) = (bench.make_dir("real"), bench.make_dir("target"));
    symlink(&real, bench.path("link")).unwrap();
    let (link, under) = (bench.path("link"), bench.path("link/under"));
    let ops = [
        Op::MakeDir { path: under.clone() },
        Op::MakeDir { path: link.clone() },
        Op::RemoveDir { path: under.clone() },
        Op::WriteFile { path: under.clone(), bytes: vec![1] },
        Op::RemoveFile { path: under.clone() },
        Op::CreateImage { path: under.clone(), size: 4096 },
        Op::AttachLoop { image: under.clone() },
        Op::DetachLoop { image: under.clone() },
        Op::Bind { source: link.clone(), target: target.clone(), read_only: false },
        Op::Bind { source: real.clone(), target: link.clone(), read_only: false },
        Op::Unmount { target: under.clone() },
        Op::CopyTogether { copies: vec![Copying { from: under.clone(), to: bench.path("copy"), still: None }] },
        Op::CopyTogether { copies: vec![Copying { from: bench.path("from"), to: under.clone(), still: None }] },
        Op::GrowImage { path: under.clone(), size: 4096 },
        Op::RemoveTree { path: under.clone() },
        Op::MakeFile { path: under.clone() },
        Op::RemoveTarget { path: under.clone() },
        Op::RefreshLoop { image: under.clone() },
        Op::Discard { path: under.clone() },
        Op::BindDevice { device: under.clone(), target: target.clone(), read_only: false },
        Op::Measure { path: under.clone() },
    ];
    for op in ops {
        let error = bench.refused(op.clone());
        assert!(matches!(error, HostError::Symlink { .. }), "{op:?}: {error}");
    }
    // A link as the last component is not what is asked for either; it stays, and so does what it points to.
    for op in [
        Op::RemoveDir { path: link.clone() },
        Op::RemoveFile { path: link.clone() },
        Op::RemoveTree { path: link.clone() },
        Op::RemoveTarget { path: link.clone() },
        Op::MakeFile { path: link.clone() },
    ] {
        assert!(matches!(bench.refused(op), HostError::WrongKind { .. }));
    }
    let write = Op::WriteFile { path: link.clone(), bytes: vec![1] };
    assert!(matches!(bench.refused(write), HostError::WrongKind { .. }));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(list_dir(&owned(&real)).unwrap(), Vec::<String>::new());
}

pub fn a_file_is_written_whole_for_its_owner_only() {
    let bench = Bench::new();
    let path = bench.path("record.json");
    bench.twice(Op::WriteFile { path: path.clone(), bytes: b"a long first content".to_vec() });
    bench.twice(Op::WriteFile { path: path.clone(), bytes: b"short".to_vec() });
    assert_eq!(read_file(&owned(&path)).unwrap().unwrap(), b"short");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(list_dir(bench.dir()).unwrap(), ["processes", "record.json"]);
    bench.twice(Op::RemoveFile { path: path.clone() });
    assert_eq!(read_file(&owned(&path)).unwrap(), None);
    // The directories above it are made.
    let deep = bench.path("made/on/the/way");
    bench.twice(Op::WriteFile { path: deep.clone(), bytes: b"deep".to_vec() });
    assert_eq!(read_file(&owned(&deep)).unwrap().unwrap(), b"deep");
}

pub fn what_a_crashed_write_left_is_invisible_and_goes_with_the_file() {
    let bench = Bench::new();
    let dir = bench.make_dir("dir");
    let (path, partial) = (bench.path("dir/record"), bench.path("dir/.record.longshore-partial"));
    std::fs::write(&partial, "half").unwrap();
    assert_eq!(list_dir(&owned(&dir)).unwrap(), Vec::<String>::new());
    bench.twice(Op::WriteFile { path: path.clone(), bytes: b"whole".to_vec() });
    assert_eq!(read_file(&owned(&path)).unwrap().unwrap(), b"whole");
    std::fs::write(&partial, "half").unwrap();
    bench.twice(Op::RemoveFile { path });
    // Or the directory could never be removed.
    bench.twice(Op::RemoveDir { path: dir });
}

pub fn an_image_is_sparse_and_of_its_size() {
    let bench = Bench::new();
    let path = bench.path("volume.img");
    bench.twice(Op::CreateImage { path: path.clone(), size: 10 << 30 });
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.len(), meta.blocks()), (10 << 30, 0));
    assert_eq!(meta.permissions().mode() & 0o7777, 0o600);
    let error = bench.refused(Op::CreateImage { path: path.clone(), size: 11 << 30 });
    assert!(matches!(error, HostError::WrongSize { .. }), "{error}");
    bench.twice(Op::RemoveFile { path });
}

pub fn reading_and_listing_follow_no_link() {
    let bench = Bench::new();
    let dir = bench.make_dir("dir");
    std::fs::write(bench.path("dir/file"), "text").unwrap();
    symlink(&dir, bench.path("link")).unwrap();
    outsider("mkfifo", &[&bench.path("dir/fifo")]);
    assert_eq!(list_dir(&owned(&dir)).unwrap(), ["fifo", "file"]);
    assert!(read_file(&owned(&bench.path("link/file"))).is_err());
    assert!(list_dir(&owned(&bench.path("link"))).is_err());
    // Nobody writes to the FIFO; reading it must not wait.
    assert!(read_file(&owned(&bench.path("dir/fifo"))).is_err());
    assert_eq!(list_dir(&owned(&bench.path("none"))).unwrap(), Vec::<String>::new());
}

pub fn what_cut_off_writes_left_goes_and_nothing_else() {
    let bench = Bench::new();
    let dir = bench.make_dir("dir");
    for name in [".record.longshore-partial", "record", ".hidden", "name.longshore-partial"] {
        std::fs::write(bench.path(&format!("dir/{name}")), "x").unwrap();
    }
    io_host::remove_partials(&owned(&dir)).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".hidden", "name.longshore-partial", "record"]);
    io_host::remove_partials(&owned(&bench.path("none"))).unwrap();
}

pub fn a_full_disk_is_told_and_the_old_file_stays() {
    let bench = Bench::new();
    let pool = bench.mounted("pool");
    let (record, filler) = (format!("{}/record", pool.target), format!("{}/filler", pool.target));
    bench.twice(Op::WriteFile { path: record.clone(), bytes: b"old".to_vec() });
    std::fs::write(&filler, vec![1; 128 << 20]).unwrap_err();
    let error = bench.refused(Op::WriteFile { path: record.clone(), bytes: vec![2; 16 << 20] });
    assert_eq!(error.kind(), FailureKind::NoSpace, "{error}");
    let image = bench.path("image");
    std::fs::write(&image, vec![3; 16 << 20]).unwrap();
    let copies = vec![Copying { from: image, to: format!("{}/copy", pool.target), still: None }];
    let error = bench.refused(Op::CopyTogether { copies });
    assert_eq!(error.kind(), FailureKind::NoSpace, "{error}");
    // Nothing is left that keeps the disk full.
    let names = std::fs::read_dir(&pool.target).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("partial")));
    assert_eq!(read_file(&owned(&record)).unwrap().unwrap(), b"old");
    std::fs::remove_file(filler).unwrap();
    bench.twice(Op::WriteFile { path: record.clone(), bytes: b"new".to_vec() });
    assert_eq!(read_file(&owned(&record)).unwrap().unwrap(), b"new");
    bench.remove(&pool);
}

pub fn kl_99_a_tree_is_listed_without_entering_what_is_mounted() {
    let bench = Bench::new();
    let dir = bench.make_dir("dir");
    for name in ["dir/a/b/c/d", "dir/skip/in", "dir/mount", "elsewhere"] {
        bench.make_dir(name);
    }
    std::fs::write(bench.path("dir/file"), "").unwrap();
    std::fs::write(bench.path("elsewhere/seen"), "").unwrap();
    symlink(bench.path("elsewhere"), bench.path("dir/link")).unwrap();
    bench.twice(Op::Bind { source: bench.path("elsewhere"), target: bench.path("dir/mount"), read_only: false });
    let all = io_host::list_tree(&dir, 3, |path| path != "skip").unwrap();
    let expected = [("a", true), ("a/b", true), ("a/b/c", true), ("file", false), ("link", false), ("mount", true)];
    let expected = expected.into_iter().chain([("skip", true)]);
    assert_eq!(all, expected.map(|(path, is_dir)| (path.to_owned(), is_dir)).collect());
    bench.twice(Op::Unmount { target: bench.path("dir/mount") });
    assert!(io_host::list_tree(&bench.path("none"), 3, |_| true).unwrap().is_empty());
    assert!(io_host::list_tree(&bench.path("dir/link"), 3, |_| true).is_err());
}
