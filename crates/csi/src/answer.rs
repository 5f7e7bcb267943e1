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

    /// The code with this number; numbers nobody assigned mean `Unknown`.
    pub fn from_number(number: i32) -> Code {
        usize::try_from(number).ok().and_then(|n| Code::ALL.get(n).copied()).unwrap_or(Code::Unknown)
    }
}

/// An unsuccessful answer, and who made it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// The code.
    pub code: Code,
    /// The words. They come from the driver and may be shown to users; our own client never puts secrets in them.
    pub message: String,
    /// The status arrived in the driver's trailers. A status made on this side (connection lost, deadline passed)
    /// says nothing about what the driver did.
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

/// What an answer says about the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// It happened.
    Done,
    /// It certainly did not happen and is not under way.
    Refused,
    /// It may have happened, or may still be happening.
    Unknown,
}

/// Reads an unsuccessful answer. This is the only place that knows.
///
/// A status is final only if the driver sent it (reliability 70); everything made on this side is unknown.
pub fn reading(method: Method, status: &Status) -> Reading {
    if !status.from_driver {
        return Reading::Unknown;
    }
    match status.code {
        Code::Ok => Reading::Done,
        // The driver itself says that work may be going on.
        Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => Reading::Unknown,
        // Out of space is an end for CreateVolume, so that another place can be tried; elsewhere work may go on.
        Code::ResourceExhausted => match method {
            Method::CreateVolume => Reading::Refused,
            _ => Reading::Unknown,
        },
        // A volume or node unknown to the driver is not attached (reliability 33).
        Code::NotFound => match method {
            Method::ControllerUnpublishVolume => Reading::Done,
            _ => Reading::Refused,
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
        | Code::Unauthenticated => Reading::Refused,
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
                assert_eq!(reading(*method, &Status::local(code, "")), Reading::Unknown, "{method:?} {code:?}");
            }
        }
    }

    #[test]
    fn codes_that_mean_work_in_progress_are_never_final() {
        for method in Method::ALL {
            for code in [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::Aborted] {
                assert_eq!(reading(*method, &Status::from_driver(code, "")), Reading::Unknown, "{method:?} {code:?}");
            }
        }
    }

    #[test]
    fn out_of_space_ends_create_and_nothing_else() {
        let full = Status::from_driver(Code::ResourceExhausted, "");
        assert_eq!(reading(Method::CreateVolume, &full), Reading::Refused);
        assert_eq!(reading(Method::NodeStageVolume, &full), Reading::Unknown);
    }

    #[test]
    fn an_unknown_volume_is_not_attached() {
        let unknown = Status::from_driver(Code::NotFound, "");
        assert_eq!(reading(Method::ControllerUnpublishVolume, &unknown), Reading::Done);
        assert_eq!(reading(Method::DeleteVolume, &unknown), Reading::Refused);
    }

    #[test]
    fn unassigned_numbers_read_as_unknown_code() {
        assert_eq!(Code::from_number(99), Code::Unknown);
        assert_eq!(Code::from_number(-1), Code::Unknown);
        assert_eq!(Code::from_number(14), Code::Unavailable);
    }
}
