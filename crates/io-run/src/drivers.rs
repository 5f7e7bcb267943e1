//! The drivers that a process calls: where each is, and one careful client for each socket, whoever calls it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use control::Endpoint;
use csi::Method;
use io_csi::{CsiClient, Driver, Observation, Observe};

use crate::{CallLabels, InTreePlugin, Metrics};

/// The drivers of a process, by socket. All controllers of the process share the locks of a driver, so a second call
/// for a volume waits here instead of being answered with ABORTED there.
#[derive(Default)]
pub struct Drivers {
    metrics: Arc<Metrics>,
    calls: Arc<CallCounts>,
    migrated: Arc<OnceLock<IsMigrated>>,
    known: Mutex<BTreeMap<String, Arc<DriverLine>>>,
    sockets: Mutex<BTreeMap<String, String>>,
    plugins: Mutex<BTreeMap<String, Arc<dyn InTreePlugin>>>,
}

/// Whether a driver has this volume, by its handle there, in the place of an in-tree plugin.
type IsMigrated = Box<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// The way to one driver.
pub struct DriverLine {
    /// Sends what it is told to, for questions that need no care: probes, names.
    pub client: Arc<CsiClient>,
    /// Keeps the rules of CSI.
    pub driver: Driver,
    name: Arc<OnceLock<String>>,
}

/// How many CSI calls were made, by method.
#[derive(Default)]
pub struct CallCounts(Mutex<BTreeMap<Method, u64>>);

impl Drivers {
    /// Where calls are counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The driver at a socket, whether it is there or not.
    pub fn at(&self, socket: &str) -> Arc<DriverLine> {
        let mut known = self.lock();
        if let Some(line) = known.get(socket) {
            return line.clone();
        }
        let name = Arc::<OnceLock<String>>::default();
        let counting = Counting {
            metrics: self.metrics.clone(),
            calls: self.calls.clone(),
            migrated: self.migrated.clone(),
            driver: Arc::clone(&name),
        };
        let client = Arc::new(CsiClient::new().observed_by(Arc::new(counting)));
        let line = Arc::new(DriverLine { driver: Driver::new(client.clone(), socket), client, name });
        known.insert(socket.to_string(), line.clone());
        line
    }

    /// How metrics tell the volumes that a driver has in the place of an in-tree plugin; said once, before that no
    /// volume counts as one.
    pub fn tell_migrated(&self, is_migrated: impl Fn(&str, &str) -> bool + Send + Sync + 'static) {
        let _ = self.migrated.set(Box::new(is_migrated));
    }

    /// The driver of this name is at this socket: calls by name go there from now on, and metrics use the name.
    pub fn named(&self, name: &str, socket: &str) -> Arc<DriverLine> {
        let line = self.at(socket);
        let _ = line.name.set(name.to_string());
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), socket.to_string());
        line
    }

    /// Whom a call goes to; `None` for the name of a driver that nobody has met.
    pub fn to(&self, endpoint: &Endpoint) -> Option<Arc<DriverLine>> {
        match endpoint {
            Endpoint::Socket(path) => Some(self.at(path)),
            Endpoint::Driver(name) => {
                let socket = self.sockets.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()?;
                Some(self.at(&socket))
            }
        }
    }

    /// An in-tree plugin is at work in this process: what is asked by its name goes to no driver.
    pub fn in_tree(&self, name: &str, plugin: Arc<dyn InTreePlugin>) {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), plugin);
    }

    /// The in-tree plugin of a name.
    pub fn plugin(&self, endpoint: &Endpoint) -> Option<(String, Arc<dyn InTreePlugin>)> {
        let Endpoint::Driver(name) = endpoint else { return None };
        let plugin = self.plugins.lock().unwrap_or_else(PoisonError::into_inner).get(name.as_str()).cloned()?;
        Some((name.to_string(), plugin))
    }

    /// Forgets the driver at a socket, once nobody calls it any more. Calls by its name have nowhere to go until it is
    /// met again: its old socket may be another's by then.
    pub fn forget(&self, socket: &str) {
        self.lock().remove(socket);
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, met| met != socket);
    }

    /// The calls made so far.
    pub fn calls(&self) -> &CallCounts {
        &self.calls
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DriverLine>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DriverLine {
    /// The driver's name, once it is known.
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }
}

impl CallCounts {
    /// Every call made so far, by method.
    pub fn all(&self) -> Vec<(Method, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(method, count)| (*method, *count)).collect()
    }
}

/// Counts calls to one driver.
struct Counting {
    metrics: Arc<Metrics>,
    calls: Arc<CallCounts>,
    migrated: Arc<OnceLock<IsMigrated>>,
    driver: Arc<OnceLock<String>>,
}

impl Observe for Counting {
    fn observed(&self, call: &Observation<'_>) {
        *self.calls.0.lock().unwrap_or_else(PoisonError::into_inner).entry(call.method).or_default() += 1;
        let labels = CallLabels {
            driver_name: self.driver.get().cloned().unwrap_or_else(|| "unknown-driver".into()),
            method_name: call.method.path(),
            grpc_status_code: if call.code == csi::Code::Ok { "OK".into() } else { format!("{:?}", call.code) },
        };
        let migrated = self.migrated.get().is_some_and(|is_migrated| is_migrated(&labels.driver_name, call.volume));
        self.metrics.called(call.method, &labels, migrated, call.took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_by_name_go_where_the_driver_was_last_met() {
        let drivers = Drivers::default();
        let named = Endpoint::Driver("d".into());
        assert!(drivers.to(&named).is_none(), "nobody has met it");
        drivers.named("d", "/old.sock");
        let line = drivers.named("d", "/new.sock");
        assert!(Arc::ptr_eq(&drivers.to(&named).unwrap(), &line));
        assert!(Arc::ptr_eq(&drivers.to(&Endpoint::Socket("/new.sock".into())).unwrap(), &line));
        assert!(!Arc::ptr_eq(&drivers.at("/old.sock"), &line));
        assert_eq!(line.name(), Some("d"));
    }

    #[test]
    fn a_driver_that_was_forgotten_is_not_called_at_its_old_socket() {
        let drivers = Drivers::default();
        let named = Endpoint::Driver("d".into());
        drivers.named("d", "/old.sock");
        drivers.forget("/old.sock");
        assert!(drivers.to(&named).is_none());
        let line = drivers.named("d", "/new.sock");
        drivers.forget("/old.sock");
        assert!(Arc::ptr_eq(&drivers.to(&named).unwrap(), &line), "forgetting the old place late changes nothing");
    }
}
