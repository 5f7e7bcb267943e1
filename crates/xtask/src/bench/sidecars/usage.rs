//! What a process uses, as the kernel counts it.

use std::fs;
use std::io;

/// Milliseconds of processor time a process has used so far, its own and the kernel's for it.
pub fn processor(process: u32) -> io::Result<f64> {
    const TICK: f64 = 10.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) * TICK)
}

/// Resident megabytes of a process.
pub fn memory(process: u32) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse::<f64>().ok());
    Ok(kilobytes.unwrap_or(f64::NAN) / 1024.0)
}

/// Milliseconds of processor time, by who used them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The program that is measured.
    pub program: f64,
    /// Of kube-apiserver, for this program.
    pub server: f64,
    /// Of etcd, for this program.
    pub store: f64,
}

impl Spent {
    /// What came on top of an earlier state, for each of so many volumes.
    pub fn since(self, earlier: Spent, volumes: usize) -> Spent {
        let each = |now: f64, before: f64| (now - before) / volumes as f64;
        Spent {
            program: each(self.program, earlier.program),
            server: each(self.server, earlier.server),
            store: each(self.store, earlier.store),
        }
    }

    /// What program, server and store spent.
    pub fn together(self) -> f64 {
        self.program + self.server + self.store
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_to_use_what_it_uses() {
        let process = std::process::id();
        let before = processor(process).unwrap();
        while processor(process).unwrap() < before + 20.0 {}
        assert!(memory(process).unwrap() > 0.5);
        assert!(processor(u32::MAX).is_err());
    }

    #[test]
    fn what_was_spent_is_told_a_volume() {
        let before = Spent { program: 0.0, server: 100.0, store: 50.0 };
        let after = Spent { program: 20.0, server: 300.0, store: 60.0 };
        let spent = after.since(before, 10);
        assert_eq!(spent, Spent { program: 2.0, server: 20.0, store: 1.0 });
        assert_eq!(spent.together(), 23.0);
    }
}
