//! Ports on loopback that nobody listens on.

use crate::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which the kernel gives ports to outgoing connections, so that none is taken between the
/// moment it is found free and the moment a program listens on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port on 127.0.0.1 that is free now. The same process gets a different one at every call, and two processes
/// start looking at different places.
pub fn free_port() -> Result<u16, Error> {
    let start = (std::process::id().wrapping_mul(97) % u32::from(COUNT)) as u16;
    let mut refused = None;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (start + step) % COUNT;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => refused = Some(error),
        }
    }
    let source = refused.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(Error::Io { doing: "find a free port on 127.0.0.1".to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_port_is_given_twice_and_they_can_be_listened_on() {
        let ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
        // Other programs look for ports too and may hold one for a moment.
        let held = ports.iter().filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).ok());
        let held: Vec<TcpListener> = held.collect();
        assert!(held.len() >= 40, "of 50 ports only {} can be listened on", held.len());
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let port = free_port().unwrap();
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let others: Vec<u16> = (0..20).map(|_| free_port().unwrap()).collect();
        assert!(!others.contains(&port));
    }
}
