//! Processes: started once under a name, until they are forgotten.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use control::host::{Failure, FailureKind, Process, ProcessState};

use crate::{Kernel, refused};

/// A process that was started.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub process: Process,
    pub state: ProcessState,
}

fn check_name(name: &str) -> Result<(), Failure> {
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 200 || name.starts_with('.') || !name.chars().all(fit) {
        return Err(refused(FailureKind::ProcessName, format!("{name:?} cannot name a process")));
    }
    Ok(())
}

/// Nobody keeps what a confidential process was to run.
fn same(known: &Process, wanted: &Process) -> bool {
    let bare = |process: &Process| match process.confidential {
        true => Process { command: Vec::new(), environment: BTreeMap::new(), ..process.clone() },
        false => process.clone(),
    };
    bare(known) == bare(wanted)
}

impl Kernel {
    pub(crate) fn start_process(&mut self, process: &Process) -> Result<(), Failure> {
        check_name(&process.name)?;
        let refuse = |why: &str| Err(refused(FailureKind::ProcessSpec, format!("the process {}: {why}", process.name)));
        if process.command.first().is_none_or(|program| program.is_empty()) {
            return refuse("it has no command");
        }
        if let Some(known) = self.processes.get(&process.name) {
            return if same(&known.process, process) { Ok(()) } else { refuse("another of that name was started") };
        }
        // Nobody tells this machine the time; it begins with every process anew.
        let seen =
            |mount: &control::host::ProcessMount| mount.of_machine || matches!(self.walk(&mount.source), Ok(Some(_)));
        let state = match process.mounts.iter().find(|mount| !seen(mount)) {
            None => match process.devices.iter().find(|device| !matches!(self.walk(&device.source), Ok(Some(_)))) {
                None => ProcessState::Running { since_millis: 0 },
                Some(device) => ProcessState::NotStarted(format!("{} does not exist", device.source)),
            },
            Some(mount) => ProcessState::NotStarted(format!("{} does not exist", mount.source)),
        };
        self.processes.insert(process.name.clone(), Known { process: process.clone(), state });
        Ok(())
    }

    pub(crate) fn stop_process(&mut self, name: &str) -> Result<(), Failure> {
        check_name(name)?;
        self.process_ends(name, 143);
        Ok(())
    }

    /// Every process that runs is well here.
    pub(crate) fn run_handler(&self, name: &str) -> Result<(), Failure> {
        check_name(name)?;
        let known = self.processes.get(name);
        match known.is_some_and(|known| matches!(known.state, ProcessState::Running { .. })) {
            true => Ok(()),
            false => Err(refused(FailureKind::Unwell, format!("process {name} is not running"))),
        }
    }

    pub(crate) fn forget_process(&mut self, name: &str) -> Result<(), Failure> {
        check_name(name)?;
        let known = self.processes.get(name);
        if known.is_some_and(|known| matches!(known.state, ProcessState::Running { .. })) {
            return Err(refused(FailureKind::Busy, format!("process {name} is busy: it is running")));
        }
        self.processes.remove(name);
        Ok(())
    }

    /// A process ends by itself.
    pub fn process_ends(&mut self, name: &str, code: i32) {
        if let Some(known) = self.processes.get_mut(name)
            && let ProcessState::Running { since_millis } = known.state
        {
            known.state = ProcessState::Exited { code, since_millis, at_millis: since_millis, out_of_memory: false };
        }
    }
}
