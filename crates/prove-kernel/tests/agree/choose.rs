//! What to do next: anything at all now and then, and mostly what leads somewhere.

use std::os::unix::fs::MetadataExt as _;

use control::host::{Copying, HostPathKind, Looped, Machine as _, Mounted, Op, Process, ShownFile};

use crate::world::{Act, World};

const MIB: u64 = 1 << 20;
const DIRS: [&str; 6] = ["a", "a/x", "b", "t1", "t2", "t3"];
const IMAGES: [&str; 4] = ["img1", "img2", "copy1", "t1/in.img"];
const FILES: [&str; 4] = ["f1", "a/f2", "t1/f3", "t2/x/f4"];
const ODD: [&str; 7] = ["none/at/all", "link", "link/x", "img1/x", "f1", "t1/x", "b/../a"];

/// Numbers that look random and are the same for one seed for ever.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        // Not the step of the dice itself, or every seed would play the same game from another move on.
        Dice(seed.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(17) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    fn often(&mut self, in_ten: usize) -> bool {
        self.roll(10) < in_ten
    }
}

/// Steps that make most of what later ones work on.
pub fn beginning(dice: &mut Dice, world: &World) -> Vec<Op> {
    let mut ops: Vec<Op> = DIRS.iter().map(|dir| Op::MakeDir { path: world.path(dir) }).collect();
    ops.push(Op::MakeFile { path: world.path("f1") });
    for image in ["img1", "img2"] {
        let (path, size) = (world.path(image), [64, 320][dice.roll(2)] * MIB);
        ops.extend([Op::CreateImage { path: path.clone(), size }, Op::AttachLoop { image: path }]);
    }
    for (number, target) in ["t1", "t2"].into_iter().enumerate() {
        let (device, fstype) = (format!("/dev/loop{number}"), fstype(dice));
        ops.push(Op::MakeFilesystem { device: device.clone(), fstype: fstype.clone() });
        let (target, flags, read_only) = (world.path(target), vec![], dice.often(2));
        ops.push(Op::Mount { device, target, fstype, flags, read_only });
    }
    ops.retain(|_| dice.often(9));
    ops
}

/// One round past every operation and every kind of refusal, so that none is left to luck.
pub fn tour(world: &World) -> Vec<Op> {
    let at = |name: &str| world.path(name);
    let one = "/dev/loop0".to_owned();
    let mount = |target: &str, fstype: &str, flags: &[&str], read_only| Op::Mount {
        device: one.clone(),
        target: at(target),
        fstype: fstype.to_owned(),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        read_only,
    };
    let bind = |source: &str, target: &str, read_only| Op::Bind { source: at(source), target: at(target), read_only };
    let copy = |to: &str, still: &str| {
        let copies = vec![Copying { from: at("img1"), to: at(to), still: Some(at(still)) }];
        Op::CopyTogether { copies }
    };
    let copy_dir = |from: &str, to: &str| {
        let copies = vec![Copying { from: at(from), to: at(to), still: None }];
        Op::CopyTogether { copies }
    };
    let format = |fstype: &str| Op::MakeFilesystem { device: one.clone(), fstype: fstype.to_owned() };
    let grow =
        |fstype: &str, mounted_at| Op::GrowFilesystem { device: one.clone(), fstype: fstype.to_owned(), mounted_at };
    let check = |fstype: &str| Op::CheckFilesystem { device: one.clone(), fstype: fstype.to_owned() };
    let show = |target: &str, read_only| Op::BindDevice { device: one.clone(), target: at(target), read_only };
    let show_files = |path, names: &[&str]| {
        let file = |name: &&str| {
            let bytes = name.as_bytes().to_vec().into();
            ((*name).to_owned(), ShownFile { bytes, mode: 0o644, user: None })
        };
        Op::ShowFiles { path, files: names.iter().map(file).collect(), group: None }
    };
    let image = |size| Op::CreateImage { path: at("img1"), size };
    let mut ops: Vec<Op> = DIRS.iter().map(|dir| Op::MakeDir { path: at(dir) }).collect();
    ops.extend([
        Op::MakeDir { path: at("link/x") },
        Op::MakeDir { path: at("b/../a") },
        Op::MakePlace { path: at("link/x") },
        Op::MakePlace { path: at("p/q") },
        Op::MakePlace { path: at("p/q") },
        Op::WriteFile { path: at("a/x/f"), bytes: b"copied".to_vec() },
        copy_dir("a", "p/q/c"),
        copy_dir("a", "p/q/c"),
        copy_dir("a", "a/x/in"),
        copy_dir("none", "p/q/d"),
        bind("b", "a/x", false),
        copy_dir("a", "p/q/d"),
        Op::Unmount { target: at("a/x") },
        Op::RemoveFile { path: at("a/x/f") },
        copy_dir("p/q/c", "p/d"),
        Op::RemoveTree { path: at("p/q/c") },
        Op::MountMemory { target: at("m/n"), size: Some(MIB), mode: 0o755 },
        Op::MountMemory { target: at("m/n"), size: Some(MIB), mode: 0o755 },
        show_files(at("m/n"), &["one", "two/three"]),
        show_files(at("m/n"), &["one", "two/three"]),
        show_files(at("m/n"), &["four"]),
        show_files(at("m/n"), &["../out"]),
        show_files(at("m/d"), &["one"]),
        Op::RemoveTree { path: at("m") },
        Op::MeasureTree { path: at("m") },
        Op::MeasureTree { path: at("none") },
        Op::MeasureTree { path: at("link/x") },
        Op::Unmount { target: at("m/n") },
        Op::RemoveTree { path: at("m") },
        bind("b", "a/x", false),
        Op::MountMemory { target: at("a/x"), size: None, mode: 0o755 },
        Op::Unmount { target: at("a/x") },
        Op::HostPath { path: at("h"), kind: HostPathKind::Directory },
        Op::HostPath { path: at("h"), kind: HostPathKind::DirectoryOrCreate },
        Op::HostPath { path: at("h"), kind: HostPathKind::Directory },
        Op::HostPath { path: at("h"), kind: HostPathKind::File },
        Op::HostPath { path: at("h/f"), kind: HostPathKind::FileOrCreate },
        Op::HostPath { path: at("h/f"), kind: HostPathKind::BlockDevice },
        Op::HostPath { path: at("h/any"), kind: HostPathKind::Any },
        Op::AttachLoop { image: at("img1") },
        image(64 * MIB),
        image(320 * MIB),
        Op::AttachLoop { image: at("img1") },
        Op::RemoveFile { path: at("img1") },
        mount("t1", "ext4", &[], false),
        format("btrfs"),
        check("ext4"),
        format("vfat"),
        format("ext4"),
        format("xfs"),
        check("ext4"),
        mount("t1", "ext4", &["data=journal"], false),
        mount("t1", "ext4", &["noatime"], false),
        mount("t1", "ext4", &["noatime"], false),
        mount("t1", "ext4", &["noexec"], false),
        mount("t2", "ext4", &[], true),
        Op::DetachLoop { image: at("img1") },
        Op::MakeDir { path: at("t1/x") },
        bind("t1", "b", true),
        bind("a", "b", true),
        bind("b", "a", false),
        Op::WriteFile { path: at("b/f"), bytes: b"no".to_vec() },
        Op::WriteFile { path: at("t1/f3"), bytes: b"yes".to_vec() },
        Op::MakeFile { path: at("b/f2") },
        Op::MakeFile { path: at("f1") },
        bind("t3", "t1/x", false),
        Op::Unmount { target: at("t1") },
        Op::RemoveDir { path: at("t1/x") },
        Op::RemoveTree { path: at("t1") },
        Op::RemoveTarget { path: at("t1/f3") },
        Op::Unmount { target: at("t1/x") },
        Op::RemoveTree { path: at("t1/x") },
        Op::RemoveTarget { path: at("t3") },
        Op::Measure { path: at("t1") },
        Op::Measure { path: at("none") },
        Op::SetGroup { path: at("t1"), group: 2000, only_if_root_differs: false },
        Op::SetGroup { path: at("t1"), group: 2000, only_if_root_differs: true },
        Op::SetGroup { path: at("f1"), group: 2000, only_if_root_differs: false },
        Op::SetGroup { path: at("none"), group: 2000, only_if_root_differs: false },
        Op::Discard { path: at("t1") },
        Op::Discard { path: at("t2") },
        copy("copy1", "t1"),
        copy("img2", "t2"),
        copy("t1/in.img", "t1"),
        Op::GrowImage { path: at("img1"), size: 320 * MIB },
        Op::GrowImage { path: at("a"), size: MIB },
        grow("ext4", Some(at("t1"))),
        Op::RefreshLoop { image: at("img1") },
        Op::RefreshLoop { image: at("none") },
        grow("ext4", Some(at("t2"))),
        grow("ext4", Some(at("t1"))),
        grow("xfs", None),
        Op::Unmount { target: at("b") },
        Op::Unmount { target: at("t1") },
        grow("ext4", None),
        show("a", false),
        show("f1", true),
        show("f1", false),
        mount("t1", "ext4", &[], false),
        mount("t1", "ext4", &[], true),
        Op::Unmount { target: at("f1") },
        Op::Unmount { target: at("t1") },
        Op::SetReadAhead { device: one.clone(), kib: 256 },
        Op::SetReadAhead { device: at("f1"), kib: 256 },
        Op::DetachLoop { image: at("img1") },
        Op::RemoveFile { path: at("img1") },
        Op::RemoveDir { path: at("a") },
        Op::RemoveTree { path: at("a") },
    ]);
    let process = |name: &str, word: &str| {
        let (working_dir, environment, mounts) = (String::new(), Default::default(), vec![]);
        let command = vec!["sleep".to_owned(), word.to_owned()];
        Op::StartProcess(Process {
            name: name.to_owned(),
            command,
            working_dir,
            environment,
            confidential: false,
            mounts,
            devices: vec![],
            sandbox: Default::default(),
        })
    };
    let (stop, forget) = (
        |name: &str| Op::StopProcess { name: name.to_owned(), grace_millis: 20_000 },
        |name: &str| Op::ForgetProcess { name: name.to_owned() },
    );
    ops.extend([process("p/3", "1"), process("p1", "1000"), process("p1", "1000"), process("p1", "2000")]);
    ops.extend([forget("p1"), stop("p1"), stop("p/3"), forget("p1")]);
    ops
}

/// The next step. What cannot be tried on a real machine without harm, or is not modelled, is chosen again.
pub fn act(dice: &mut Dice, world: &mut World) -> Act {
    loop {
        let act = any(dice, world);
        if !harmful(&act, world) {
            return act;
        }
    }
}

fn path(dice: &mut Dice, world: &World, of: &[&str]) -> String {
    let name = if dice.often(9) { dice.one(of) } else { dice.one(&ODD) };
    world.path(name)
}

fn device(dice: &mut Dice, world: &mut World) -> String {
    let attached = world.attached();
    match attached.len() {
        0 => path(dice, world, &IMAGES),
        _ if dice.often(9) => attached[dice.roll(attached.len())].clone(),
        _ => path(dice, world, &IMAGES),
    }
}

fn fstype(dice: &mut Dice) -> String {
    dice.one(&["ext4", "ext4", "ext4", "ext4", "xfs", "btrfs", "vfat"]).to_owned()
}

/// Rather the type that is there.
fn likely_fstype(dice: &mut Dice) -> String {
    if dice.often(7) { "ext4".to_owned() } else { fstype(dice) }
}

fn size(dice: &mut Dice) -> u64 {
    [64 * MIB, 64 * MIB, 320 * MIB, 320 * MIB, 384 * MIB, 1000][dice.roll(6)]
}

fn any(dice: &mut Dice, world: &mut World) -> Act {
    Act::Op(match dice.roll(49) {
        2 => Op::MakePlace { path: path(dice, world, &DIRS) },
        0..=1 | 42..=43 => Op::MakeDir { path: path(dice, world, &DIRS) },
        5 => Op::RemoveDir { path: path(dice, world, &DIRS) },
        6 => Op::WriteFile { path: path(dice, world, &FILES), bytes: vec![b'a'; dice.roll(9)] },
        7 => {
            let all = [&FILES[..], &IMAGES[..]].concat();
            Op::RemoveFile { path: path(dice, world, &all) }
        }
        8..=10 => Op::CreateImage { path: path(dice, world, &IMAGES), size: size(dice) },
        11 => copy(dice, world),
        12 => Op::GrowImage { path: path(dice, world, &IMAGES), size: size(dice) },
        13 => Op::Discard { path: path(dice, world, &DIRS) },
        14 => Op::RemoveTree { path: path(dice, world, &DIRS) },
        15 => Op::MakeFile { path: path(dice, world, &FILES) },
        16 => {
            let all = [&FILES[..], &DIRS[..]].concat();
            Op::RemoveTarget { path: path(dice, world, &all) }
        }
        17..=20 => Op::AttachLoop { image: path(dice, world, &IMAGES) },
        21 => Op::DetachLoop { image: path(dice, world, &IMAGES) },
        22 => Op::RefreshLoop { image: path(dice, world, &IMAGES) },
        23 => Op::SetReadAhead { device: device(dice, world), kib: 256 },
        24 => Op::CheckFilesystem { device: device(dice, world), fstype: likely_fstype(dice) },
        25 => {
            let mounted_at = dice.often(6).then(|| path(dice, world, &DIRS));
            Op::GrowFilesystem { device: device(dice, world), fstype: likely_fstype(dice), mounted_at }
        }
        26..=28 => Op::MakeFilesystem { device: device(dice, world), fstype: fstype(dice) },
        3..=4 | 29..=31 => mount(dice, world),
        32..=33 => {
            let (source, target) = (path(dice, world, &DIRS), path(dice, world, &DIRS));
            Op::Bind { source, target, read_only: dice.often(3) }
        }
        34 | 46..=47 => {
            let (device, target) = (device(dice, world), path(dice, world, &FILES));
            Op::BindDevice { device, target, read_only: dice.often(3) }
        }
        35 => {
            let all = [&FILES[..], &DIRS[..], &IMAGES[..]].concat();
            Op::Measure { path: path(dice, world, &all) }
        }
        36..=37 | 48 => {
            let all = [&FILES[..], &DIRS[..], &DIRS[..]].concat();
            Op::Unmount { target: path(dice, world, &all) }
        }
        44..=45 => process(dice),
        _ => return others(dice, world),
    })
}

fn process(dice: &mut Dice) -> Op {
    let name = dice.one(&["p1", "p1", "p2", "p/3"]).to_owned();
    match dice.roll(4) {
        0..=1 => {
            let command = [&["sleep", "1000"][..], &["sleep", "1000"], &["sleep", "2000"], &[]][dice.roll(4)];
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            let (working_dir, environment, mounts) = (String::new(), Default::default(), vec![]);
            let (confidential, devices, sandbox) = (false, vec![], Default::default());
            let process = Process { name, command, working_dir, environment, confidential, mounts, devices, sandbox };
            Op::StartProcess(process)
        }
        2 => Op::StopProcess { name, grace_millis: 20_000 },
        _ => Op::ForgetProcess { name },
    }
}

/// Others follow links and know `..`, so that only plain paths are theirs here.
fn others(dice: &mut Dice, world: &mut World) -> Act {
    let (dir, image) = (world.path(dice.one(&DIRS)), world.path(dice.one(&IMAGES)));
    match dice.roll(10) {
        0..=1 => Act::Writes(format!("{dir}/w")),
        2 => Act::NamesAgain(image, world.path("img2")),
        3 => Act::Removes(image),
        4..=6 => Act::Attaches(image),
        7 => Act::Holds("holder".into(), world.path(dice.one(&["t1", "t2", "a"]))),
        _ => Act::LetsGo("holder".into()),
    }
}

fn mount(dice: &mut Dice, world: &mut World) -> Op {
    let flags: &[&str] =
        [&[][..], &[][..], &["noatime"], &["nodev", "noexec"], &["relatime"], &["data=journal"]][dice.roll(6)];
    Op::Mount {
        device: device(dice, world),
        target: path(dice, world, &DIRS),
        fstype: likely_fstype(dice),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        read_only: dice.often(2),
    }
}

/// Only to places that nothing is mounted over, so that the machine's own disk is never asked to stand still.
fn copy(dice: &mut Dice, world: &World) -> Op {
    let from = path(dice, world, &IMAGES);
    let still = dice.often(5).then(|| path(dice, world, &DIRS));
    let first = Copying { from, to: world.path("copy1"), still };
    let second = Copying { from: path(dice, world, &IMAGES), to: world.path("img2"), still: None };
    Op::CopyTogether { copies: if dice.often(8) { vec![first] } else { vec![first, second] } }
}

/// A device shown at a file.
fn is_view(mount: &Mounted) -> bool {
    mount.fstype == "devtmpfs" && mount.root != "/"
}

/// The loop device a step is about.
fn device_of(act: &Act) -> Option<&String> {
    match act {
        Act::Op(
            Op::SetReadAhead { device, .. }
            | Op::CheckFilesystem { device, .. }
            | Op::GrowFilesystem { device, .. }
            | Op::MakeFilesystem { device, .. }
            | Op::Mount { device, .. }
            | Op::BindDevice { device, .. },
        ) => Some(device).filter(|device| device.starts_with("/dev/")),
        _ => None,
    }
}

/// Not to be tried here.
pub fn harmful(act: &Act, world: &mut World) -> bool {
    // A device that shows nothing may be somebody else's in the next moment.
    if device_of(act).is_some_and(|device| !world.attached().contains(device)) {
        return true;
    }
    let mounts = world.model.mounts().unwrap();
    let beneath = |path: &str, top: &str| path == top || path.starts_with(&format!("{top}/"));
    match act {
        // What a mount shows is removed: the mount goes on showing something without a name.
        Act::Op(Op::RemoveDir { path } | Op::RemoveTree { path } | Op::RemoveTarget { path }) => {
            let name = path.rsplit('/').next().unwrap_or_default();
            mounts.iter().any(|mount| mount.root != "/" && (beneath(&mount.root, path) || mount.root.ends_with(name)))
        }
        // The machine's own disk is left alone.
        Act::Op(Op::Discard { path }) => mounts.iter().any(|mount| mount.target == *path && mount.fstype == "rootfs"),
        // A device that is shown at a file can be detached, and the file then shows whatever comes next.
        Act::Op(Op::DetachLoop { .. }) => mounts.iter().any(is_view),
        // A filesystem whose device is made read-only under it is broken.
        Act::Op(Op::BindDevice { device, read_only, .. }) => {
            *read_only && mounts.iter().any(|mount| mount.source == *device)
        }
        // Two devices for one file, both in use, would corrupt it.
        Act::Attaches(image) => {
            let number = |path: &str| std::fs::metadata(path).map(|meta| meta.ino()).ok();
            let same = |looped: &Looped| looped.deleted || number(&looped.image) == number(image);
            let loops = world.model.loops().unwrap();
            let used = |device: &String| mounts.iter().any(|mount| mount.source == *device);
            mounts.iter().any(is_view) || loops.iter().any(|looped| used(&looped.device) && same(looped))
        }
        Act::Op(_) | Act::Writes(_) | Act::NamesAgain(..) | Act::Removes(_) | Act::Holds(..) | Act::LetsGo(_) => false,
    }
}
