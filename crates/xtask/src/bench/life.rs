//! One life of one volume, measured.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EXAMPLE: &str = include_str!("../../../longshore/src/up/example.yaml");

/// What was measured: times in milliseconds, memory in megabytes.
pub(crate) struct Life {
    pub first_ready: f64,
    pub later_ready: f64,
    pub to_running: f64,
    pub to_succeeded: f64,
    pub by_the_clock: f64,
    pub to_nothing: f64,
    pub memory_ready: f64,
    pub anonymous_ready: f64,
    pub memory_after: f64,
    pub requests: BTreeMap<String, u64>,
    pub steps: Vec<(f64, String)>,
}

/// A data directory that goes when it is no longer needed.
pub(crate) struct Scratch(pub PathBuf);

impl Scratch {
    /// A new one, named after this process.
    pub fn new() -> io::Result<Scratch> {
        let scratch = Scratch(PathBuf::from(format!("/tmp/lsb-{}", std::process::id())));
        fs::create_dir_all(&scratch.0)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.0).status();
    }
}

/// Starts, claims, mounts, runs, deletes, restarts.
pub fn live(binary: &str) -> io::Result<Life> {
    let scratch = Scratch::new()?;
    let data = scratch.0.join("d");
    let log = scratch.0.join("log");
    fs::write(scratch.0.join("example.yaml"), EXAMPLE)?;

    let (mut server, first_ready) = up(binary, &data, &log, &[])?;
    let (memory_ready, anonymous_ready) = memory(&server)?;
    let before = counts(&data)?;
    let began = Instant::now();
    kubectl(&data, &["apply", "-f", text(&scratch.0.join("example.yaml"))])?;
    kubectl(&data, &["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/hello", "--timeout=60s"])?;
    let by_the_clock = millis(began.elapsed());
    kubectl(&data, &["delete", "pod/hello", "pvc/data"])?;
    let left = Instant::now();
    while !kubectl(&data, &["get", "pv,pvc,pod,volumeattachment", "--no-headers", "--ignore-not-found"])?.is_empty() {
        if left.elapsed() > Duration::from_secs(60) {
            return Err(io::Error::other("something was still there a minute after everything was deleted"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = counts(&data)?;
    let (memory_after, _) = memory(&server)?;
    stop(&mut server)?;
    let (mut server, later_ready) = up(binary, &data, Path::new("/dev/null"), &[])?;
    stop(&mut server)?;

    let steps = steps(&fs::read_to_string(&log)?);
    let at = |words: &str| steps.iter().find(|(_, what)| what.contains(words)).map(|(at, _)| *at);
    let last = steps.last().map_or(0.0, |(at, _)| *at);
    Ok(Life {
        first_ready,
        later_ready,
        to_running: at("is Running").or(at("is started")).unwrap_or(f64::NAN),
        to_succeeded: at("is Succeeded").unwrap_or(f64::NAN),
        by_the_clock,
        to_nothing: last - at("the claim is being deleted").unwrap_or(f64::NAN),
        memory_ready,
        anonymous_ready,
        memory_after,
        requests: after
            .into_iter()
            .map(|(name, count)| (name.clone(), count - before.get(&name).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0)
            .collect(),
        steps,
    })
}

/// Starts `up` with these options too, and answers when it is ready.
pub(crate) fn up(binary: &str, data: &Path, log: &Path, more: &[&str]) -> io::Result<(Child, f64)> {
    let began = Instant::now();
    let mut server = Command::new(binary)
        .args(["up", "--listen", "127.0.0.1:0", "--node-name", "here", "-vv", "--data-dir", text(data)])
        .args(more)
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped())
        .stderr(fs::File::create(log)?)
        .spawn()?;
    let out = server.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    for line in BufReader::new(out).lines() {
        if line?.contains("Longshore is up") {
            return Ok((server, millis(began.elapsed())));
        }
    }
    Err(io::Error::other(format!("{binary} did not come up; see {}", log.display())))
}

pub(crate) fn stop(server: &mut Child) -> io::Result<()> {
    Command::new("kill").args(["-INT", &server.id().to_string()]).status()?;
    server.wait()?;
    Ok(())
}

pub(crate) fn kubectl(data: &Path, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("kubectl").args(arguments).env("KUBECONFIG", data.join("kubeconfig")).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn counts(data: &Path) -> io::Result<BTreeMap<String, u64>> {
    let said = kubectl(data, &["get", "--raw", "/longshore/v1/counts"])?;
    Ok(said
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, count)| Some((name.into(), count.parse().ok()?)))
        .collect())
}

/// Resident and anonymous megabytes.
pub(crate) fn memory(server: &Child) -> io::Result<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN)
            / 1024.0
    };
    Ok((field("VmRSS:"), field("RssAnon:")))
}

/// Actions about the claim, its volume and its pod, with the time since the first of them.
fn steps(log: &str) -> Vec<(f64, String)> {
    let mut steps: Vec<(f64, String)> = Vec::new();
    let mut first = None;
    // What is asked and written at every start, and at every sign of life of a node, is about no claim.
    const OTHERS: [&str; 3] = ["\"registrar\"", "\"nodelifecycle\"", "what it has published"];
    let other = |line: &str| OTHERS.iter().any(|said| line.contains(said));
    for line in log.lines().filter(|line| line.contains("action=") && !other(line)) {
        let Some((time, rest)) = line.split_once('Z') else { continue };
        let Some(seconds) = time.split_once('T').and_then(|(_, clock)| seconds(clock)) else { continue };
        let since = *first.get_or_insert(seconds);
        let what = rest.trim_start().trim_start_matches("DEBUG").trim();
        steps.push((
            (seconds - since) * 1000.0,
            what.split(" key=").next().unwrap_or(what).replace("controller=", "by "),
        ));
    }
    steps
}

fn seconds(clock: &str) -> Option<f64> {
    let mut parts = clock.split(':').map(|part| part.parse::<f64>().ok());
    Some(parts.next()?? * 3600.0 + parts.next()?? * 60.0 + parts.next()??)
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_runs_when_its_status_is_about_to_say_so() {
        let log = "2026-01-01T00:00:00.500Z DEBUG heard of controller=\"nodelifecycle\" key=a action=\"A\"\n\
                   2026-01-01T00:00:01.000Z DEBUG asking controller=\"binding\" key=a action=\"A\"\n\
                   2026-01-01T00:00:01.250Z DEBUG pod default/hello is Running, which its status does not say yet \
                   controller=\"node\" key=pod default/hello action=\"SetStatus\"\n";
        let steps = steps(log);
        assert_eq!(steps.len(), 2);
        assert!((steps[1].0 - 250.0).abs() < 0.001 && steps[1].1.contains("is Running"), "{steps:?}");
    }
}
