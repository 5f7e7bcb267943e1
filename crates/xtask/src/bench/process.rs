//! A container's process beside runc: how long it takes from start to end, and what its supervisor costs while it runs.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use control::host::{Op, Process, ProcessState, Sandbox};
use io_host::Host;
use serde_json::{Value, json};

use super::figures::Figures;
use super::life::Scratch;

/// Processes of each kind that are measured, one of ours and one of runc's in turn.
const ROUNDS: usize = 25;
const OURS: &str = "longshore";
const RUNC: &str = "runc";
const START: &str = "start to end of /bin/true, ms";
const MEMORY: &str = "private memory that stays with each process, kB";
const PEAK: &str = "most memory of one that starts processes, kB";
const SIZE: &str = "program, MB";

/// Measures and reports. Needs root and runc.
pub fn run(binary: &str) -> io::Result<String> {
    let runc = Command::new("runc").arg("--version").output();
    let runc = runc.map_err(|_| io::Error::other("runc is not installed; install it with: apt-get install runc"))?;
    let version = String::from_utf8_lossy(&runc.stdout).lines().next().unwrap_or_default().to_string();
    let scratch = Scratch::new()?;
    let host = Host::new(scratch.0.join("processes"))?.with_shim(binary.into());
    let bundle = scratch.0.join("bundle");
    write_bundle(&bundle, &["/bin/true"])?;
    let mut figures = Figures::default();
    for round in 0..ROUNDS {
        figures.add(START, OURS, ours(&host, round)?);
        let began = Instant::now();
        runc_run(&bundle, &format!("lsb-{}-{round}", std::process::id()))?;
        figures.add(START, RUNC, began.elapsed().as_secs_f64() * 1000.0);
    }
    let (kept, most) = supervisors(&host)?;
    figures.add(MEMORY, OURS, kept);
    figures.add(PEAK, OURS, most);
    // Nobody of runc stays: who wants to know how a process ends keeps a shim beside it.
    figures.add(PEAK, RUNC, peak(Command::new("runc").args(["run", "--bundle"]).arg(&bundle).arg("lsb-peak"))?);
    figures.add(SIZE, OURS, fs::metadata(binary)?.len() as f64 / 1e6);
    figures.add(SIZE, RUNC, fs::metadata(which("runc")?)?.len() as f64 / 1e6);
    Ok(report(&figures, &version))
}

fn report(figures: &Figures, version: &str) -> String {
    let mut report = String::new();
    let _ = writeln!(report, "{version}; {ROUNDS} of each in turn; median");
    let _ = writeln!(report, "{:<52} {:>10} {:>10} {:>8}", "", OURS, RUNC, "ratio");
    for what in [START, MEMORY, PEAK, SIZE] {
        let (ours, runc) = (figures.shown(what, OURS), figures.shown(what, RUNC));
        let _ = writeln!(report, "{what:<52} {ours:>10} {runc:>10} {:>8}", figures.ratio(what, OURS, RUNC));
    }
    report
}

fn process(name: String, command: &[&str]) -> Process {
    Process {
        name,
        command: command.iter().map(|word| (*word).to_string()).collect(),
        working_dir: String::new(),
        confidential: false,
        environment: [("PATH".to_string(), "/usr/bin:/bin".to_string())].into(),
        mounts: Vec::new(),
        devices: vec![],
        sandbox: Box::new(Sandbox::default()),
    }
}

/// One process of ours, from asking for it to knowing how it ended.
fn ours(host: &Host, round: usize) -> io::Result<f64> {
    let name = format!("true-{round}");
    let began = Instant::now();
    host.perform(&Op::StartProcess(process(name.clone(), &["/bin/true"]))).map_err(io::Error::other)?;
    while began.elapsed() < Duration::from_secs(60) {
        match host.processes()?.get(&name) {
            Some(ProcessState::Exited { code: 0, .. }) => return Ok(began.elapsed().as_secs_f64() * 1000.0),
            Some(ProcessState::Running { .. }) | None => std::thread::sleep(Duration::from_micros(200)),
            Some(other) => return Err(io::Error::other(format!("/bin/true ended as {other:?}"))),
        }
    }
    Err(io::Error::other("/bin/true did not end within a minute"))
}

/// What stays with a process that sleeps, its supervisor and its first process, holds for itself; and the most that one
/// of them has had, what it shares included.
fn supervisors(host: &Host) -> io::Result<(f64, f64)> {
    const SLEEPERS: usize = 10;
    let (before, _) = shims()?;
    for number in 0..SLEEPERS {
        let sleeps = process(format!("sleep-{number}"), &["/bin/sleep", "60"]);
        host.perform(&Op::StartProcess(sleeps)).map_err(io::Error::other)?;
    }
    std::thread::sleep(Duration::from_millis(500));
    let (after, most) = shims()?;
    for number in 0..SLEEPERS {
        let name = format!("sleep-{number}");
        host.perform(&Op::StopProcess { name, grace_millis: 0 }).map_err(io::Error::other)?;
    }
    Ok(((after - before) / SLEEPERS as f64, most))
}

/// Kilobytes that supervisors of processes share with nobody, and the most that one of them has had.
pub(crate) fn shims() -> io::Result<(f64, f64)> {
    let (mut sum, mut most) = (0.0, 0.0);
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let command = fs::read(path.join("cmdline")).unwrap_or_default();
        if !command.split(|byte| *byte == 0).any(|word| word == io_host::SHIM_WORD.as_bytes()) {
            continue;
        }
        sum += kilobytes(&path.join("smaps_rollup"), "Private_");
        most = kilobytes(&path.join("status"), "VmHWM:").max(most);
    }
    Ok((sum, most))
}

/// The sum of the lines that begin so.
fn kilobytes(file: &Path, begin: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with(begin));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).sum()
}

/// What runc gives by default, with the machine's programs as root, read-only, as ours.
fn write_bundle(bundle: &Path, command: &[&str]) -> io::Result<()> {
    fs::create_dir_all(bundle.join("rootfs"))?;
    let made = Command::new("runc").arg("spec").current_dir(bundle).status()?;
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path)?)?;
    config["process"]["args"] = json!(command);
    config["process"]["terminal"] = json!(false);
    if let Some(mounts) = config["mounts"].as_array_mut() {
        for name in ["usr", "bin", "lib", "lib64", "etc"].iter().filter(|name| Path::new("/").join(name).exists()) {
            let target = format!("/{name}");
            mounts.push(json!({ "destination": target, "source": target, "type": "bind", "options": ["rbind", "ro"] }));
            fs::create_dir_all(bundle.join("rootfs").join(name))?;
        }
    }
    fs::write(&path, serde_json::to_vec(&config)?)?;
    if made.success() { Ok(()) } else { Err(io::Error::other("runc spec failed")) }
}

fn runc_run(bundle: &Path, name: &str) -> io::Result<()> {
    let ended = Command::new("runc").args(["run", "--bundle"]).arg(bundle).arg(name).stdin(Stdio::null()).output()?;
    if ended.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("runc: {}", String::from_utf8_lossy(&ended.stderr))))
}

/// The most memory a command has had, in kilobytes.
pub(super) fn peak(command: &mut Command) -> io::Result<f64> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn()?;
    let status = std::path::PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut most: f64 = 0.0;
    while child.try_wait()?.is_none() {
        most = most.max(kilobytes(&status, "VmHWM:"));
    }
    Ok(most)
}

fn which(program: &str) -> io::Result<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.ok_or_else(|| io::Error::other(format!("{program} is not in PATH")))
}
