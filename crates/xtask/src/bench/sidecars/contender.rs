//! Who is measured: the programs, how they are started, and what they use.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// What is done with all volumes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Provision,
    Attach,
    Detach,
    Resize,
    Delete,
}

impl Operation {
    /// In the order of a volume's life.
    pub const ALL: [Operation; 5] =
        [Operation::Provision, Operation::Attach, Operation::Detach, Operation::Resize, Operation::Delete];

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Provision => "provision",
            Operation::Attach => "attach",
            Operation::Detach => "detach",
            Operation::Resize => "resize",
            Operation::Delete => "delete",
        }
    }

    /// The operation of that name.
    pub fn named(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }

    fn role(self) -> &'static str {
        match self {
            Operation::Provision | Operation::Delete => "provisioner",
            Operation::Attach | Operation::Detach => "attacher",
            Operation::Resize => "resizer",
        }
    }
}

/// A program and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// The Go programs as they are installed.
    GoDefault,
    /// The Go programs with their limits lifted.
    GoLifted,
    /// Ours as it is installed: all roles in one process.
    Ours,
    /// Ours with one role a process.
    OursSingle,
    /// Ours without an intent before CreateVolume, as upstream.
    OursUpstream,
    /// Another build of ours, all roles in one process.
    OursOther,
}

impl Contender {
    /// In the order of the tables.
    pub const ALL: [Contender; 6] = [
        Contender::GoDefault,
        Contender::GoLifted,
        Contender::Ours,
        Contender::OursSingle,
        Contender::OursUpstream,
        Contender::OursOther,
    ];

    /// Its name in tables and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Contender::GoDefault => "Go, default",
            Contender::GoLifted => "Go, limits lifted",
            Contender::Ours => "ours, all in one",
            Contender::OursSingle => "ours, one role",
            Contender::OursUpstream => "ours, no intent",
            Contender::OursOther => "ours, other build",
        }
    }

    /// Whether it is the Go programs, whatever their flags.
    pub fn is_go(self) -> bool {
        matches!(self, Contender::GoDefault | Contender::GoLifted)
    }

    /// The user of the API it is, so that its requests can be told apart.
    pub fn user(self) -> &'static str {
        if self.is_go() { "go" } else { "ours" }
    }

    /// It takes part in this operation: the intent matters to the provisioner alone.
    pub fn can(self, operation: Operation) -> bool {
        match operation {
            Operation::Provision | Operation::Delete => true,
            Operation::Attach | Operation::Detach | Operation::Resize => self != Contender::OursUpstream,
        }
    }
}

/// Where the programs are.
#[derive(Clone)]
pub(crate) struct Programs {
    pub ours: PathBuf,
    pub other: PathBuf,
    pub provisioner: PathBuf,
    pub attacher: PathBuf,
    pub resizer: PathBuf,
}

impl Programs {
    /// The program and its flags that do an operation for a contender.
    pub fn line(&self, contender: Contender, operation: Operation) -> (PathBuf, Vec<String>) {
        let role = operation.role();
        match contender {
            Contender::GoDefault | Contender::GoLifted => {
                let (program, workers) = match role {
                    "resizer" => (&self.resizer, "--workers=100"),
                    "attacher" => (&self.attacher, "--worker-threads=100"),
                    _ => (&self.provisioner, "--worker-threads=100"),
                };
                let lifted = ["--kube-api-qps=10000".to_string(), "--kube-api-burst=20000".to_string()];
                let flags = lifted.into_iter().chain([workers.to_string()]);
                (program.clone(), if contender == Contender::GoLifted { flags.collect() } else { Vec::new() })
            }
            Contender::Ours => (self.ours.clone(), ours(ALL_ROLES)),
            Contender::OursOther => (self.other.clone(), ours(ALL_ROLES)),
            Contender::OursSingle => (self.ours.clone(), ours(role)),
            Contender::OursUpstream => {
                let mut flags = ours(role);
                flags.push("--provisioning-intent=memory".into());
                (self.ours.clone(), flags)
            }
        }
    }
}

const ALL_ROLES: &str = "provisioner,attacher,resizer";

fn ours(roles: &str) -> Vec<String> {
    vec!["sidecar".into(), format!("--roles={roles}")]
}

/// A program that runs. It is killed when it is dropped.
pub(crate) struct Running {
    process: Child,
    log: PathBuf,
    /// When it was started.
    pub began: SystemTime,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    /// Starts the program; what it prints goes into the log.
    pub fn start(program: &Path, flags: &[String], log: PathBuf) -> io::Result<Running> {
        let said = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(flags).env_remove("KUBECONFIG");
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let began = SystemTime::now();
        let process = command
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {}: {error}", program.display())))?;
        Ok(Running { process, log, began })
    }

    /// It runs still; the error says what it said last.
    pub fn check(&mut self) -> io::Result<()> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => Err(io::Error::other(format!("it ended by itself ({status}): {}", self.said()))),
        }
    }

    /// The end of what it wrote.
    pub fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end, and waits.
    pub fn stop(mut self) -> io::Result<()> {
        Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        let until = Instant::now() + Duration::from_secs(5);
        while self.process.try_wait()?.is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_of_the_go_programs_is_done_by_the_one_that_has_the_role() {
        let programs = Programs {
            ours: "ours".into(),
            other: "other".into(),
            provisioner: "p".into(),
            attacher: "a".into(),
            resizer: "r".into(),
        };
        let go = Operation::ALL.map(|operation| programs.line(Contender::GoLifted, operation));
        assert_eq!(go.each_ref().map(|(program, _)| program.to_str().unwrap()), ["p", "a", "a", "r", "p"]);
        let workers = go.each_ref().map(|(_, flags)| flags.last().map(String::as_str).unwrap());
        assert_eq!(workers[1..4], ["--worker-threads=100", "--worker-threads=100", "--workers=100"]);
        assert!(programs.line(Contender::GoDefault, Operation::Attach).1.is_empty());
    }

    #[test]
    fn without_an_intent_only_what_the_provisioner_does_is_measured() {
        for operation in Operation::ALL {
            let whoever = Contender::ALL.into_iter().filter(|who| *who != Contender::OursUpstream);
            assert!(whoever.into_iter().all(|who| who.can(operation)));
            assert_eq!(Contender::OursUpstream.can(operation), operation.role() == "provisioner");
        }
    }
}
