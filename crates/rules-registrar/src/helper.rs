//! The end of registration beside a driver: what the node-driver-registrar sidecar does, as far as it can be decided without
//! a socket in hand. Whoever runs it tells the facts and performs the steps.

use alloc::format;
use alloc::string::String;

use api::names;
use csi::registration::{CsiDriverInfo, CsiDriverOptions, PluginInfo, RegistrationStatus};

use crate::local::NodeInfo;

/// Nobody but the owner reaches the socket (N1).
pub const SOCKET_MODE: u32 = 0o600;

/// How a helper was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Helper {
    /// The driver's socket as the node sees it (`--kubelet-registration-path`).
    pub driver_seen_by_node: String,
    /// Where registration sockets go (`--plugin-registration-path`).
    pub directory: String,
    /// The driver wants to be told about pods (`--requires-publish-pod`).
    pub requires_publish_pod: bool,
    /// Only asked whether it could run (`--mode=kubelet-registration-probe`).
    pub probes: bool,
}

/// What is so, outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HelperFacts {
    /// The driver's name, once it answered GetPluginInfo; the error if it did not.
    pub driver: Option<Result<String, String>>,
    /// What is at the path of our socket.
    pub at_path: AtPath,
    /// What was announced with the socket we listen at, if we do.
    pub announced: Option<Announced>,
    /// What the driver's NodeGetInfo says by now, if it was asked.
    pub place: Option<NodeInfo>,
    /// What the node said.
    pub heard: Heard,
    /// We were told to end.
    pub ending: bool,
}

/// What the node was given to read with our socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Announced {
    /// What NodeGetInfo said then, if it was asked.
    pub place: Option<NodeInfo>,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AtPath {
    Nothing,
    Socket,
    Other,
    /// It could not be looked at; the text says why.
    Unreadable(String),
}

/// What the node said with NotifyRegistrationStatus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heard {
    #[default]
    Nothing,
    /// The driver is registered.
    Registered,
    /// It is not; the text is the node's.
    TurnedAway(String),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HelperStep {
    /// Ask the driver for its name.
    AskDriver,
    /// Stop listening, and remove our socket at this path.
    Remove(String),
    /// Listen at this path, with [`SOCKET_MODE`]; a socket that an earlier process left there makes way.
    Listen(String),
    /// Answer whoever asks. A node that restarts finds the socket by itself.
    Serve,
    /// End with this status; the text says why.
    End(u8, String),
}

/// The answer to a health check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Health {
    /// The HTTP status.
    pub status: u16,
    pub text: String,
}

impl Helper {
    /// What to do, given what is so.
    pub fn step(&self, facts: &HelperFacts) -> HelperStep {
        if self.driver_seen_by_node.is_empty() {
            return HelperStep::End(
                1,
                "--kubelet-registration-path is missing; name the driver's socket as the node sees it".into(),
            );
        }
        if self.probes {
            return HelperStep::End(0, "a helper could run here".into());
        }
        if let Heard::TurnedAway(why) = &facts.heard {
            return HelperStep::End(1, format!("the node did not register the driver: {why}"));
        }
        match &facts.driver {
            None if facts.ending => HelperStep::End(0, "told to end before the driver was known".into()),
            None => HelperStep::AskDriver,
            Some(Err(why)) => HelperStep::End(1, format!("the driver did not say its name: {why}")),
            Some(Ok(name)) if !names::is_driver_name(name) => {
                let rule = names::DRIVER_NAME_RULE;
                HelperStep::End(1, format!("the driver calls itself {name:?}; the name of a driver must {rule}"))
            }
            Some(Ok(name)) => self.keep_socket(&self.socket(name), facts),
        }
    }

    fn keep_socket(&self, path: &str, facts: &HelperFacts) -> HelperStep {
        match (&facts.announced, &facts.at_path) {
            // The node deregisters the driver when the socket goes.
            (Some(_), AtPath::Socket) if facts.ending => HelperStep::Remove(path.into()),
            (None | Some(_), AtPath::Nothing | AtPath::Socket | AtPath::Other | AtPath::Unreadable(_))
                if facts.ending =>
            {
                HelperStep::End(0, "told to end".into())
            }
            (Some(_) | None, AtPath::Other) => {
                HelperStep::End(1, format!("{path} is there and is no socket; remove it"))
            }
            (Some(_) | None, AtPath::Unreadable(why)) => {
                HelperStep::End(1, format!("{path} cannot be looked at: {why}"))
            }
            // Whoever listened there is gone, and left a socket or not.
            (None, AtPath::Socket | AtPath::Nothing) => HelperStep::Listen(path.into()),
            // Somebody cleared the directory under us: the node sees a socket that is made anew.
            (Some(_), AtPath::Nothing) => HelperStep::Listen(path.into()),
            // We have something new to announce.
            (Some(announced), AtPath::Socket) if is_outdated(announced, facts) => HelperStep::Remove(path.into()),
            (Some(_), AtPath::Socket) => HelperStep::Serve,
        }
    }

    /// The path of the registration socket (N1).
    pub fn socket(&self, driver: &str) -> String {
        format!("{}/{driver}-reg.sock", self.directory.trim_end_matches('/'))
    }

    /// The answer to GetInfo (N2).
    pub fn info(&self, driver: &str) -> PluginInfo {
        PluginInfo {
            r#type: "CSIPlugin".into(),
            name: driver.into(),
            endpoint: self.driver_seen_by_node.clone(),
            supported_versions: alloc::vec!["1.0.0".into()],
        }
    }

    /// The answer to GetCSIDriverInfo (S1-11).
    pub fn driver_info(&self) -> CsiDriverInfo {
        CsiDriverInfo {
            csi_endpoint: self.driver_seen_by_node.clone(),
            options: Some(CsiDriverOptions { requires_publish_pod: self.requires_publish_pod }),
        }
    }

    /// The answer to a health check (N6). `said` is the name that came over our own socket.
    pub fn health(&self, driver: &str, at_path: &AtPath, said: Option<&Result<String, String>>) -> Health {
        let path = self.socket(driver);
        let (status, text) = match (at_path, said) {
            (AtPath::Nothing, _) => (404, format!("{path} does not exist")),
            (AtPath::Other, _) => (500, format!("{path} is no socket")),
            (AtPath::Unreadable(why), _) => (500, format!("{path} cannot be looked at: {why}")),
            (AtPath::Socket, Some(Ok(name))) if name == driver => (200, "ok".into()),
            (AtPath::Socket, Some(Ok(name))) => (500, format!("{path} answers for {name:?}, not for {driver}")),
            (AtPath::Socket, Some(Err(why))) => (500, format!("{path} does not answer: {why}")),
            (AtPath::Socket, None) => (500, format!("{path} was not asked")),
        };
        Health { status, text }
    }
}

/// The driver came back as somebody else: the node must read NodeGetInfo again. One that came back the same is left alone,
/// because removing its socket would deregister it (reliability 64).
fn is_outdated(announced: &Announced, facts: &HelperFacts) -> bool {
    match (&announced.place, &facts.place) {
        (Some(then), Some(now)) => then != now,
        (None | Some(_), None) | (None, Some(_)) => false,
    }
}

impl Heard {
    /// What a NotifyRegistrationStatus says.
    pub fn of(status: &RegistrationStatus) -> Heard {
        match status.plugin_registered {
            true => Heard::Registered,
            false => Heard::TurnedAway(status.error.clone()),
        }
    }
}
