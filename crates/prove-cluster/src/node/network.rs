//! The network of a node's pods: a bridge on this machine, and on it the address at which pods look for the API server.

use crate::Error;
use crate::node::command::run;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A bridge with addresses that no other on this machine has. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Network {
    name: String,
    number: u8,
    door: Option<Door>,
}

/// What listens at the service's address.
#[derive(Debug)]
struct Door {
    at: (Ipv4Addr, u16),
    closed: Arc<AtomicBool>,
}

impl Network {
    /// Makes the bridge. Whoever makes the same at the same time fails at the address and takes the next number.
    pub(crate) fn make(name: &str) -> Result<Network, Error> {
        run("ip", &["link", "add", name, "type", "bridge"])?;
        let mut network = Network { name: name.to_string(), number: 0, door: None };
        run("ip", &["link", "set", name, "up"])?;
        let taken = run("ip", &["-4", "-oneline", "address"])?;
        let start = std::process::id() % 200;
        let free = (0..200).map(|step| 1 + ((start + step) % 200) as u8).find(|number| {
            let prefix = format!("inet 10.88.{number}.");
            !taken.contains(&prefix)
        });
        network.number = free.ok_or_else(|| Error::Late {
            what: "a free network for pods".to_string(),
            last: "all 200 are taken; take bridges away that nobody needs".to_string(),
        })?;
        run("ip", &["address", "add", &format!("{}/24", network.gateway()), "dev", name])?;
        run("ip", &["address", "add", &format!("{}/32", network.service()), "dev", name])?;
        Ok(network)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// This machine as pods see it.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 88, self.number, 1)
    }

    /// The addresses of pods.
    pub(crate) fn pods(&self) -> String {
        format!("10.88.{}.0/24", self.number)
    }

    /// The addresses of services; the first is the API server's.
    pub(crate) fn services(&self) -> String {
        format!("10.89.{}.0/24", self.number)
    }

    fn service(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 89, self.number, 1)
    }

    /// Lets pods reach the API server, which listens on this machine's loopback alone: what kube-proxy would do.
    pub(crate) fn open(&mut self, port: u16) -> Result<(), Error> {
        let at = (self.service(), 443);
        let listener = TcpListener::bind(at).map_err(Error::io(format!("listen at {}:443", at.0)))?;
        let closed = Arc::new(AtomicBool::new(false));
        let shut = closed.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                if shut.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(inside) = connection else { continue };
                thread::spawn(move || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(|out| join(inside, out)));
            }
        });
        self.door = Some(Door { at, closed });
        Ok(())
    }

    /// What the plugins of Debian's `containernetworking-plugins` are told.
    pub(crate) fn configuration(&self, data: &str) -> String {
        format!(
            r#"{{"cniVersion": "0.4.0", "name": "{name}", "plugins": [{{"type": "bridge", "bridge": "{name}",
  "isGateway": true, "ipam": {{"type": "host-local", "dataDir": "{data}", "ranges": [[{{"subnet": "{pods}"}}]],
  "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}
"#,
            name = self.name,
            pods = self.pods(),
        )
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(door) = &self.door {
            door.closed.store(true, Ordering::Relaxed);
            let _ = TcpStream::connect(door.at);
        }
        let _ = run("ip", &["link", "delete", &self.name]);
    }
}

/// Passes on what each says until both have ended.
fn join(one: TcpStream, other: TcpStream) -> io::Result<()> {
    let (mut from_one, mut to_one) = (one.try_clone()?, one);
    let (mut from_other, mut to_other) = (other.try_clone()?, other);
    let back = thread::spawn(move || {
        let _ = io::copy(&mut from_other, &mut to_one);
        let _ = to_one.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut from_one, &mut to_other);
    let _ = to_other.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}
