//! The benchmark: start-up, one volume's life, its cost in requests, and memory, measured on the real binary.

use std::fmt::Write;
use std::fs;
use std::io;

use super::life::{Life, live, live_timed};

/// Lives measured. The median is reported, with the best and worst beside it, because machines are noisy.
const RUNS: usize = 7;

/// Lives more in which the making of the filesystem is timed.
const TIMED: usize = 3;

/// Measures and reports.
pub fn run(binary: &str) -> io::Result<String> {
    let lives: Vec<Life> = (0..RUNS).map(|_| live(binary)).collect::<io::Result<_>>()?;
    let timed: Vec<Life> = (0..TIMED).map(|_| live_timed(binary)).collect::<io::Result<_>>()?;
    let mut report = String::new();
    let _ = writeln!(report, "{RUNS} runs, each on a fresh data directory; median [best, worst]");
    line(&mut report, "exec to ready, first start", &lives, "ms", |life| life.first_ready);
    line(&mut report, "exec to ready, later start", &lives, "ms", |life| life.later_ready);
    line(&mut report, "claim and pod seen to running", &lives, "ms", |life| life.to_running);
    line(&mut report, "of it mkfs, timed in lives of their own", &timed, "ms", |life| life.making);
    line(&mut report, "mkfs in those lives", &timed, "% of the time to running", |life| {
        100.0 * life.making / life.to_running
    });
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
