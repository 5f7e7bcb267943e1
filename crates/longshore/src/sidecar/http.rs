//! Metrics and health over HTTP.

use std::future::Future;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result};
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;

/// Listens at an address as the Go programs write it: `:8080` is every address of this machine.
pub async fn listen(address: &str) -> Result<TcpListener> {
    let port_only = address.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
    let bound = match port_only {
        // Both families where the machine has both.
        Some(port) => match TcpListener::bind(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(("0.0.0.0", port)).await,
        },
        None => TcpListener::bind(address).await,
    };
    bound.with_context(|| format!("cannot serve at {address}: choose another address with --http-endpoint"))
}

/// Serves until `stop` ends.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    axum::serve(listener, routes).with_graceful_shutdown(stop).await.context("the HTTP server ended")
}

/// Metrics, as scrapers expect them.
pub fn metrics(text: String) -> Response {
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

/// Health: `ok`, or what is wrong.
pub fn health(state: Result<(), (StatusCode, String)>) -> Response {
    match state {
        Ok(()) => (StatusCode::OK, "ok").into_response(),
        Err((status, why)) => (status, why).into_response(),
    }
}
