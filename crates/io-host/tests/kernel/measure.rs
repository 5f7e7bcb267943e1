//! How long each operation takes here: `cargo test -p io-host --test kernel -- measure`. No test, nothing is asserted.

use std::sync::mpsc::channel;
use std::time::Instant;

use control::host::{Op, Process, ProcessState, Reply};

use crate::bench::{Bench, mount};

const ROUNDS: u32 = 20;

pub fn run() {
    let bench = Bench::new();
    let mut taken: Vec<(&str, Vec<f64>)> = Vec::new();
    for round in 0..ROUNDS {
        one_round(&bench, round, &mut |name, millis| match taken.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(millis),
            None => taken.push((name, vec![millis])),
        });
    }
    for (name, mut all) in taken {
        all.sort_by(f64::total_cmp);
        println!("{name:24} least {:8.2} ms, median {:8.2} ms", all[0], all[all.len() / 2]);
    }
}

fn one_round(bench: &Bench, round: u32, note: &mut dyn FnMut(&'static str, f64)) {
    let image = bench.path(&format!("{round}.img"));
    let (stage, publish) = (bench.path(&format!("stage-{round}")), bench.path(&format!("publish-{round}")));
    let mut timed = |name, op: Op| {
        let begin = Instant::now();
        let reply = bench.host.perform(&op).unwrap();
        note(name, begin.elapsed().as_secs_f64() * 1000.0);
        reply
    };
    timed("make directory", Op::MakeDir { path: stage.clone() });
    bench.make_dir(&format!("publish-{round}"));
    timed("write file", Op::WriteFile { path: bench.path("record"), bytes: vec![b'x'; 500] });
    timed("create image 1 GiB", Op::CreateImage { path: image.clone(), size: 1 << 30 });
    let Reply::Device(device) = timed("attach", Op::AttachLoop { image: image.clone() }) else { return };
    timed("make ext4", Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    timed("make ext4 again", Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    timed("mount", mount(&device, &stage));
    timed("bind", Op::Bind { source: stage.clone(), target: publish.clone(), read_only: true });
    timed("unmount bind", Op::Unmount { target: publish });
    timed("unmount", Op::Unmount { target: stage });
    timed("detach", Op::DetachLoop { image: image.clone() });
    timed("remove file", Op::RemoveFile { path: image });

    let (say, heard) = channel();
    let _watch = bench.host.watch_processes(move |_, state| drop(say.send(state))).unwrap();
    let name = format!("true-{round}");
    let process = Process {
        name: name.clone(),
        command: vec!["/bin/true".into()],
        working_dir: String::new(),
        environment: Default::default(),
        confidential: false,
        mounts: vec![],
        devices: vec![],
        sandbox: Default::default(),
    };
    let begin = Instant::now();
    timed("process start", Op::StartProcess(process));
    while matches!(heard.recv(), Ok(ProcessState::Running { .. })) {}
    note("process start to end", begin.elapsed().as_secs_f64() * 1000.0);
    bench.host.perform(&Op::ForgetProcess { name }).unwrap();
}
