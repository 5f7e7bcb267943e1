use alloc::string::String;
use core::fmt;

use crate::Method;

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "gRPC names")]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// Every code, by number.
    pub const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// The code with this number, or `Unknown` for a number that gRPC does not assign.
    pub fn from_number(number: i32) -> Code {
        usize::try_from(number).ok().and_then(|n| Code::ALL.get(n).copied()).unwrap_or(Code::Unknown)
    }
}

/// A gRPC status other than OK, and who made it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "gRPC names")]
pub struct Status {
    pub code: Code,
    /// A text that may be shown to users. The client of `io-csi` removes secrets from it.
    pub message: String,
    /// True if the status arrived in the driver's headers or trailers. A status made on this side (connection lost,
    /// deadline exceeded) says nothing about what the driver did.
    pub from_driver: bool,
}

impl Status {
    /// A status sent by the driver.
    pub fn from_driver(code: Code, message: impl Into<String>) -> Self {
        Status { code, message: message.into(), from_driver: true }
    }

    /// A status made on this side of the connection.
    pub fn local(code: Code, message: impl Into<String>) -> Self {
        Status { code, message: message.into(), from_driver: false }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}

/// Whether an error is final, and what it says about the effect of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finality {
    /// Final: the effect is there.
    Done,
    /// Final: the effect is not there, and no work on it is under way.
    Refused,
    /// Not final: the effect may be there, or work on it may still be under way.
    Unknown,
}

/// Classifies an error. No other code may decide by a status code whether a call took effect.
///
/// Only a status that the driver sent can be final (reliability 70). A status made on this side is unknown.
pub fn classify(method: Method, status: &Status) -> Finality {
    if !status.from_driver {
        return Finality::Unknown;
    }
    match status.code {
        Code::Ok => Finality::Done,
        // The driver itself says that work may be going on.
        Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => Finality::Unknown,
        // Out of space is an end for CreateVolume, so that another place can be tried; elsewhere work may go on.
        Code::ResourceExhausted => match method {
            Method::CreateVolume => Finality::Refused,
            _ => Finality::Unknown,
        },
        // A volume or node unknown to the driver is not attached (reliability 33).
        Code::NotFound => match method {
            Method::ControllerUnpublishVolume => Finality::Done,
            _ => Finality::Refused,
        },
        Code::Unknown
        | Code::InvalidArgument
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => Finality::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reliability 70 and sidecars 7.2: the whole table for the calls that change something.
    #[test]
    fn only_the_driver_can_give_a_final_answer() {
        for method in Method::ALL {
            for code in Code::ALL {
                assert_eq!(classify(*method, &Status::local(code, "")), Finality::Unknown, "{method:?} {code:?}");
            }
        }
    }

    // KL-45, KL-46.
    #[test]
    fn codes_that_mean_work_in_progress_are_never_final() {
        for method in Method::ALL {
            for code in [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::Aborted] {
                assert_eq!(classify(*method, &Status::from_driver(code, "")), Finality::Unknown, "{method:?} {code:?}");
            }
        }
    }

    #[test]
    fn out_of_space_ends_create_and_nothing_else() {
        let full = Status::from_driver(Code::ResourceExhausted, "");
        assert_eq!(classify(Method::CreateVolume, &full), Finality::Refused);
        assert_eq!(classify(Method::NodeStageVolume, &full), Finality::Unknown);
    }

    #[test]
    fn an_unknown_volume_is_not_attached() {
        let unknown = Status::from_driver(Code::NotFound, "");
        assert_eq!(classify(Method::ControllerUnpublishVolume, &unknown), Finality::Done);
        assert_eq!(classify(Method::DeleteVolume, &unknown), Finality::Refused);
    }

    #[test]
    fn unassigned_numbers_read_as_unknown_code() {
        assert_eq!(Code::from_number(99), Code::Unknown);
        assert_eq!(Code::from_number(-1), Code::Unknown);
        assert_eq!(Code::from_number(14), Code::Unavailable);
    }
}
