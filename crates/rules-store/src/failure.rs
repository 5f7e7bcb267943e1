use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use api::Kind;
use serde_json::{Value, json};

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where, as in `spec.containers[0].name`.
    pub field: String,
    /// What kind of wrong.
    pub problem: FieldProblem,
    /// One sentence; never the value of a secret.
    pub message: String,
}

/// How a field is wrong, under the reasons Kubernetes clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldProblem {
    /// It must be set.
    Required,
    /// It must be something else.
    Invalid,
    /// It must not be set or changed.
    Forbidden,
    /// It stands there twice.
    Duplicate,
    /// It is none of the known words.
    NotSupported,
    /// It names something that is not there.
    NotFound,
    /// There is too much of it.
    TooLong,
}

impl FieldProblem {
    /// The reason of a status cause.
    pub const fn reason(self) -> &'static str {
        match self {
            FieldProblem::Required => "FieldValueRequired",
            FieldProblem::Invalid => "FieldValueInvalid",
            FieldProblem::Forbidden => "FieldValueForbidden",
            FieldProblem::Duplicate => "FieldValueDuplicate",
            FieldProblem::NotSupported => "FieldValueNotSupported",
            FieldProblem::NotFound => "FieldValueNotFound",
            FieldProblem::TooLong => "FieldValueTooLong",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            FieldProblem::Required => "Required value",
            FieldProblem::Invalid => "Invalid value",
            FieldProblem::Forbidden => "Forbidden",
            FieldProblem::Duplicate => "Duplicate value",
            FieldProblem::NotSupported => "Unsupported value",
            FieldProblem::NotFound => "Not found",
            FieldProblem::TooLong => "Too long",
        }
    }
}

impl FieldError {
    /// An error at a field.
    pub fn new(field: impl Into<String>, problem: FieldProblem, message: impl Into<String>) -> Self {
        FieldError { field: field.into(), problem, message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.field, self.problem.words(), self.message)
    }
}

/// Why a request was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no such object.
    NotFound {
        /// What was asked for.
        kind: Kind,
        name: String,
    },
    /// The name is taken.
    AlreadyExists {
        /// What was to be created.
        kind: Kind,
        name: String,
    },
    /// The object is not the one the sender believes it to be.
    Conflict {
        /// What was to be changed.
        kind: Kind,
        name: String,
        message: String,
    },
    /// The object breaks a rule of its kind.
    Invalid {
        /// What was to be written.
        kind: Kind,
        name: String,
        /// All that is wrong, at least one.
        causes: Vec<FieldError>,
    },
    /// Admission says no.
    Forbidden {
        /// What was to be written.
        kind: Kind,
        name: String,
        message: String,
    },
    /// The request makes no sense.
    BadRequest { message: String },
    /// The object or the patch is more than one object may be.
    TooLarge {
        /// What is too much, and the limit.
        message: String,
    },
    /// The history asked for is no longer kept.
    Gone { message: String },
    /// The patch comes in a format we do not read.
    UnsupportedMediaType {
        /// The formats read here.
        message: String,
    },
    /// The resource does not offer this verb.
    MethodNotAllowed { kind: Kind, verb: String },
}

impl Failure {
    /// A request that makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::BadRequest { message: message.into() }
    }

    /// The HTTP status code.
    pub const fn code(&self) -> u16 {
        match self {
            Failure::NotFound { .. } => 404,
            Failure::AlreadyExists { .. } | Failure::Conflict { .. } => 409,
            Failure::Invalid { .. } => 422,
            Failure::Forbidden { .. } => 403,
            Failure::BadRequest { .. } => 400,
            Failure::Gone { .. } => 410,
            Failure::TooLarge { .. } => 413,
            Failure::UnsupportedMediaType { .. } => 415,
            Failure::MethodNotAllowed { .. } => 405,
        }
    }

    /// The `reason` clients switch on.
    pub const fn reason(&self) -> &'static str {
        match self {
            Failure::NotFound { .. } => "NotFound",
            Failure::AlreadyExists { .. } => "AlreadyExists",
            Failure::Conflict { .. } => "Conflict",
            Failure::Invalid { .. } => "Invalid",
            Failure::Forbidden { .. } => "Forbidden",
            Failure::BadRequest { .. } => "BadRequest",
            Failure::Gone { .. } => "Expired",
            Failure::TooLarge { .. } => "RequestEntityTooLarge",
            Failure::UnsupportedMediaType { .. } => "UnsupportedMediaType",
            Failure::MethodNotAllowed { .. } => "MethodNotAllowed",
        }
    }

    /// The `metav1.Status` a client receives.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.to_string(), "reason": self.reason(), "code": self.code(),
        });
        status["details"] = self.details();
        status
    }

    /// Always there: kubectl reads on in it without looking.
    fn details(&self) -> Value {
        match self {
            Failure::NotFound { kind, name }
            | Failure::AlreadyExists { kind, name }
            | Failure::Conflict { kind, name, .. }
            | Failure::Forbidden { kind, name, .. } => details(kind.group(), kind.plural(), name),
            Failure::Invalid { kind, name, causes } => {
                let mut details = details(kind.group(), kind.name(), name);
                details["causes"] = causes.iter().map(cause).collect();
                details
            }
            Failure::MethodNotAllowed { kind, .. } => details(kind.group(), kind.plural(), ""),
            Failure::BadRequest { .. }
            | Failure::Gone { .. }
            | Failure::TooLarge { .. }
            | Failure::UnsupportedMediaType { .. } => json!({}),
        }
    }
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({ "kind": kind });
    if !name.is_empty() {
        details["name"] = name.into();
    }
    if !group.is_empty() {
        details["group"] = group.into();
    }
    details
}

fn cause(error: &FieldError) -> Value {
    json!({
        "reason": error.problem.reason(),
        "message": format!("{}: {}", error.problem.words(), error.message),
        "field": error.field,
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotFound { kind, name } => write!(f, "{} \"{name}\" not found", kind.qualified()),
            Failure::AlreadyExists { kind, name } => {
                write!(f, "{} \"{name}\" already exists", kind.qualified())
            }
            Failure::Conflict { kind, name, message } => {
                write!(f, "the write to {} \"{name}\" was refused: {message}", kind.qualified())
            }
            Failure::Invalid { kind, name, causes } => {
                let group = if kind.group().is_empty() { "" } else { "." };
                write!(f, "{}{group}{} \"{name}\" is invalid: ", kind.name(), kind.group())?;
                list(f, causes)
            }
            Failure::Forbidden { kind, name, message } => {
                write!(f, "{} \"{name}\" is forbidden: {message}", kind.qualified())
            }
            Failure::BadRequest { message }
            | Failure::Gone { message }
            | Failure::TooLarge { message }
            | Failure::UnsupportedMediaType { message } => f.write_str(message),
            Failure::MethodNotAllowed { kind, verb } => {
                write!(f, "{} do not support {verb}", kind.qualified())
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, causes: &[FieldError]) -> fmt::Result {
    match causes {
        [] => f.write_str("it breaks a rule of its kind"),
        [one] => write!(f, "{one}"),
        [first, rest @ ..] => {
            write!(f, "[{first}")?;
            for cause in rest {
                write!(f, ", {cause}")?;
            }
            f.write_str("]")
        }
    }
}

impl core::error::Error for Failure {}
