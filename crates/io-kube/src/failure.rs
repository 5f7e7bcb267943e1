//! Why there was no answer, in words that say what to do, and whether the request may be made again.

use std::error::Error;

use rustls::CertificateError;

use crate::connect::chain;
use crate::credential::NoCredential;

/// A sentence. What is known to be wrong with names and certificates says what to check.
pub(crate) fn why(error: &(dyn Error + 'static)) -> String {
    // Of what is not known the words are all there is.
    lasting(error).unwrap_or_else(|| format!("the API server did not answer: {}", chain(error)))
}

/// A sentence about what waiting does not cure: names, certificates and credentials.
pub(crate) fn lasting(error: &(dyn Error + 'static)) -> Option<String> {
    causes(error).find_map(explained).or_else(|| turned_away(&chain(error)))
}

/// The server ended the connection for the certificate it was shown. After the handshake HTTP/2 keeps only the words of that.
fn turned_away(text: &str) -> Option<String> {
    let (_, alert) = text.split_once("received fatal alert: ")?;
    Some(format!(
        "the API server does not take the client's certificate ({alert}); check client-certificate in the kubeconfig"
    ))
}

/// The server said that it has not looked at the request, so that it may be made again whatever it was (RFC 9113, 6.8 and
/// 8.7).
pub(crate) fn never_begun(error: &(dyn Error + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<h2::Error>()).any(|error| {
        let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        // Only streams beyond the last one the server looks at end with its goodbye.
        let beyond = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (refused || beyond)
    })
}

fn explained(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(NoCredential(sentence)) = cause.downcast_ref() {
        return Some(sentence.clone());
    }
    match cause.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(problem) => Some(match problem {
            CertificateError::UnknownIssuer => {
                "the API server's certificate is signed by nobody who is trusted; check \
                                                certificate-authority in the kubeconfig"
                    .into()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the API server's certificate is for another name; check server and tls-server-name in the kubeconfig"
                    .into()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the API server's certificate has expired; renew it, or check this machine's clock".into()
            }
            other => format!(
                "the API server's certificate is not to be trusted ({other:?}); check certificate-authority in the kubeconfig"
            ),
        }),
        _ => None,
    }
}

/// An error and its causes, those too that another error only carries.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(carried) => Some(carried),
        None => error.source(),
    }
}
