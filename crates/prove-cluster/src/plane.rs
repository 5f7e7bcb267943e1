//! etcd, kube-apiserver and, on request, kube-controller-manager and kube-scheduler as one value.

use crate::process::arguments;
use crate::setup::{User, make_directory, write_kubeconfig, write_signing_key, write_tokens};
use crate::{Error, PeerProcess, Scratch, free_port, peer};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ADMIN: &str = "admin";
const ATTEMPTS: usize = 3;

/// What `longshore controllers` takes from kube-controller-manager, as an operator says it there
/// (docs/controllers/cluster.md): for [`Options::controllers`].
pub const WITHOUT_VOLUMES: &str = "*,-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,\
    -persistentvolume-expander-controller,-persistentvolumeclaim-protection-controller,\
    -persistentvolume-protection-controller,-ephemeral-volume-controller,-volumeattributesclass-protection-controller";

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Start kube-controller-manager too.
    pub controller_manager: bool,
    /// Start kube-scheduler too.
    pub scheduler: bool,
    /// Users beside the administrator, with their groups; they may do what RBAC objects let them.
    pub users: Vec<(String, Vec<String>)>,
    /// The controllers to run, as kube-controller-manager's `--controllers` takes them.
    pub controllers: String,
    /// More flags for kube-apiserver.
    pub apiserver_flags: Vec<String>,
    /// More flags for kube-controller-manager.
    pub controller_manager_flags: Vec<String>,
    /// More flags for kube-scheduler.
    pub scheduler_flags: Vec<String>,
    /// etcd waits for the disk before it answers, as it does in a cluster; for measurements.
    pub durable: bool,
    /// How long the server may take until it is ready.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            controller_manager: false,
            scheduler: false,
            users: Vec::new(),
            controllers: "*".to_string(),
            apiserver_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            scheduler_flags: Vec::new(),
            durable: false,
            patience: Duration::from_secs(120),
        }
    }
}

/// A running control plane. Dropping it ends every process and removes the directory.
#[derive(Debug)]
pub struct ControlPlane {
    // in the order they are dropped: the processes before the directory they write to
    processes: Vec<PeerProcess>,
    scratch: Scratch,
    server: String,
    kubeconfigs: BTreeMap<String, PathBuf>,
}

impl ControlPlane {
    /// Starts one and waits until kube-apiserver says that it is ready.
    pub fn start(options: Options) -> Result<ControlPlane, Error> {
        let mut attempt = 1;
        loop {
            match ControlPlane::start_once(&options) {
                // Somebody took a port after it was found free.
                Err(Error::Ended { log, .. }) if attempt < ATTEMPTS && log.contains("address already in use") => {
                    attempt += 1;
                }
                Ok(plane) => return Ok(plane),
                Err(error) => return Err(error),
            }
        }
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfigs[ADMIN]
    }

    /// The kubeconfig of a user named in the options.
    pub fn kubeconfig_of(&self, user: &str) -> Option<&Path> {
        self.kubeconfigs.get(user).map(PathBuf::as_path)
    }

    /// The server's address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The directory of this control plane, for files that shall go with it.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// The processes, in the order they were started.
    pub fn processes(&self) -> &[PeerProcess] {
        &self.processes
    }

    /// Starts a program that belongs to this control plane and ends with it: a sidecar, a driver.
    pub fn run(&mut self, name: &str, program: &Path, args: &[&str]) -> Result<&mut PeerProcess, Error> {
        let process = PeerProcess::start(name, program, args, self.scratch.path())?;
        self.processes.push(process);
        let last = self.processes.len() - 1;
        Ok(&mut self.processes[last])
    }

    /// Do all programs run still? If not, the error has the end of the log.
    pub fn check(&mut self) -> Result<(), Error> {
        self.processes.iter_mut().try_for_each(PeerProcess::check)
    }

    /// What kubectl prints, as the administrator.
    pub fn kubectl(&self, args: &[&str]) -> Result<String, Error> {
        self.kubectl_with(self.kubeconfig(), args, "")
    }

    /// What kubectl prints as a user named in the options.
    pub fn kubectl_as(&self, user: &str, args: &[&str]) -> Result<String, Error> {
        let unknown = || Error::Command {
            command: format!("kubectl as {user}"),
            stderr: "no such user; name it in Options::users".to_string(),
        };
        self.kubectl_with(self.kubeconfig_of(user).ok_or_else(unknown)?, args, "")
    }

    /// Applies the objects of a YAML or JSON text, as the administrator.
    pub fn apply(&self, objects: &str) -> Result<String, Error> {
        self.kubectl_with(self.kubeconfig(), &["apply", "--filename=-"], objects)
    }

    fn kubectl_with(&self, kubeconfig: &Path, args: &[&str], input: &str) -> Result<String, Error> {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--cache-dir")
            .arg(self.scratch.path().join("kubectl"))
            .args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let missing = "run kubectl; build it with: make kubectl";
        let mut child = command.spawn().map_err(Error::io(missing))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A kubectl that reads nothing closes its end; what it then says is in its status.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(Error::io("wait for kubectl"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let command = format!("kubectl {}", args.join(" "));
        Err(Error::Command { command, stderr: String::from_utf8_lossy(&output.stderr).into_owned() })
    }

    fn start_once(options: &Options) -> Result<ControlPlane, Error> {
        let scratch = Scratch::new("cluster")?;
        let directory = scratch.path().to_path_buf();
        let port = free_port()?;
        let server = format!("https://127.0.0.1:{port}");
        make_directory(&directory.join("certs"))?;
        let users = users(options)?;
        let mut kubeconfigs = BTreeMap::new();
        for user in &users {
            kubeconfigs.insert(user.name.clone(), write_kubeconfig(&directory, &server, user)?);
        }
        let files = Files { key: write_signing_key(&directory)?, tokens: write_tokens(&directory, &users)? };
        let mut plane = ControlPlane { processes: Vec::new(), scratch, server, kubeconfigs };

        let until = Instant::now() + options.patience;
        let (client, between) = (free_port()?, free_port()?);
        plane.add("etcd", &etcd_arguments(client, between, options.durable))?;
        plane.await_port(client, until)?;
        plane.add("kube-apiserver", &apiserver_arguments(port, client, &files, options))?;
        plane.await_port(port, until)?;
        plane.await_ready(until)?;
        if options.controller_manager {
            let flags = plane.client_arguments(&options.controller_manager_flags);
            let own = [
                format!("--controllers={}", options.controllers),
                format!("--service-account-private-key-file={}", files.key.display()),
            ];
            plane.add("kube-controller-manager", &[flags, own.map(OsString::from).to_vec()].concat())?;
        }
        if options.scheduler {
            let flags = plane.client_arguments(&options.scheduler_flags);
            plane.add("kube-scheduler", &flags)?;
        }
        Ok(plane)
    }

    fn add(&mut self, name: &str, args: &[OsString]) -> Result<(), Error> {
        let process = PeerProcess::start(name, &peer(name)?, args, self.scratch.path())?;
        self.processes.push(process);
        Ok(())
    }

    fn client_arguments(&self, more: &[String]) -> Vec<OsString> {
        let mut flags = arguments(&["--leader-elect=false", "--secure-port=0"]);
        flags.push(format!("--kubeconfig={}", self.kubeconfig().display()).into());
        flags.extend(more.iter().map(OsString::from));
        flags
    }

    fn await_port(&mut self, port: u16, until: Instant) -> Result<(), Error> {
        self.await_that(until, |_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|error| error.to_string()))
    }

    fn await_ready(&mut self, until: Instant) -> Result<(), Error> {
        self.await_that(until, |plane| plane.kubectl(&["get", "--raw=/readyz"]).map_err(|error| error.to_string()))
    }

    /// Looks until it answers, as long as the programs run; blames the one that was started last.
    fn await_that<T>(&mut self, until: Instant, look: impl Fn(&Self) -> Result<T, String>) -> Result<(), Error> {
        loop {
            let Err(answer) = look(self) else { return Ok(()) };
            self.check()?;
            if Instant::now() > until {
                let last = self.processes.last();
                let what = last.map_or("a program", PeerProcess::name).to_string();
                let log = last.map(PeerProcess::log_tail).unwrap_or_default();
                return Err(Error::Late { what, last: format!("{answer}\n{log}") });
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // All at once and those who write before those who store, so that none spends its last moments retrying.
        self.processes.iter_mut().rev().for_each(|process| process.signal_group("KILL"));
    }
}

/// Looks every 50 ms until the answer is a value, and says what was waited for when it is none within `patience`.
pub fn eventually<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Result<T, String>) -> Result<T, Error> {
    let until = Instant::now() + patience;
    loop {
        match look() {
            Ok(value) => return Ok(value),
            Err(last) if Instant::now() > until => return Err(Error::Late { what: what.to_string(), last }),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

struct Files {
    key: PathBuf,
    tokens: PathBuf,
}

fn users(options: &Options) -> Result<Vec<User>, Error> {
    let mut users = vec![User::new(ADMIN, &["system:masters".to_string()])?];
    for (name, groups) in &options.users {
        users.push(User::new(name, groups)?);
    }
    Ok(users)
}

fn etcd_arguments(client: u16, between: u16, durable: bool) -> Vec<OsString> {
    let mut flags = arguments(&[
        "--data-dir=etcd",
        &format!("--listen-client-urls=http://127.0.0.1:{client}"),
        &format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        &format!("--listen-peer-urls=http://127.0.0.1:{between}"),
        &format!("--initial-advertise-peer-urls=http://127.0.0.1:{between}"),
        &format!("--initial-cluster=default=http://127.0.0.1:{between}"),
        "--log-level=warn",
    ]);
    if !durable {
        // The data lives no longer than the test: nothing is gained by waiting for the disk.
        flags.push("--unsafe-no-fsync".into());
    }
    flags
}

fn apiserver_arguments(port: u16, etcd: u16, files: &Files, options: &Options) -> Vec<OsString> {
    let key = files.key.display();
    let mut flags = arguments(&[
        &format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        // A loopback address cannot be an endpoint, and nobody reaches this server through its service.
        "--endpoint-reconciler-type=none",
        &format!("--secure-port={port}"),
        "--cert-dir=certs",
        &format!("--service-account-key-file={key}"),
        &format!("--service-account-signing-key-file={key}"),
        "--service-account-issuer=https://longshore.test",
        "--service-cluster-ip-range=10.0.0.0/24",
        &format!("--token-auth-file={}", files.tokens.display()),
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
    ]);
    if !options.controller_manager {
        // Service accounts are made by the controller manager: without it no pod would be admitted.
        flags.push("--disable-admission-plugins=ServiceAccount".into());
    }
    flags.extend(options.apiserver_flags.iter().map(OsString::from));
    flags
}
