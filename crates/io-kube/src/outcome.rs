//! Reads answers to writes as outcomes: done, refused, or unknown.

use api::{Kind, Meta, Write};
use control::{Outcome, Refusal, Reply};
use http::StatusCode;

use crate::negotiation::Answer;

/// What a successful write left behind. A delete answers with a `Status`, or with the object as it was last; the object
/// still exists only if a finalizer or its grace period keeps it.
pub(crate) fn reply(kind: Kind, write: &Write, answer: &Answer) -> Reply {
    let Ok(object) = answer.object(kind) else {
        // A `Status` after a delete; or a kind that rules do not keep, such as events.
        return if matches!(write, Write::Delete { .. }) { Reply::Gone } else { Reply::Nothing };
    };
    let gone = match write {
        Write::Delete { .. } => !object.meta().is_deleting() || !is_kept(object.meta()),
        // The patch that removed the last finalizer made the object go.
        Write::Create { .. } | Write::Patch { .. } | Write::Note(_) => {
            object.meta().is_deleting() && !is_kept(object.meta())
        }
        Write::Bind { .. } => return Reply::Nothing,
    };
    if gone { Reply::Gone } else { Reply::Object(object) }
}

/// Something keeps the object while it is being deleted.
fn is_kept(meta: &Meta) -> bool {
    !meta.finalizers.is_empty() || meta.deletion_grace_period_seconds.unwrap_or(0) > 0
}

/// Reads an unsuccessful answer. After overload and server errors it is unknown whether the write happened.
pub(crate) fn refused(answer: &Answer, json_patch: bool) -> Outcome {
    let status = answer.status();
    let message = status.message().unwrap_or("no reason given").to_string();
    match answer.code {
        StatusCode::NOT_FOUND => Outcome::Refused(Refusal::NotFound),
        StatusCode::CONFLICT if status.reason == "AlreadyExists" => Outcome::Refused(Refusal::AlreadyExists),
        StatusCode::CONFLICT => Outcome::Refused(Refusal::Conflict),
        // A `test` of the JSON patch failed: its precondition does not hold.
        StatusCode::UNPROCESSABLE_ENTITY if json_patch => Outcome::Refused(Refusal::Conflict),
        StatusCode::TOO_MANY_REQUESTS => Outcome::Unknown(format!("the API server is overloaded: {message}")),
        code if code.is_server_error() => Outcome::Unknown(format!("the API server failed: {message}")),
        _ => Outcome::Refused(Refusal::Denied(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiation::MediaType;
    use api::{ObjectRef, Precondition, Value};
    use bytes::Bytes;
    use serde_json::json;

    fn answer(code: u16, body: impl Into<Bytes>) -> Answer {
        Answer { code: StatusCode::from_u16(code).unwrap(), media_type: MediaType::Json, body: body.into() }
    }

    #[test]
    fn only_certain_answers_are_refusals() {
        let conflict = refused(&answer(409, json!({ "reason": "Conflict" }).to_string()), false);
        assert_eq!(conflict, Outcome::Refused(Refusal::Conflict));
        let exists = refused(&answer(409, json!({ "reason": "AlreadyExists" }).to_string()), false);
        assert_eq!(exists, Outcome::Refused(Refusal::AlreadyExists));
        for code in [500, 503, 504, 429] {
            let outcome = refused(&answer(code, "garbage"), false);
            assert!(matches!(outcome, Outcome::Unknown(_)), "{code}");
        }
        assert!(matches!(refused(&answer(403, ""), false), Outcome::Refused(Refusal::Denied(_))));
    }

    #[test]
    fn a_failed_test_of_a_json_patch_is_a_conflict_and_an_invalid_object_is_not() {
        assert_eq!(refused(&answer(422, "{}"), true), Outcome::Refused(Refusal::Conflict));
        assert!(matches!(refused(&answer(422, "{}"), false), Outcome::Refused(Refusal::Denied(_))));
    }

    #[test]
    fn a_deleted_object_is_gone_unless_something_holds_it() {
        let target = ObjectRef::cluster(Kind::PersistentVolume, "v");
        let delete = Write::Delete { target, only_if: Precondition::default(), grace_seconds: None };
        let gone = json!({ "kind": "Status", "status": "Success" });
        let answered = |json: Value| reply(Kind::PersistentVolume, &delete, &answer(200, json.to_string()));
        assert_eq!(answered(gone), Reply::Gone);
        let held =
            json!({ "metadata": { "name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
        assert!(matches!(answered(held), Reply::Object(_)));
    }
}
