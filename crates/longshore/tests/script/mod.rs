//! Runs one golden script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What every command may use: `up` starts Longshore in the background and waits until it is ready, `crash` kills it
/// with no warning, `down` stops it, `leftovers` lists what is still mounted, attached or kept below the data directory.
const PRELUDE: &str = include_str!("prelude.sh");

/// A command and what it should print.
pub struct Step {
    line: usize,
    pub command: String,
    pub expected: Vec<String>,
    /// All lines of the step, as they stand in the script.
    pub lines: Vec<String>,
}

/// Runs a script and fails with the whole difference.
pub fn run(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    if name.starts_with("root-") && !is_root() {
        eprintln!("{name} was not run: it mounts filesystems, and only root may");
        return;
    }
    assert!(on_path("kubectl"), "kubectl is missing; `make test` installs it");
    let world = World::new();
    for step in steps(&fs::read_to_string(path).unwrap()) {
        let printed = world.bash(&step.command);
        if !matches(&step.expected, &printed.lines().collect::<Vec<_>>()) {
            let log = fs::read_to_string(world.dir.join("log")).unwrap_or_default();
            panic!(
                "{}:{}: $ {}\n--- expected\n{}\n--- printed\n{printed}\n--- log of longshore\n{log}",
                path.display(),
                step.line,
                step.command,
                step.expected.join("\n")
            );
        }
    }
}

/// A directory of its own for each script, cleaned up however the script ends.
pub struct World {
    dir: PathBuf,
}

impl World {
    pub fn new() -> World {
        // Short, because Unix sockets live below it.
        let dir = PathBuf::from(format!("/tmp/ls-{}-{:x}", std::process::id(), rand()));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("prelude.sh"), PRELUDE).unwrap();
        World { dir }
    }

    /// Runs a command with the words of the prelude; answers what it prints.
    pub fn bash(&self, command: &str) -> String {
        let binary = Path::new(env!("CARGO_BIN_EXE_longshore"));
        let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let script = format!("source {}/prelude.sh; {{ {command}\n}} 2>&1", self.dir.display());
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&self.dir)
            .env("PATH", path)
            .env("W", &self.dir)
            .env("LONGSHORE_DATA", self.dir.join("d"))
            .env("KUBECONFIG", self.dir.join("d/kubeconfig"))
            .env("HOME", &self.dir)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).replace(self.dir.to_str().unwrap(), "$W")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.bash("clean_up");
    }
}

/// The steps of a script.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut heredoc: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(end) = &heredoc {
            let step = steps.last_mut().unwrap();
            step.lines.push(line.to_string());
            step.command.push('\n');
            step.command.push_str(line);
            if line == end {
                heredoc = None;
            }
        } else if let Some(command) = line.strip_prefix("$ ") {
            heredoc =
                command.split_once("<<'").and_then(|(_, rest)| rest.split_once('\'')).map(|(end, _)| end.to_string());
            let lines = vec![line.to_string()];
            steps.push(Step { line: index + 1, command: command.to_string(), expected: Vec::new(), lines });
        } else if let Some(step) = steps.last_mut() {
            step.lines.push(line.to_string());
            if !line.starts_with('#') && !line.is_empty() {
                step.expected.push(line.to_string());
            }
        } else {
            assert!(line.starts_with('#') || line.is_empty(), "a script begins with a command, not with {line:?}");
        }
    }
    steps
}

/// Whether what was printed is what was expected, wildcards and blank lines aside.
pub fn matches(expected: &[String], printed: &[&str]) -> bool {
    let printed: Vec<&str> = printed.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    fn rest(expected: &[String], printed: &[&str]) -> bool {
        match expected.split_first() {
            None => printed.is_empty(),
            Some((dots, after)) if dots == "..." => (0..=printed.len()).any(|skip| rest(after, &printed[skip..])),
            Some((line, after)) => match printed.split_first() {
                Some((said, others)) => line_matches(line, said) && rest(after, others),
                None => false,
            },
        }
    }
    rest(expected, &printed)
}

fn line_matches(expected: &str, printed: &str) -> bool {
    // Columns are as wide as their longest cell, which changes from run to run: any blank is as good as another.
    let one_blank = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (expected, printed) = (one_blank(expected), one_blank(printed));
    let mut pieces = expected.split("[..]");
    let first = pieces.next().unwrap_or_default();
    let Some(mut left) = printed.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
        last = Some(piece);
    }
    left.is_empty() || last == Some("")
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Whether this process may mount.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

fn rand() -> u32 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos()
}

#[test]
fn wildcards_match_within_and_across_lines() {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    assert!(matches(&lines("a [..] c\n...\nz"), &["a b c", "x", "y", "z"]));
    assert!(matches(&lines("pod/[..]"), &["pod/x created"]));
    assert!(!matches(&lines("a [..] c"), &["a b d"]));
    assert!(!matches(&lines("a"), &["a", "b"]));
}
