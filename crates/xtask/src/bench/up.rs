//! The benchmark: start-up, one volume's life, its cost in requests, and memory, measured on the real binary.

use std::fmt::Write;
use std::fs;
use std::io;
use std::process::Command;
use std::time::Instant;

use super::life::{Life, live, millis};

/// Lives measured. The median is reported, with the best and worst beside it, because machines are noisy.
const RUNS: usize = 7;

/// Measures and reports.
pub fn run(binary: &str) -> io::Result<String> {
    let lives: Vec<Life> = (0..RUNS).map(|_| live(binary)).collect::<io::Result<_>>()?;
    let mut report = String::new();
    let _ = writeln!(report, "{RUNS} runs, each on a fresh data directory; median [best, worst]");
    line(&mut report, "exec to ready, first start", &lives, "ms", |life| life.first_ready);
    line(&mut report, "exec to ready, later start", &lives, "ms", |life| life.later_ready);
    line(&mut report, "claim and pod seen to running", &lives, "ms", |life| life.to_running);
    making(&mut report, &lives)?;
    line(&mut report, "claim and pod seen to pod Succeeded", &lives, "ms", |life| life.to_succeeded);
    line(&mut report, "the same by the clock, with two runs of kubectl", &lives, "ms", |life| life.by_the_clock);
    line(&mut report, "claim deleted to volume gone", &lives, "ms", |life| life.to_nothing);
    line(&mut report, "resident memory, ready", &lives, "MB", |life| life.memory_ready);
    line(&mut report, "of it anonymous", &lives, "MB", |life| life.anonymous_ready);
    line(&mut report, "resident memory, after one life", &lives, "MB", |life| life.memory_after);
    let size = fs::metadata(binary)?.len();
    let _ = writeln!(report, "{:<52} {:.1} MB", "binary", size as f64 / 1e6);
    let Some(life) = lives.last() else { return Ok(report) };
    let writes: u64 = life.requests.iter().filter(|(name, _)| is_write(name)).map(|(_, count)| count).sum();
    let calls: u64 = life.requests.iter().filter(|(name, _)| name.starts_with("csi ")).map(|(_, count)| count).sum();
    let _ = writeln!(
        report,
        "\none volume's life, from claim and pod applied to nothing left: {writes} API writes, {calls} CSI calls"
    );
    for (name, count) in &life.requests {
        let _ = writeln!(report, "  {count:>3}  {name}");
    }
    let _ = writeln!(report, "\nwhere the time goes (last run; milliseconds since the first decision)");
    for (at, what) in &life.steps {
        let _ = writeln!(report, "  {at:>7.1}  {what}");
    }
    Ok(report)
}

/// How long the program that makes the filesystem takes by itself, in memory as the driver has it done, and what share
/// of the time to running that is. The driver looks for programs in fixed places, so nothing could stand in its place.
fn making(report: &mut String, lives: &[Life]) -> io::Result<()> {
    let image = format!("/dev/shm/lsb-{}", std::process::id());
    let timed: io::Result<Vec<f64>> = (0..RUNS).map(|_| make(&image)).collect();
    let _ = fs::remove_file(&image);
    let (alone, running) = (median(timed?), median(lives.iter().map(|life| life.to_running).collect()));
    let share = 100.0 * alone / running;
    let _ = writeln!(report, "{:<52} {alone:.1} ms, {share:.0} % of it", "mkfs.ext4 alone, in memory");
    Ok(())
}

/// Makes a filesystem as the driver does (`io-host/src/format.rs`), on an image of the example's size.
fn make(image: &str) -> io::Result<f64> {
    fs::File::create(image)?.set_len(64 << 20)?;
    let began = Instant::now();
    let options = ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", image];
    let path = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";
    match Command::new("mkfs.ext4").args(options).env("PATH", path).status() {
        Ok(status) if status.success() => Ok(millis(began.elapsed())),
        Ok(status) => Err(io::Error::other(format!("mkfs.ext4 ended with {status}"))),
        Err(error) => Err(io::Error::other(format!("mkfs.ext4 could not be started: {error}"))),
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn is_write(name: &str) -> bool {
    ["api create ", "api patch ", "api delete "].iter().any(|verb| name.starts_with(verb))
}

fn line(report: &mut String, what: &str, lives: &[Life], unit: &str, figure: impl Fn(&Life) -> f64) {
    let mut figures: Vec<f64> = lives.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    let median = figures[figures.len() / 2];
    let (best, worst) = (figures[0], figures[figures.len() - 1]);
    let _ = writeln!(report, "{what:<52} {median:.1} {unit}  [{best:.1}, {worst:.1}]");
}
