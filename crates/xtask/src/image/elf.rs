//! What the head of a program tells: whether it can be the one in an image.

use std::io;
use std::path::Path;

use super::Platform;

/// A program of 64 bits, the lowest byte first.
const ELF64: &[u8] = b"\x7fELF\x02\x01";
/// The segment that names an interpreter: it loads the libraries of a program that is not static.
const INTERPRETER: usize = 3;
/// Machines by number, and what a platform calls them.
const MACHINES: [(usize, &str); 2] = [(62, "amd64"), (183, "arm64")];

/// A program for another machine does not start on this platform, and one that asks for an interpreter does not on an
/// empty base.
pub fn check(file: &Path, platform: &Platform, binary: &[u8]) -> io::Result<()> {
    let wrong = |what: &str| Err(io::Error::other(format!("{} {what}", file.display())));
    let number = |at: usize, size: usize| {
        let bytes = binary.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte)) as usize)
    };
    let heads = || Some((number(18, 2)?, number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let Some((machine, start, size, count)) = binary.starts_with(ELF64).then(heads).flatten() else {
        return wrong("is no program for a 64-bit Linux");
    };
    let known = MACHINES.iter().find(|(number, _)| *number == machine).map(|(_, name)| *name);
    if known != Some(&platform.architecture) {
        let other = known.map_or_else(|| format!("machine {machine}"), |name| format!("linux/{name}"));
        let (os, architecture) = (&platform.os, &platform.architecture);
        return wrong(&format!("is a program for {other}; give one that was built for {os}/{architecture}"));
    }
    let asks = (0..count).any(|index| number(start + index * size, 4) == Some(INTERPRETER));
    if asks { wrong("is not static; build it with RUSTFLAGS='-C target-feature=+crt-static'") } else { Ok(()) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The head of a program for a machine, without anything in it, and with one segment of this kind.
    pub fn program(machine: u16, kind: u32) -> Vec<u8> {
        let mut bytes = ELF64.to_vec();
        bytes.resize(120, 0);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    fn refused(platform: &str, bytes: &[u8]) -> String {
        check(Path::new("x"), &Platform::read(platform).unwrap(), bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_program_that_needs_an_interpreter_is_refused() {
        let amd64 = Platform::read("linux/amd64").unwrap();
        assert!(check(Path::new("x"), &amd64, &program(62, 1)).is_ok());
        assert!(refused("linux/amd64", &program(62, 3)).contains("is not static"));
        assert!(refused("linux/amd64", b"#!/bin/sh\n").contains("is no program"));
        assert!(refused("linux/amd64", &program(62, 1)[..20]).contains("is no program"));
    }

    #[test]
    fn a_program_for_another_machine_is_refused() {
        let arm64 = Platform::read("linux/arm64").unwrap();
        assert!(check(Path::new("x"), &arm64, &program(183, 1)).is_ok());
        let said = refused("linux/arm64", &program(62, 1));
        assert_eq!(said, "x is a program for linux/amd64; give one that was built for linux/arm64");
        assert!(
            refused("linux/amd64", &program(183, 1)).contains("for linux/arm64; give one that was built for linux/amd")
        );
        assert!(refused("linux/amd64", &program(243, 1)).contains("for machine 243;"));
    }
}
