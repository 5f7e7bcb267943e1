use control::{Outcome, Refusal, Reply};
use csi::{Finality, Method, Response, Status, classify};

/// Turns the result of a call into the outcome that rules decide by. This is the only place that does.
pub fn outcome(method: Method, result: Result<Response, Status>) -> Outcome {
    let status = match result {
        Ok(response) => return Outcome::Done(Reply::Csi(response)),
        Err(status) => status,
    };
    match classify(method, &status) {
        Finality::Done => Outcome::Done(Reply::Nothing),
        Finality::Refused => Outcome::Refused(Refusal::Driver(status.code, status.message)),
        Finality::Unknown if status.from_driver => Outcome::Unknown(format!("the driver answered {status}")),
        Finality::Unknown => Outcome::Unknown(status.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi::Code;

    #[test]
    fn an_answer_is_done() {
        let response = Response::DeleteVolume(csi::v1::DeleteVolumeResponse {});
        let done = Outcome::Done(Reply::Csi(response.clone()));
        assert!(outcome(Method::DeleteVolume, Ok(response)) == done);
    }

    // Reliability 33.
    #[test]
    fn a_volume_the_driver_does_not_know_is_unpublished() {
        let status = Status::from_driver(Code::NotFound, "no such volume");
        assert_eq!(outcome(Method::ControllerUnpublishVolume, Err(status)), Outcome::Done(Reply::Nothing));
    }

    // Reliability 70.
    #[test]
    fn only_the_driver_refuses() {
        let words = "no";
        assert_eq!(
            outcome(Method::CreateVolume, Err(Status::from_driver(Code::Internal, words))),
            Outcome::Refused(Refusal::Driver(Code::Internal, words.into()))
        );
        assert_eq!(
            outcome(Method::CreateVolume, Err(Status::local(Code::Internal, words))),
            Outcome::Unknown(words.into())
        );
        assert_eq!(
            outcome(Method::CreateVolume, Err(Status::from_driver(Code::Aborted, "busy"))),
            Outcome::Unknown("the driver answered Aborted: busy".into())
        );
    }
}
