//! What a shell and a reader get: completions, manual pages, and the name the program was called by.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::out;

/// `longshore completions`.
#[derive(Args, Clone)]
pub struct Completions {
    /// The shell that completes
    #[arg(value_parser = shell, value_name = "SHELL")]
    shell: Shell,
}

/// `longshore man`.
#[derive(Args, Clone)]
pub struct Manual {
    /// The command the page is about, such as deploy, or deploy rbac; longshore itself if none is named
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory instead of printing one
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

fn shell(name: &str) -> Result<Shell, String> {
    match name {
        "bash" => Ok(Shell::Bash),
        "zsh" => Ok(Shell::Zsh),
        "fish" => Ok(Shell::Fish),
        _ => Err("there are completions for bash, zsh and fish".into()),
    }
}

/// Prints what the shell is to read.
pub fn completions(args: &Completions) {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "longshore", &mut text);
    out::say(String::from_utf8_lossy(&text).trim_end());
}

/// Prints one page, or writes them all.
pub fn manual(args: &Manual) -> Result<()> {
    let mut whole = Cli::command();
    whole.build();
    if let Some(dir) = &args.dir {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        return write_pages(&whole, "longshore", dir);
    }
    let (mut command, mut name) = (&whole, "longshore".to_string());
    for word in &args.command {
        let known = command.find_subcommand(word).filter(|one| !one.is_hide_set());
        command = known.ok_or_else(|| anyhow!("there is no command {word} of {name}; `{name} --help` lists them"))?;
        name = format!("{name} {word}");
    }
    out::say(page(command, &name.replace(' ', "-"))?.trim_end());
    Ok(())
}

fn write_pages(command: &Command, name: &str, dir: &Path) -> Result<()> {
    let file = dir.join(format!("{name}.1"));
    fs::write(&file, page(command, name)?).with_context(|| format!("cannot write {}", file.display()))?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        write_pages(sub, &format!("{name}-{}", sub.get_name()), dir)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> Result<String> {
    let mut text = Vec::new();
    let named = command.clone().display_name(name.to_string());
    let source = concat!("longshore ", env!("CARGO_PKG_VERSION"));
    Man::new(named).title(name.to_uppercase()).source(source).manual("Longshore").render(&mut text)?;
    match String::from_utf8(text) {
        Ok(text) => Ok(text),
        Err(_) => bail!("the page of {name} is no text"),
    }
}

/// What kubectl calls a program of this name: `kubectl longshore`.
const PLUGIN: &str = "kubectl-longshore";

/// What users call this program.
pub fn called(program: Option<&OsStr>) -> &'static str {
    let name = program.and_then(|program| Path::new(program).file_name());
    if name == Some(OsStr::new(PLUGIN)) { "kubectl longshore" } else { "longshore" }
}

/// A text of ours as it is right for who called us by another name.
pub fn as_called(text: &str, called: &str) -> String {
    let mut text = text.to_string();
    for before in ["`", "\n  ", "Usage: "] {
        text = text.replace(&format!("{before}longshore "), &format!("{before}{called} "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_calls_it_by_two_words() {
        assert_eq!(called(Some(OsStr::new("/usr/local/bin/kubectl-longshore"))), "kubectl longshore");
        assert_eq!(called(Some(OsStr::new("target/longshore"))), "longshore");
        assert_eq!(called(None), "longshore");
        let text = "Begin with `longshore up`; see /var/lib/longshore and local.csi.longshore up there";
        assert_eq!(
            as_called(text, "kubectl longshore"),
            "Begin with `kubectl longshore up`; see /var/lib/longshore and local.csi.longshore up there"
        );
    }

    #[test]
    fn every_command_has_a_page_and_a_hidden_one_has_none() {
        let dir = tempfile::tempdir().unwrap();
        manual(&Manual { command: Vec::new(), dir: Some(dir.path().into()) }).unwrap();
        let mut names: Vec<String> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        for name in ["longshore.1", "longshore-up.1", "longshore-deploy.1", "longshore-deploy-rbac.1"] {
            assert!(names.iter().any(|one| one == name), "{name} is missing: {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("shim")), "{names:?}");
    }

    /// KillMode above all: with the usual one, the end of `up` would be that of all pods.
    #[test]
    #[allow(clippy::print_stderr, reason = "what is not looked at says why")]
    fn the_unit_is_one_that_systemd_takes_and_leaves_pods_alone() {
        use clap::Parser as _;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/systemd/longshore.service");
        let unit = fs::read_to_string(path).unwrap();
        assert!(unit.lines().any(|line| line == "KillMode=process") && unit.lines().any(|line| line == "Delegate=yes"));
        let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        assert!(Cli::try_parse_from(start.split_whitespace()).is_ok(), "{start}");
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("longshore.service");
        // Not every machine that tests has it installed.
        fs::write(&copy, unit.replace("/usr/bin/longshore", "/bin/true")).unwrap();
        match std::process::Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && !said.contains("longshore.service"), "{said}");
            }
            Err(error) => eprintln!("systemd was not asked about the unit: {error}"),
        }
    }
}
