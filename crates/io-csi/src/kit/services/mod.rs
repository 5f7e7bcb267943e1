//! The traits in which an author writes a driver, and the errors of each RPC. An RPC is one row here: its function, its
//! messages, and the errors that CSI names for it.

use std::future::Future;

use csi::{Capabilities, Code, Status};

/// Defines the error enum of an RPC and the one mapping from its variants to gRPC codes. CSI names some errors for all RPCs;
/// those in the table are the ones it names for this RPC.
macro_rules! rpc_error {
    ($method:ident, $error:ident { $($(#[$doc:meta])* $variant:ident => $code:ident),* $(,)? }) => {
        #[doc = concat!("Why `", stringify!($method), "` failed.")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $error {
            $($(#[$doc])* $variant(String),)*
            /// Something in the request is missing, malformed or not supported. Final.
            Invalid(String),
            /// The caller may not do this. Final.
            Denied(String),
            /// Another call is at work on the same thing. The caller retries.
            Busy(String),
            /// The driver could not finish, and may have done a part. The caller retries with the same arguments.
            Unfinished(String),
            /// The driver failed and did nothing. Final: the caller may forget the call.
            Failed(String),
            /// The driver does not serve this RPC.
            Unimplemented,
        }

        impl From<$error> for Status {
            fn from(error: $error) -> Status {
                let (code, message) = match error {
                    $($error::$variant(message) => (Code::$code, message),)*
                    $error::Invalid(message) => (Code::InvalidArgument, message),
                    $error::Denied(message) => (Code::PermissionDenied, message),
                    $error::Busy(message) => (Code::Aborted, message),
                    $error::Unfinished(message) => (Code::Unavailable, message),
                    $error::Failed(message) => (Code::Internal, message),
                    $error::Unimplemented => (Code::Unimplemented, "this driver does not offer that method".into()),
                };
                Status::from_driver(code, message)
            }
        }

        /// An I/O error interrupts work somewhere in the middle, so nobody can say what was done.
        impl From<std::io::Error> for $error {
            fn from(error: std::io::Error) -> $error {
                $error::Unfinished(error.to_string())
            }
        }

        #[cfg(test)]
        impl $error {
            /// The method, each variant's name, and the status it becomes.
            pub(super) fn all() -> Vec<(csi::Method, &'static str, Status)> {
                vec![
                    $((csi::Method::$method, stringify!($variant), $error::$variant("why".into()).into()),)*
                    (csi::Method::$method, "Unfinished", $error::Unfinished("why".into()).into()),
                    (csi::Method::$method, "Failed", $error::Failed("why".into()).into()),
                ]
            }
        }
    };
}

/// Defines the trait of a service, the errors of its RPCs, and the function that hands a call to the trait.
macro_rules! service {
    ($(#[$about:meta])* $service:ident, $dispatch:ident { $($more:item)* } { $(
        $(#[$doc:meta])* $name:ident: $method:ident($request:ident) -> $response:ident, $error:ident $variants:tt
    )* }) => {
        $(#[$about])*
        pub trait $service: Send + Sync + 'static {
            $($more)*
            $(
                $(#[$doc])*
                fn $name(
                    &self,
                    request: v1::$request,
                ) -> impl Future<Output = Result<v1::$response, $error>> + Send {
                    let _ = request;
                    async { Err($error::Unimplemented) }
                }
            )*
        }

        $(rpc_error!($method, $error $variants);)*

        pub(crate) async fn $dispatch<S: $service>(service: &S, call: Call) -> Result<Response, Status> {
            match call {
                $(Call::$method(request) => match service.$name(request).await {
                    Ok(response) => Ok(Response::$method(response)),
                    Err(error) => Err(error.into()),
                },)*
                other => {
                    let text = format!("{} is not offered here", other.method().name());
                    Err(Status::from_driver(Code::Unimplemented, text))
                }
            }
        }

        #[cfg(test)]
        pub(super) fn errors() -> Vec<(csi::Method, &'static str, Status)> {
            [$($error::all()),*].concat()
        }
    };
}

pub(super) mod controller;
pub(super) mod group_controller;
pub(super) mod node;

/// Who the driver is and what it can do. From this the kit answers `GetPluginInfo`, `GetPluginCapabilities` and the
/// capability RPCs of all services.
pub trait Identity: Send + Sync + 'static {
    /// The driver's name, a domain name such as `tiny.example.com`.
    fn name(&self) -> String;

    /// The driver's version, in any form.
    fn version(&self) -> String;

    /// The driver's capabilities. The kit answers an RPC whose capability is not among them with UNIMPLEMENTED, even if it
    /// is written, so that capabilities and answers agree. Services that capabilities imply need not be named: a driver
    /// with a capability of the controller service has a controller service.
    ///
    /// ```
    /// # use io_csi::kit::{Capabilities, ControllerRpc};
    /// # fn capabilities() -> Capabilities {
    /// [ControllerRpc::CreateDeleteVolume, ControllerRpc::ListVolumes].into_iter().collect()
    /// # }
    /// ```
    fn capabilities(&self) -> Capabilities;

    /// Whether the driver is healthy. The kit asks after [`Serving::ready`](super::Serving::ready) was called. By default it
    /// is.
    fn probe(&self) -> impl Future<Output = Result<bool, ProbeError>> + Send {
        async { Ok(true) }
    }
}

rpc_error!(Probe, ProbeError {
    /// The driver cannot work until somebody repairs something.
    Unhealthy => FailedPrecondition,
});

/// A whole driver: one type that implements all four services. A service that the driver does not have is an empty `impl`.
pub trait Plugin: Identity + controller::Controller + node::Node + group_controller::GroupController {}
impl<P: Identity + controller::Controller + node::Node + group_controller::GroupController> Plugin for P {}

#[cfg(test)]
mod tests {
    use csi::{Finality, Method, classify};

    use super::*;

    // Reliability 70: what may be half done must never read as a refusal, and what is refused must.
    #[test]
    fn what_callers_make_of_an_error_is_what_its_author_meant() {
        let all = [ProbeError::all(), controller::errors(), group_controller::errors(), node::errors()].concat();
        for (method, variant, status) in &all {
            assert!(status.from_driver && status.message == "why", "{method:?} {variant}");
            let unknown = classify(*method, status) == Finality::Unknown;
            let may_be_done = match *variant {
                "Unfinished" | "BadToken" => true,
                // Room may be made while it waits; only a new volume is given up for it.
                "OutOfSpace" | "NodeFull" => *method != Method::CreateVolume,
                _ => false,
            };
            assert_eq!(unknown, may_be_done, "{method:?} {variant}");
        }
        // One enum for each RPC that an author answers: all of CSI but GetPluginInfo and the four capability RPCs.
        let named: std::collections::BTreeSet<_> = all.iter().map(|(method, ..)| method).collect();
        assert_eq!(named.len(), Method::CSI.len() - 5);
    }
}
