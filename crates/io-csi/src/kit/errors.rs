//! Why a call failed, one enum per call, and the one table that turns each into its code.

use csi::{Code, Status};

/// Makes the enums and the way from each variant to its code. Every call can fail in the ways that CSI names for all
/// calls; what stands in the table comes on top.
macro_rules! errors {
    ($($(#[$about:meta])* $error:ident { $($(#[$doc:meta])* $variant:ident => $code:ident),* $(,)? })*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub enum $error {
                $($(#[$doc])* $variant(String),)*
                /// Something in the request is missing, malformed or not supported. Final.
                Invalid(String),
                /// The caller may not do this. Final.
                Denied(String),
                /// Another call is at work on the same thing. The caller comes again.
                Busy(String),
                /// It could not be finished and may be done in part. The caller comes again, with the same arguments.
                Unfinished(String),
                /// It failed, and nothing of it was done. Final: the caller may forget it.
                Failed(String),
                /// The driver does not offer this call.
                Unimplemented,
            }

            impl From<$error> for Status {
                fn from(error: $error) -> Status {
                    let (code, words) = match error {
                        $($error::$variant(words) => (Code::$code, words),)*
                        $error::Invalid(words) => (Code::InvalidArgument, words),
                        $error::Denied(words) => (Code::PermissionDenied, words),
                        $error::Busy(words) => (Code::Aborted, words),
                        $error::Unfinished(words) => (Code::Unavailable, words),
                        $error::Failed(words) => (Code::Internal, words),
                        $error::Unimplemented => (Code::Unimplemented, "this driver does not offer that method".into()),
                    };
                    Status::from_driver(code, words)
                }
            }

            /// Work that was cut off somewhere in the middle: nobody can say what was done.
            impl From<std::io::Error> for $error {
                fn from(error: std::io::Error) -> $error {
                    $error::Unfinished(error.to_string())
                }
            }
        )*

        #[cfg(test)]
        pub(crate) fn all() -> Vec<(&'static str, &'static str, Status)> {
            [
                $(
                    $((stringify!($error), stringify!($variant), Status::from($error::$variant("why".into()))),)*
                    (stringify!($error), "Unfinished", Status::from($error::Unfinished("why".into()))),
                    (stringify!($error), "Failed", Status::from($error::Failed("why".into()))),
                )*
            ]
            .into()
        }
    };
}

errors! {
    /// Why the driver is not well.
    ProbeError {
        /// It cannot work until somebody repairs something.
        Unhealthy => FailedPrecondition,
    }
    /// Why no volume was made.
    CreateVolumeError {
        /// The snapshot or volume it was to be made from does not exist.
        SourceNotFound => NotFound,
        /// A volume of that name exists, and is not what was asked for.
        Incompatible => AlreadyExists,
        /// There is no room for it where it has to be.
        OutOfSpace => ResourceExhausted,
        /// No volume can have such a size.
        Size => OutOfRange,
    }
    /// Why a volume was not deleted.
    DeleteVolumeError {
        /// It is in use.
        InUse => FailedPrecondition,
    }
    /// Why a volume was not made available on a node.
    ControllerPublishVolumeError {
        /// There is no such volume.
        VolumeNotFound => NotFound,
        /// There is no such node.
        NodeNotFound => NotFound,
        /// It is available there in another way.
        Incompatible => AlreadyExists,
        /// It is available on another node, and can be on one only.
        Elsewhere => FailedPrecondition,
        /// The node has as many volumes as it can have.
        NodeFull => ResourceExhausted,
    }
    /// Why a volume was not taken away from a node.
    ControllerUnpublishVolumeError {
        /// There is no such volume, and nobody can say that it is not available there.
        VolumeNotFound => NotFound,
        /// There is no such node, and nobody can say that the volume is not available there.
        NodeNotFound => NotFound,
    }
    /// Why nothing can be said of a volume's capabilities.
    ValidateVolumeCapabilitiesError {
        /// There is no such volume.
        VolumeNotFound => NotFound,
    }
    /// Why volumes were not listed.
    ListVolumesError {
        /// The list cannot be continued from that token. The caller begins anew.
        BadToken => Aborted,
    }
    /// Why the capacity is not known.
    GetCapacityError {}
    /// Why a volume was not described.
    ControllerGetVolumeError {
        /// There is no such volume.
        VolumeNotFound => NotFound,
    }
    /// Why a volume was not modified.
    ControllerModifyVolumeError {
        /// There is no such volume.
        VolumeNotFound => NotFound,
    }
    /// Why no snapshot was made.
    CreateSnapshotError {
        /// There is no volume to make it of.
        SourceNotFound => NotFound,
        /// A snapshot of that name exists, of another volume.
        Incompatible => AlreadyExists,
        /// There is no room for it.
        OutOfSpace => ResourceExhausted,
    }
    /// Why a snapshot was not deleted.
    DeleteSnapshotError {
        /// It is in use.
        InUse => FailedPrecondition,
    }
    /// Why snapshots were not listed.
    ListSnapshotsError {
        /// The list cannot be continued from that token. The caller begins anew.
        BadToken => Aborted,
    }
    /// Why a snapshot was not described.
    GetSnapshotError {
        /// There is no such snapshot.
        SnapshotNotFound => NotFound,
    }
    /// Why a volume did not grow.
    ControllerExpandVolumeError {
        /// There is no such volume.
        VolumeNotFound => NotFound,
        /// It cannot grow while it is in use.
        InUse => FailedPrecondition,
        /// No volume can have such a size.
        Size => OutOfRange,
    }
    /// Why a volume's health is not known.
    ControllerGetVolumeHealthError {
        /// There is no such volume.
        VolumeNotFound => NotFound,
    }
    /// Why the health of volumes was not listed.
    ControllerListVolumeHealthError {
        /// The list cannot be continued from that token. The caller begins anew.
        BadToken => Aborted,
    }
    /// Why no group of snapshots was made.
    CreateVolumeGroupSnapshotError {
        /// One of the volumes does not exist.
        SourceNotFound => NotFound,
        /// A group of that name exists, of other volumes.
        Incompatible => AlreadyExists,
        /// These volumes cannot be taken at one moment.
        NotTogether => FailedPrecondition,
        /// There is no room for it.
        OutOfSpace => ResourceExhausted,
    }
    /// Why a group of snapshots was not deleted.
    DeleteVolumeGroupSnapshotError {
        /// One of its snapshots is in use.
        InUse => FailedPrecondition,
    }
    /// Why a group of snapshots was not described.
    GetVolumeGroupSnapshotError {
        /// There is no such group.
        GroupNotFound => NotFound,
    }
    /// Why a volume was not brought to its staging path.
    NodeStageVolumeError {
        /// There is no such volume here.
        VolumeNotFound => NotFound,
        /// It is there in another way.
        Incompatible => AlreadyExists,
        /// It cannot be used like this.
        NotPossible => FailedPrecondition,
    }
    /// Why a volume was not taken from its staging path.
    NodeUnstageVolumeError {
        /// There is no such volume here.
        VolumeNotFound => NotFound,
        /// It is still published.
        InUse => FailedPrecondition,
    }
    /// Why a volume was not brought to its target path.
    NodePublishVolumeError {
        /// There is no such volume here.
        VolumeNotFound => NotFound,
        /// It is there in another way.
        Incompatible => AlreadyExists,
        /// It cannot be used like this, or not yet.
        NotPossible => FailedPrecondition,
    }
    /// Why a volume was not taken from its target path.
    NodeUnpublishVolumeError {
        /// There is no such volume here.
        VolumeNotFound => NotFound,
    }
    /// Why a volume's usage is not known.
    NodeGetVolumeStatsError {
        /// There is no such volume, or not at that path.
        VolumeNotFound => NotFound,
    }
    /// Why a volume did not grow on its node.
    NodeExpandVolumeError {
        /// There is no such volume, or not at that path.
        VolumeNotFound => NotFound,
        /// It cannot grow while it is in use.
        InUse => FailedPrecondition,
        /// It cannot have such a size.
        Size => OutOfRange,
    }
    /// Why a volume's health on its node is not known.
    NodeGetVolumeHealthError {
        /// There is no such volume, or not at that path.
        VolumeNotFound => NotFound,
    }
    /// Why the health of the node's storage is not known.
    NodeGetStorageHealthError {}
    /// Why the node does not describe itself.
    NodeGetInfoError {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi::{Method, Reading, reading};

    // Reliability 70: what may be half done must never read as a refusal, and what is refused must.
    #[test]
    fn what_callers_make_of_an_error_is_what_its_author_meant() {
        let all = all();
        for (error, variant, status) in &all {
            let method = Method::ALL.iter().find(|method| format!("{}Error", method.name()) == *error);
            let method = *method.unwrap_or_else(|| panic!("{error} is named after no method"));
            assert!(status.from_driver && status.message == "why", "{error}::{variant}");
            let unknown = reading(method, status) == Reading::Unknown;
            let may_be_done = match *variant {
                "Unfinished" | "BadToken" => true,
                // Room may be made while it waits; only a new volume is given up for it.
                "OutOfSpace" | "NodeFull" => method != Method::CreateVolume,
                _ => false,
            };
            assert_eq!(unknown, may_be_done, "{error}::{variant}");
        }
        // One enum for each call an author answers; five about the driver and three of registration are not among them.
        let named: std::collections::BTreeSet<_> = all.iter().map(|(error, ..)| error).collect();
        assert_eq!(named.len(), Method::ALL.len() - 8);
    }
}
