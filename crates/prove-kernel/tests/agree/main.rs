//! The model kernel and the real one do the same: random operations, one after the other, on both; every answer, every
//! refusal and all mounts, loop devices and files must agree. It needs root; without it it says so and does nothing.
//!
//! A failure prints its seed and all that was done. `cargo test -p prove-kernel --test agree -- 7` runs seed 7 alone.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod choose;
mod world;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use control::host::{FailureKind, Op};
use world::{Act, World};

/// How many runs, and how long each.
const SEEDS: u64 = 20;
/// Seeds that once found a difference.
const FOUND: [u64; 2] = [220, 225];
const STEPS: usize = 50;
/// How often each operation was done, and refused for which reason.
type Covered = BTreeMap<(String, Option<FailureKind>), usize>;
/// Set in the second run, in a mount namespace whose mounts are shared.
const SHARED: &str = "PROVE_KERNEL_WITH_SHARED_MOUNTS";

fn main() -> ExitCode {
    use std::os::unix::fs::MetadataExt as _;
    let args: Vec<String> = std::env::args().skip(1).collect();
    // This program is the supervisor of the processes it starts, too.
    if args.first().is_some_and(|word| word == io_host::SHIM_WORD) {
        return u8::try_from(io_host::shim_main(&args[1..])).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let uid = std::fs::metadata("/proc/self").unwrap().uid();
    if uid != 0 {
        println!("NOT TESTED: comparing the model with the real kernel needs root, and this is uid {uid}");
        return ExitCode::SUCCESS;
    }
    let only: Option<u64> = args.iter().find_map(|arg| arg.parse().ok());
    let shared = std::env::var_os(SHARED).is_some();
    let mut covered = Covered::new();
    if let Err(told) = tour(shared, &mut covered) {
        println!("the tour{} disagrees\n{told}", if shared { " (shared mounts)" } else { "" });
        return ExitCode::FAILURE;
    }
    // Every other seed with mounts shared and every other with private ones, so that both cost no more than one.
    let all = (0..SEEDS).filter(|seed| (seed % 2 == 1) == shared).chain(FOUND);
    let seeds: Vec<u64> = only.map_or_else(|| all.collect(), |seed| vec![seed]);
    for seed in seeds {
        if let Err(told) = run(seed, shared, &mut covered) {
            println!("seed {seed}{} disagrees\n{told}", if shared { " (shared mounts)" } else { "" });
            return ExitCode::FAILURE;
        }
    }
    let steps: usize = covered.values().sum();
    println!("the model agrees with the kernel in {steps} steps{}", if shared { " (shared mounts)" } else { "" });
    if only.is_none() {
        require_coverage(&covered);
    }
    if shared || again_with_shared_mounts(&args) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A comparison in which nothing happens proves nothing: every operation must have been done and been refused, and every
/// kind of refusal seen that can be brought about here.
fn require_coverage(covered: &Covered) {
    let mut ops: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ((op, answer), count) in covered {
        let (done, refused) = ops.entry(op).or_default();
        *(if answer.is_none() { done } else { refused }) += count;
    }
    for (op, (done, refused)) in &ops {
        println!("  {op}: {done} done, {refused} refused");
    }
    let never: Vec<_> = ops.iter().filter(|(_, (done, refused))| *done == 0 || *refused == 0).collect();
    assert!(never.is_empty(), "never done or never refused: {never:?}");
    for kind in KINDS {
        assert!(covered.keys().any(|(_, answer)| *answer == Some(*kind)), "{kind:?} was never seen");
    }
}

const KINDS: &[FailureKind] = &[
    FailureKind::Path,
    FailureKind::Symlink,
    FailureKind::Missing,
    FailureKind::WrongKind,
    FailureKind::NotEmpty,
    FailureKind::MountPoint,
    FailureKind::WrongSize,
    FailureKind::Busy,
    FailureKind::ForeignSignature,
    FailureKind::MountedOtherwise,
    FailureKind::FlagNotAllowed,
    FailureKind::UnknownFilesystem,
    FailureKind::ToolFailed,
    FailureKind::MountFailed,
    FailureKind::CannotGrow,
    FailureKind::ProcessName,
    FailureKind::ProcessSpec,
    FailureKind::ReadOnly,
];

fn tour(shared: bool, covered: &mut Covered) -> Result<(), String> {
    let mut world = World::new(shared);
    for op in choose::tour(&world) {
        world.step(Act::Op(op))?;
    }
    count(&world, covered);
    Ok(())
}

fn count(world: &World, covered: &mut Covered) {
    for step in world.covered() {
        *covered.entry(step).or_default() += 1;
    }
}

fn run(seed: u64, shared: bool, covered: &mut Covered) -> Result<(), String> {
    let mut world = World::new(shared);
    let mut dice = choose::Dice::new(seed);
    for op in choose::beginning(&mut dice, &world) {
        let act = Act::Op(op);
        if !choose::harmful(&act, &mut world) {
            world.step(act)?;
        }
    }
    for _ in 0..STEPS {
        let act = choose::act(&mut dice, &mut world);
        world.step(act.clone())?;
        // A file with two devices is seen as such, and has none afterwards: in use, both would corrupt it.
        if let Act::Attaches(image) = act {
            world.step(Act::Op(Op::AttachLoop { image: image.clone() }))?;
            world.step(Act::Op(Op::DetachLoop { image }))?;
        }
    }
    count(&world, covered);
    Ok(())
}

fn again_with_shared_mounts(args: &[String]) -> bool {
    let mut again = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/own-mounts.sh"));
    again.arg("shared").arg(std::env::current_exe().unwrap()).args(args);
    again.env(SHARED, "1").status().is_ok_and(|status| status.success())
}
