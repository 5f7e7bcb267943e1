//! A real API server, and two clients of it: one that speaks both forms, and one that is kept to JSON.

use std::sync::{Arc, Mutex};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use io_kube::Kube;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use prove_cluster::{ControlPlane, Options};

/// A request and how it was answered.
#[derive(Clone, Debug)]
pub struct Spoken {
    /// By the client that speaks both forms.
    pub both: bool,
    pub method: String,
    pub path: String,
    pub sent: String,
    pub answer: String,
}

pub struct Stand {
    plane: ControlPlane,
    spoken: Arc<Mutex<Vec<Spoken>>>,
}

impl Stand {
    pub fn start() -> Stand {
        Stand { plane: ControlPlane::start(Options::default()).unwrap(), spoken: Arc::default() }
    }

    pub async fn speaking_both(&self) -> Kube {
        self.client(true).await
    }

    /// Every other form is turned down before it comes to the server.
    pub async fn speaking_json(&self) -> Kube {
        self.client(false).await
    }

    /// What was said so far.
    pub fn spoken(&self) -> Vec<Spoken> {
        self.spoken.lock().unwrap().clone()
    }

    async fn client(&self, both: bool) -> Kube {
        let kubeconfig = Kubeconfig::read_from(self.plane.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let all = self.spoken.clone();
        Kube::in_process(tower::service_fn(move |mut request: http::Request<Body>| {
            let (client, all) = (client.clone(), all.clone());
            async move {
                let (method, path, sent) =
                    (request.method().to_string(), request.uri().to_string(), media_type(request.headers()));
                let answered = if !both && sent == wire::TYPE {
                    let mut refusal = Response::new(Body::empty());
                    *refusal.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                    Ok(refusal)
                } else {
                    if !both {
                        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
                    }
                    client.send(request).await
                };
                if let Ok(response) = &answered {
                    let answer = media_type(response.headers());
                    all.lock().unwrap().push(Spoken { both, method, path, sent, answer });
                }
                answered
            }
        }))
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().to_string()
}
