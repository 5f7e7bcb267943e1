//! The kubeconfig of the administrator, with everything embedded so that the file can be copied.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::pki::Pki;

/// The text of a kubeconfig for the server at this URL.
pub(crate) fn render(pki: &Pki, url: &str) -> String {
    let authority = STANDARD.encode(&pki.server_authority.certificate);
    let certificate = STANDARD.encode(&pki.admin.certificate);
    let key = STANDARD.encode(&pki.admin.key);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: longshore\n\
         clusters:\n\
         - name: longshore\n  cluster:\n    server: {url}\n    certificate-authority-data: {authority}\n\
         contexts:\n\
         - name: longshore\n  context:\n    cluster: longshore\n    user: admin\n    namespace: default\n\
         users:\n\
         - name: admin\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n"
    )
}
