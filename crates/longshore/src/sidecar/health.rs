//! What kubelet's probes hear: of the driver, and of this process. Each container has a probe of its own, so that the
//! one that is broken is the one that is started again.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use super::run::Shared;
use super::{Role, http, liveness, registrar};

/// Where the driver is asked after, by its container's probe, if we are its liveness probe; else this process.
pub const DRIVER: &str = "/healthz";
/// Where this process is asked after, by the probe of its own container.
pub const OWN: &str = "/livez";

type Health = Result<(), (StatusCode, String)>;

/// The routes. `well` says whether every task of this process lives.
pub fn routes<W>(shared: &Arc<Shared>, well: W) -> Router
where
    W: Fn() -> Result<(), String> + Clone + Send + Sync + 'static,
{
    let (asked, also) = (shared.clone(), well.clone());
    let of_driver = move || {
        let (shared, well) = (asked.clone(), also.clone());
        async move { http::health(driver(&shared, well()).await) }
    };
    let asked = shared.clone();
    let of_us = move || {
        let (shared, well) = (asked.clone(), well.clone());
        async move { http::health(own(&shared, well()).await) }
    };
    Router::new().route(DRIVER, get(of_driver)).route(OWN, get(of_us))
}

/// As livenessprobe and node-driver-registrar answer. What is wrong with us says nothing of the driver.
async fn driver(shared: &Arc<Shared>, well: Result<(), String>) -> Health {
    let settings = &shared.settings;
    if settings.roles.contains(&Role::Liveness) {
        return liveness::health(&shared.line().client, &settings.socket, settings.timeout(Role::Liveness)).await;
    }
    own(shared, well).await?;
    match (&settings.registration, shared.line().name()) {
        (Some(_), None) => Err((StatusCode::NOT_FOUND, "the driver has not said its name yet".to_string())),
        (Some(_) | None, _) => Ok(()),
    }
}

/// Whether every task lives, and kubelet could hear of the driver. A driver that has not answered yet is no fault of
/// ours.
async fn own(shared: &Arc<Shared>, well: Result<(), String>) -> Health {
    well.map_err(|panics| (StatusCode::INTERNAL_SERVER_ERROR, panics))?;
    let (settings, line) = (&shared.settings, shared.line());
    let (Some(registration), Some(name)) = (&settings.registration, line.name()) else { return Ok(()) };
    registrar::health(&registrar::helper(registration), name, &line.client, settings.timeout(Role::Registrar)).await
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::sync::OnceLock;

    use axum::body::Body;
    use axum::http::Request;
    use csi::{Call, Code, Method, Response, Status, v1};
    use http_body_util::BodyExt as _;
    use tokio::sync::watch;
    use tower::ServiceExt as _;

    use super::*;
    use crate::sidecar::settings::{ProcessEnvironment, Settings};

    /// A driver that lives.
    struct Lives;

    impl io_csi::Answers for Lives {
        async fn answer(&self, call: Call) -> Result<Response, Status> {
            match call {
                Call::Probe(_) => Ok(Response::Probe(v1::ProbeResponse { ready: Some(true) })),
                other => Err(Status::from_driver(Code::Unimplemented, other.method().name().to_string())),
            }
        }
    }

    fn shared(roles: &[Role], socket: &Path) -> Arc<Shared> {
        let roles: BTreeSet<Role> = roles.iter().copied().collect();
        let words = [
            format!("--csi-address={}", socket.display()),
            "--http-endpoint=:0".into(),
            "--kubelet-registration-path=/x".into(),
        ];
        let flags = crate::sidecar::parse_flags(&roles, &words).unwrap();
        let around = ProcessEnvironment { variables: BTreeMap::new(), host: "n".into(), namespace: None };
        let settings = Settings::new(roles, flags, &around).unwrap();
        let (drivers, manager, capacities) = (Arc::default(), OnceLock::new(), OnceLock::new());
        Arc::new(Shared { settings, drivers, manager, capacities, stop: watch::channel(false).1 })
    }

    async fn ask(shared: &Arc<Shared>, well: Result<(), String>, path: &str) -> (u16, String) {
        let routes = routes(shared, move || well.clone());
        let answer = routes.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn panicked() -> Result<(), String> {
        Err("1 panics since the start: the attacher".into())
    }

    #[tokio::test]
    async fn a_panic_of_ours_is_not_the_drivers_and_a_dead_driver_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("csi.sock");
        let shared = self::shared(&[Role::Registrar, Role::Liveness], &socket);
        let (status, said) = ask(&shared, Ok(()), DRIVER).await;
        assert!(status == 500 && said.contains("cannot reach the driver"), "{said}");
        assert_eq!(ask(&shared, Ok(()), OWN).await, (200, "ok".into()));

        let shared = self::shared(&[Role::Registrar, Role::Liveness], &socket);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let stop = async move {
            let _ = ended.await;
        };
        let server = io_csi::serve(&socket, &[Method::Probe], Lives, stop).await.unwrap();
        assert_eq!(ask(&shared, panicked(), DRIVER).await, (200, "ok".into()));
        let (status, said) = ask(&shared, panicked(), OWN).await;
        assert!(status == 500 && said.contains("the attacher"), "{said}");
        drop(end);
        server.finished().await.unwrap();
    }

    // Without the liveness probe's part there is one container, and one answer for all that is in it.
    #[tokio::test]
    async fn without_a_driver_to_answer_for_a_panic_is_told_at_both() {
        let shared = shared(&[Role::Registrar], Path::new("/nowhere/csi.sock"));
        for path in [DRIVER, OWN] {
            assert_eq!(ask(&shared, panicked(), path).await.0, 500, "{path}");
        }
        assert_eq!(ask(&shared, Ok(()), DRIVER).await, (404, "the driver has not said its name yet".into()));
        assert_eq!(ask(&shared, Ok(()), OWN).await.0, 200);
    }
}
