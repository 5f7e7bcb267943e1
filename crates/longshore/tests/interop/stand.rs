//! A driver on trial, in a directory of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prove_cluster::{PeerProcess, Scratch, eventually, peer};

const PATIENCE: Duration = Duration::from_secs(60);

/// A driver that runs, one process or two. Dropped, it is killed, and must have left nothing mounted or attached.
pub struct Stand {
    processes: Vec<PeerProcess>,
    pub scratch: Scratch,
    /// The node's socket, or the only one.
    pub socket: PathBuf,
    /// The controller's, if it is another.
    pub controller: Option<PathBuf>,
}

impl Stand {
    /// Ours, with these flags.
    pub fn ours(flags: &[&str]) -> Stand {
        let mut stand = Stand::empty();
        stand.process("csi", flags);
        stand
    }

    /// Ours in two processes: controller and node.
    pub fn split() -> Stand {
        let mut stand = Stand::empty();
        stand.process("csi", &["--node-only"]);
        stand.controller = Some(stand.process("controller", &["--controller-only"]));
        stand
    }

    /// The Go hostpath driver, with everything it offers.
    pub fn go() -> Stand {
        let mut stand = Stand::empty();
        std::fs::create_dir(stand.path("state")).unwrap();
        let line = stand.go_line();
        stand.run("hostpathplugin", &peer("hostpathplugin").unwrap(), &line[1..]);
        stand
    }

    /// The Go driver ends without a word and is started again; this happens while it is away.
    pub fn restart_go(&mut self, meanwhile: impl FnOnce(&Stand)) {
        self.processes.clear();
        meanwhile(self);
        let _ = std::fs::remove_file(&self.socket);
        let line = self.go_line();
        self.run("hostpathplugin", &peer("hostpathplugin").unwrap(), &line[1..]);
    }

    /// The command line of the Go driver, to start it again with.
    pub fn go_line(&self) -> Vec<String> {
        let program = peer("hostpathplugin").unwrap().display().to_string();
        let (socket, state) = (self.socket.display(), self.path("state").display().to_string());
        let flags = ["--nodeid=n1", "--enable-attach", "--enable-topology", "--node-expand-required"].map(String::from);
        let mut line = vec![program, format!("--endpoint=unix://{socket}"), format!("--statedir={state}")];
        line.extend(flags);
        line
    }

    /// The command line of ours, to start it again with.
    pub fn our_line(&self, name: &str, flags: &[&str]) -> Vec<String> {
        let (data, state) = (self.path("data").display().to_string(), self.path("state").display().to_string());
        let socket = format!("unix://{}", self.path(&format!("{name}.sock")).display());
        let mut line: Vec<String> = vec![env!("CARGO_BIN_EXE_longshore").into(), "driver".into()];
        for word in ["--data-dir", &data, "--state-dir", &state, "--endpoint", &socket, "--node-id", "n1"] {
            line.push(word.into());
        }
        line.push("--no-registration".into());
        line.extend(flags.iter().map(|flag| flag.to_string()));
        line
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The number of the first process.
    pub fn process_id(&self) -> u32 {
        self.processes[0].id()
    }

    fn empty() -> Stand {
        let scratch = Scratch::new("stand").unwrap();
        let socket = scratch.path().join("csi.sock");
        Stand { processes: Vec::new(), scratch, socket, controller: None }
    }

    fn process(&mut self, name: &str, flags: &[&str]) -> PathBuf {
        let line = self.our_line(name, flags);
        self.run(name, Path::new(&line[0]), &line[1..]);
        self.path(&format!("{name}.sock"))
    }

    fn run(&mut self, name: &str, program: &Path, arguments: &[String]) {
        let mut process = PeerProcess::start(name, program, arguments, self.scratch.path()).unwrap();
        let socket = if name == "controller" { self.path("controller.sock") } else { self.socket.clone() };
        eventually("the driver's socket", PATIENCE, || {
            process.check().map_err(|error| error.to_string())?;
            socket.exists().then_some(()).ok_or_else(|| "no socket yet".to_string())
        })
        .unwrap();
        self.processes.push(process);
    }

    /// What is still mounted or attached.
    pub fn leftovers(&self) -> Vec<String> {
        let here = self.scratch.path().to_str().unwrap();
        let mounts = io_host::mounts_beneath(here).unwrap().into_iter().map(|entry| entry.target);
        let loops = io_host::loops().unwrap().into_iter().filter(|entry| entry.backing_path.starts_with(here));
        mounts.chain(loops.map(|entry| entry.device)).collect()
    }
}

impl Stand {
    /// What is still mounted.
    pub fn mounts(&self) -> Vec<String> {
        self.leftovers().into_iter().filter(|left| !left.starts_with("/dev/loop")).collect()
    }

    /// Takes every mount off.
    pub fn unmount_all(&self) {
        for target in self.mounts().iter().rev() {
            let _ = std::process::Command::new("umount").arg(target).status();
        }
    }
}

impl Drop for Stand {
    /// After a failure, or a driver that leaves things: nothing of ours stays on the machine.
    fn drop(&mut self) {
        self.processes.clear();
        self.unmount_all();
        for device in self.leftovers().iter().filter(|left| left.starts_with("/dev/loop")) {
            let _ = std::process::Command::new("losetup").args(["-d", device]).status();
        }
    }
}
