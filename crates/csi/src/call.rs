//! The methods, requests and responses of the table, as enums.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::capabilities::by_service;
use crate::{DriverCapability, Field, Fields, for_each_method, registration, v1};

/// A gRPC service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is the service of the same name")]
pub enum Service {
    Identity,
    Controller,
    GroupController,
    Node,
    /// `pluginregistration.Registration`, by which kubelet asks a plugin who it is.
    Registration,
    /// `csiregistration.CSIRegistration`, by which a node learns more about a CSI driver.
    CSIRegistration,
}

/// The full name of a service, as a literal that `concat!` takes.
macro_rules! service_name {
    (Identity) => {
        "csi.v1.Identity"
    };
    (Controller) => {
        "csi.v1.Controller"
    };
    (GroupController) => {
        "csi.v1.GroupController"
    };
    (Node) => {
        "csi.v1.Node"
    };
    (Registration) => {
        "pluginregistration.Registration"
    };
    (CSIRegistration) => {
        "csiregistration.CSIRegistration"
    };
}

macro_rules! first_or {
    ($default:expr;) => {
        $default
    };
    ($default:expr; $given:expr) => {
        $given
    };
}

/// Adds a reference to a map of secrets, and nothing for any other kind of field.
macro_rules! secrets_of {
    ($found:ident, $field:expr, secrets) => {
        $found = Some($field);
    };
    ($found:ident, $field:expr, $kind:ident) => {};
}

macro_rules! define {
    ($($service:ident.$name:ident($request:ty) -> $response:ty {
        capability: [$($from:ident($capability:ident))?],
        volume: [$($volume:ident)?],
        locks: [$($lock:ident($locked:ident)),*],
        request: [$($field:ident: $kind:ident),*],
        response: [$($answered:ident: $answered_kind:ident),*],
    })*) => {
        /// A method of CSI or of plugin registration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the method of the same name")]
        pub enum Method { $($name),* }

        /// A request of any method.
        #[derive(Clone, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "each variant is the method of the same name")]
        pub enum Call { $($name($request)),* }

        /// A successful response of any method.
        #[derive(Clone, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant, reason = "each variant is the method of the same name")]
        pub enum Response { $($name($response)),* }

        impl Method {
            /// Every method that is known here.
            pub const ALL: &[Method] = &[$(Method::$name),*];

            /// The method's name, such as `CreateVolume`.
            pub const fn name(self) -> &'static str {
                match self { $(Method::$name => stringify!($name)),* }
            }

            /// The service the method belongs to.
            pub const fn service(self) -> Service {
                match self { $(Method::$name => Service::$service),* }
            }

            /// The path of an HTTP/2 request for the method, such as `/csi.v1.Controller/CreateVolume`.
            pub const fn path(self) -> &'static str {
                match self { $(Method::$name => concat!("/", service_name!($service), "/", stringify!($name))),* }
            }

            /// The capability that a driver reports if it serves the method. `None` for methods that every driver must
            /// serve, and for those of the node service that have no capability.
            pub const fn capability(self) -> Option<DriverCapability> {
                match self {
                    $(Method::$name => first_or!(
                        None; $(Some(DriverCapability::$from(by_service::$from::$capability)))?
                    ),)*
                }
            }

            /// Whether the method changes something. Methods that do not only read, and take no locks.
            pub const fn changes_state(self) -> bool {
                match self { $(Method::$name => !matches!(&[$(stringify!($lock)),*] as &[&str], [])),* }
            }
        }

        impl Call {
            /// The method of the request.
            pub const fn method(&self) -> Method {
                match self { $(Call::$name(_) => Method::$name),* }
            }

            /// The volume the call is about: its id, or the name it is to get. Empty if there is none. It may be logged.
            #[allow(unused_variables, reason = "some requests name no volume")]
            pub fn volume(&self) -> &str {
                match self { $(Call::$name(request) => first_or!(""; $(request.$volume.as_str())?)),* }
            }

            /// The request's map of secrets, to fill it in.
            #[allow(unused_variables, unused_mut, unused_assignments, reason = "some requests have no secrets")]
            pub fn secrets_mut(&mut self) -> Option<&mut BTreeMap<String, String>> {
                let mut found = None;
                match self { $(Call::$name(request) => { $(secrets_of!(found, &mut request.$field, $kind);)* })* }
                found
            }
        }

        impl Response {
            /// The method that was answered.
            pub const fn method(&self) -> Method {
                match self { $(Response::$name(_) => Method::$name),* }
            }
        }

        impl Fields for Call {
            #[allow(unused_variables, reason = "some requests have no field with a rule")]
            fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'static str, Field<'a>)) {
                match self {
                    $(Call::$name(request) => {
                        $(crate::fields::kind::$kind(stringify!($field), &request.$field, visitor);)*
                    })*
                }
            }
        }

        impl Fields for Response {
            #[allow(unused_variables, reason = "some responses have no field with a rule")]
            fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'static str, Field<'a>)) {
                match self {
                    $(Response::$name(response) => {
                        $(crate::fields::kind::$answered_kind(stringify!($answered), &response.$answered, visitor);)*
                    })*
                }
            }
        }
    };
}
for_each_method!(define);

impl Method {
    /// The methods of CSI itself: all but those of plugin registration, which have a socket of their own.
    pub const CSI: &[Method] = {
        let mut end = 0;
        while end < Method::ALL.len() && !Method::ALL[end].is_registration() {
            end += 1;
        }
        let (csi, registration) = Method::ALL.split_at(end);
        let mut rest = 0;
        while rest < registration.len() {
            assert!(registration[rest].is_registration(), "the table lists plugin registration last");
            rest += 1;
        }
        csi
    };

    const fn is_registration(self) -> bool {
        matches!(self.service(), Service::Registration | Service::CSIRegistration)
    }
}

impl Call {
    /// The request's map of secrets.
    pub fn secrets(&self) -> Option<&BTreeMap<String, String>> {
        self.find(|field| if let Field::Secrets(map) = field { Some(map) } else { None })
    }

    /// The request's volume context. It may hold service account tokens although CSI does not call it secret.
    pub fn volume_context(&self) -> Option<&BTreeMap<String, String>> {
        self.find(|field| if let Field::Context(map) = field { Some(map) } else { None })
    }

    /// The node that the request names, or nothing. It may be logged.
    pub fn node(&self) -> &str {
        let node = |field| match field {
            Field::NodeId(id) | Field::OptionalNodeId(id) => Some(id),
            _ => None,
        };
        self.find(node).unwrap_or_default()
    }

    /// The paths on the node that the request names, without empty ones.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.visit(&mut |_, field| match field {
            Field::Path(path) | Field::OptionalPath(path) if !path.is_empty() => paths.push(path),
            _ => {}
        });
        paths
    }

    fn find<'a, T>(&'a self, wanted: impl Fn(Field<'a>) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.visit(&mut |_, field| found = found.take().or(wanted(field)));
        found
    }
}

/// Prints method and volume only: requests carry secrets, and contexts may.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.method().name(), self.volume())
    }
}

/// Prints the method only, for the same reason.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered", self.method().name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_knows_its_service_path_and_capability() {
        assert_eq!(Method::CreateVolume.path(), "/csi.v1.Controller/CreateVolume");
        assert_eq!(Method::GetCSIDriverInfo.path(), "/csiregistration.CSIRegistration/GetCSIDriverInfo");
        assert_eq!(Method::ALL.len() - Method::CSI.len(), 3);
        assert_eq!(Method::NodePublishVolume.capability(), None);
        let stage = by_service::Node::StageUnstageVolume;
        assert_eq!(Method::NodeStageVolume.capability(), Some(DriverCapability::Node(stage)));
        assert!(Method::NodePublishVolume.changes_state() && !Method::NodeGetVolumeStats.changes_state());
    }

    // A method of a service with capabilities needs one of that service, or the service itself.
    #[test]
    fn capabilities_belong_to_the_service_of_their_method() {
        for method in Method::ALL {
            let fits = match (method.service(), method.capability()) {
                (_, None) => !matches!(method.service(), Service::Controller | Service::GroupController),
                (Service::Controller | Service::GroupController, Some(DriverCapability::Plugin(_))) => true,
                (Service::Controller, Some(DriverCapability::Controller(_))) => true,
                (Service::GroupController, Some(DriverCapability::Group(_))) => true,
                (Service::Node, Some(DriverCapability::Node(_))) => true,
                _ => false,
            };
            assert!(fits, "{method:?}");
        }
    }

    #[test]
    fn a_call_finds_its_fields() {
        let mut call = Call::NodePublishVolume(v1::NodePublishVolumeRequest {
            volume_id: "v".into(),
            target_path: "/t".into(),
            staging_target_path: "/s".into(),
            ..Default::default()
        });
        assert_eq!((call.volume(), call.node(), call.paths()), ("v", "", alloc::vec!["/s", "/t"]));
        call.secrets_mut().unwrap().insert("password".into(), "hunter2".into());
        assert_eq!(call.secrets().unwrap()["password"], "hunter2");
        assert_eq!(alloc::format!("{call:?}"), "NodePublishVolume(v)");
        let request = v1::ControllerUnpublishVolumeRequest { node_id: "n".into(), ..Default::default() };
        assert_eq!(Call::ControllerUnpublishVolume(request).node(), "n");
    }
}
