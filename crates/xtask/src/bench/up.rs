//! The benchmark: start-up, one volume's life, its cost in requests, and memory, measured on the real binary; beside
//! another build's in turn where that is asked for.

use std::fmt::Write;
use std::fs;
use std::io;
use std::process::Command;
use std::time::Instant;

use super::figures::{ratios, spread};
use super::life::{Life, live, millis};

/// Lives measured. The median is reported, with the best and worst beside it, because machines are noisy.
const RUNS: usize = 7;

/// What is measured.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    binary: String,
    /// Another build to measure beside this one, for working on it.
    other: Option<String>,
    runs: usize,
}

impl Settings {
    /// From the command line; nothing if that is wrong.
    pub fn read(binary: &str, options: &[&str]) -> Option<Settings> {
        let mut settings = Settings { binary: binary.into(), other: None, runs: RUNS };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--beside" => settings.other = Some(options.next()?.to_string()),
                "--quick" => settings.runs = 1,
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// The lives of this build, and of the other one where there is one.
#[derive(Default)]
struct Lives {
    ours: Vec<Life>,
    other: Vec<Life>,
}

impl Lives {
    /// One after the other, so that both have the same machine; who is first with one is last with the next.
    fn measure(settings: &Settings) -> io::Result<Lives> {
        let mut lives = Lives::default();
        for run in 0..settings.runs {
            let mut turn = vec![(&settings.binary, &mut lives.ours)];
            if let Some(other) = &settings.other {
                turn.push((other, &mut lives.other));
            }
            if run % 2 == 1 {
                turn.reverse();
            }
            for (binary, lives) in turn {
                lives.push(live(binary)?);
            }
        }
        Ok(lives)
    }
}

/// Measures and reports.
pub fn run(settings: &Settings) -> io::Result<String> {
    let lives = Lives::measure(settings)?;
    let mut report = String::new();
    let _ = writeln!(report, "{} runs, each on a fresh data directory; median [best, worst]", settings.runs);
    if let Some(other) = &settings.other {
        let _ = writeln!(report, "beside {other}, in turn; the ratio is this build's to that one's, run by run");
    }
    line(&mut report, "exec to ready, first start", &lives, "ms", |life| life.first_ready);
    line(&mut report, "exec to ready, later start", &lives, "ms", |life| life.later_ready);
    line(&mut report, "claim and pod seen to running", &lives, "ms", |life| life.to_running);
    making(&mut report, &lives.ours)?;
    line(&mut report, "claim and pod seen to pod Succeeded", &lives, "ms", |life| life.to_succeeded);
    line(&mut report, "the same by the clock, with two runs of kubectl", &lives, "ms", |life| life.by_the_clock);
    line(&mut report, "claim deleted to volume gone", &lives, "ms", |life| life.to_nothing);
    line(&mut report, "resident memory, ready", &lives, "MB", |life| life.memory_ready);
    line(&mut report, "of it anonymous", &lives, "MB", |life| life.anonymous_ready);
    line(&mut report, "resident memory, after one life", &lives, "MB", |life| life.memory_after);
    let size = fs::metadata(&settings.binary)?.len();
    let _ = writeln!(report, "{:<52} {:.1} MB", "binary", size as f64 / 1e6);
    let Some(life) = lives.ours.last() else { return Ok(report) };
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

fn line(report: &mut String, what: &str, lives: &Lives, unit: &str, figure: fn(&Life) -> f64) {
    let of = |lives: &[Life]| lives.iter().map(figure).collect();
    let _ = writeln!(report, "{what:<52} {}", told(of(&lives.ours), &of(&lives.other), unit));
}

/// The median with the best and the worst, and the same of the other build with the ratio run by run.
fn told(ours: Vec<f64>, other: &[f64], unit: &str) -> String {
    let one = |mut figures: Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        let (best, worst) = (figures[0], figures[figures.len() - 1]);
        format!("{:.1} {unit}  [{best:.1}, {worst:.1}]", figures[figures.len() / 2])
    };
    if other.is_empty() {
        return one(ours);
    }
    let ratio = spread(&ratios(&ours, other), "×");
    format!("{}  beside {}  = {ratio}", one(ours), one(other.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_is_named_after_beside() {
        let read = |options| Settings::read("a", options).map(|settings| (settings.other, settings.runs));
        assert_eq!(read(&[]), Some((None, RUNS)));
        assert_eq!(read(&["--quick", "--beside", "b"]), Some((Some("b".into()), 1)));
        assert_eq!((read(&["--beside"]), read(&["b"])), (None, None));
    }

    #[test]
    fn a_ratio_to_another_build_is_taken_run_by_run() {
        assert_eq!(told(vec![3.0, 1.0, 2.0], &[], "ms"), "2.0 ms  [1.0, 3.0]");
        let beside = told(vec![10.0, 20.0, 30.0], &[20.0, 40.0, 30.0], "ms");
        assert_eq!(beside, "20.0 ms  [10.0, 30.0]  beside 30.0 ms  [20.0, 40.0]  = 0.50× (0.50–1.00)");
    }
}
