//! The parts of `longshore up`, each as a process of its own: a composition, and nothing that decides. And what shells
//! and readers get.

pub mod apiserver;
pub mod controllers;
pub mod down;
pub mod fields;
pub mod node;
pub mod shell;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use io_host::Workers;
use io_kube::Kube;
use io_run::Manager;
use tokio::sync::watch;

use crate::routes;
use crate::sidecar::http;
use crate::stats::VolumeStats;

/// A manager on the cluster of a kubeconfig, or of the pod this process runs in.
async fn manager(kubeconfig: Option<&Path>, machine: Option<Workers>) -> Result<Arc<Manager>> {
    let kube = match kubeconfig {
        Some(path) => Kube::from_kubeconfig(path).await?,
        None => Kube::from_environment().await?,
    };
    // Wrong certificates are told at once; a server that is away is waited for.
    kube.greet().await?;
    Ok(Manager::new(kube.paced(), kube, Arc::default(), machine))
}

/// Serves metrics, health, counts and explanations, then waits until the process is told to end, and ends its
/// controllers.
async fn until_told<T>(
    manager: Arc<Manager>,
    http_endpoint: Option<&str>,
    volumes: Option<VolumeStats>,
    told: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (stopping, mut stop) = watch::channel(false);
    if let Some(address) = http_endpoint {
        let started = Arc::new(OnceLock::from(manager.clone()));
        let end = async move {
            let _ = stop.wait_for(|stop| *stop).await;
        };
        let routes = routes::router(started.clone()).merge(routes::health_and_metrics(started, volumes.map(Arc::new)));
        let serving = http::serve(http::listen(address).await?, routes, end);
        manager.keep("the server of metrics and health", async move {
            if let Err(error) = serving.await {
                tracing::error!("{error:#}");
            }
        });
    }
    let told = told.await?;
    manager.stop().await;
    let _ = stopping.send(true);
    Ok(told)
}
