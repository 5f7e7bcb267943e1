//! The HTTP face: one handler that reads the path by hand and sends each request to its verb.

mod account;
mod body;
mod discovery;
mod negotiate;
mod openapi;
mod options;
mod path;
mod protobuf;
mod read;
mod respond;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use rules_store::Deed;

use crate::Core;
use crate::auth::{self, Identity};
use crate::pki;
use crate::refusal::Refusal;
use crate::tls::{Closing, Peer};

pub(crate) use negotiate::{Form, Wanted};
pub(crate) use options::Options;
pub(crate) use path::{ResourcePath, Route};

/// A request about a resource, understood.
pub(crate) struct Ask {
    pub identity: Identity,
    pub path: ResourcePath,
    pub options: Options,
    pub wanted: Wanted,
    pub media_type: String,
}

/// The whole service; `extra` holds routes of the binary.
pub(crate) fn router(core: Arc<Core>, extra: Router) -> Router {
    Router::new()
        .fallback(dispatch)
        .with_state(core.clone())
        .merge(extra)
        // Outside of everything, so that no route can be reached around it.
        .layer(middleware::from_fn_with_state(core, authenticate))
}

async fn authenticate(State(core): State<Arc<Core>>, mut request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path();
    if auth::is_open_to_all(path) {
        return next.run(request).await;
    }
    let Some(identity) = identity_of(&core, &request) else { return Refusal::unauthorized().into_response() };
    // Resources are judged once their path is understood; what is served here, every known caller may ask.
    let judged_later = ["/api", "/apis", "/openapi"].iter().any(|p| path == *p || path.starts_with(&format!("{p}/")));
    if !judged_later {
        let verb = request.method().as_str().to_ascii_lowercase();
        let deed = Deed { verb: &verb, path, ..Deed::default() };
        if let Err(refusal) = core.hub.read(|store| auth::authorize(store, &identity, &deed)) {
            return refusal.into_response();
        }
    }
    request.extensions_mut().insert(identity);
    next.run(request).await
}

// Extensions are set by this process only: by the connection, or by `service_as`.
fn identity_of(core: &Core, request: &Request) -> Option<Identity> {
    if let Some(Some(peer)) = request.extensions().get::<Option<Peer>>() {
        // A connection may outlive the certificate it was opened with.
        return if peer.until > pki::unix_now() { Some(peer.identity.clone()) } else { None };
    }
    if let Some(header) = request.headers().get(http::header::AUTHORIZATION) {
        return account::holder(core, header);
    }
    request.extensions().get::<Identity>().cloned()
}

async fn dispatch(State(core): State<Arc<Core>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    handle(&core, parts, body).await.unwrap_or_else(Refusal::into_response)
}

async fn handle(core: &Arc<Core>, parts: Parts, body: Body) -> Result<Response<Body>, Refusal> {
    let route = path::parse(parts.uri.path());
    if let Route::Resource(path) = route {
        let identity = parts.extensions.get::<Identity>().cloned().ok_or_else(Refusal::unauthorized)?;
        let ask = Ask {
            identity,
            options: Options::read(&parts.uri)?,
            wanted: negotiate::wanted(&parts.headers)?,
            media_type: body::media_type(&parts.headers).to_owned(),
            path,
        };
        return resource(core, &parts, ask, body).await;
    }
    if route == Route::AccessReview {
        return account::review(core, &parts, body).await;
    }
    if route == Route::Unknown {
        return Err(Refusal::no_such_path());
    }
    if parts.method != Method::GET {
        return Err(Refusal::method_not_allowed(&parts.method));
    }
    document(&parts, &route)
}

/// What is the same for everybody.
fn document(parts: &Parts, route: &Route) -> Result<Response<Body>, Refusal> {
    if *route == Route::Health {
        return Ok(respond::raw(StatusCode::OK, "text/plain", Body::from("ok")));
    }
    if *route == Route::OpenApiV2 {
        // An empty message, and so a document without types: kubectl asks for it before it sends a `List`, finds
        // nothing to check against, and leaves the checking to the server.
        const TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        return Ok(respond::raw(StatusCode::OK, TYPE, Body::empty()));
    }
    let wanted = negotiate::wanted(&parts.headers)?;
    let value = match route {
        Route::Version => discovery::version(),
        Route::CoreVersions | Route::Groups if wanted.aggregated => {
            let value = discovery::aggregated(*route == Route::CoreVersions);
            const TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            return Ok(respond::raw(StatusCode::OK, TYPE, Body::from(value.to_string())));
        }
        Route::CoreVersions => discovery::core_versions(),
        Route::Groups => discovery::group_list(),
        Route::Group(name) => discovery::group(name).ok_or_else(Refusal::no_such_path)?,
        Route::GroupVersion { group, version } => {
            discovery::resource_list(group, version).ok_or_else(Refusal::no_such_path)?
        }
        Route::OpenApiIndex => openapi::index(),
        Route::OpenApi { group, version } => {
            let text = openapi::text(group, version).ok_or_else(Refusal::no_such_path)?;
            return Ok(respond::raw(StatusCode::OK, "application/json", Body::from(text)));
        }
        Route::Health | Route::OpenApiV2 | Route::AccessReview | Route::Resource(_) | Route::Unknown => {
            return Err(Refusal::no_such_path());
        }
    };
    respond::value(StatusCode::OK, wanted, &value)
}

/// The verb of a request, in the words of roles.
fn verb(method: &Method, ask: &Ask) -> Option<&'static str> {
    let collection = ask.path.name.is_empty();
    let watch = ask.options.watch || ask.path.watch;
    match (method.as_str(), collection) {
        ("GET", _) if watch && ask.path.subresource.is_empty() => Some("watch"),
        ("GET", true) => Some("list"),
        ("GET", false) => Some("get"),
        ("POST", _) => Some("create"),
        ("PUT", false) => Some("update"),
        ("PATCH", false) => Some("patch"),
        ("DELETE", false) => Some("delete"),
        ("DELETE", true) => Some("deletecollection"),
        _ => None,
    }
}

fn authorize(core: &Core, ask: &Ask, verb: &str) -> Result<(), Refusal> {
    let ResourcePath { resource, namespace, name, subresource, .. } = &ask.path;
    // A list of the one object with a name is allowed by whatever allows that object. No other verb is chosen by fields.
    let chosen = match verb {
        "list" | "watch" | "deletecollection" => {
            Some(rules_store::select(resource, None, Some(&ask.options.field_selector))?)
        }
        _others => None,
    };
    let chosen = chosen.as_ref().and_then(|selector| selector.fields.name()).unwrap_or_default();
    // A namespace lies in itself: a role in it may allow to look at it.
    let namespace = if resource.plural == "namespaces" { name } else { namespace };
    let name = if name.is_empty() { chosen } else { name };
    let deed = Deed { verb, group: resource.group, resource: resource.plural, subresource, namespace, name, path: "" };
    core.hub.read(|store| auth::authorize(store, &ask.identity, &deed))
}

async fn resource(core: &Arc<Core>, parts: &Parts, ask: Ask, body: Body) -> Result<Response<Body>, Refusal> {
    let verb = verb(&parts.method, &ask).ok_or_else(|| Refusal::method_not_allowed(&parts.method))?;
    authorize(core, &ask, verb)?;
    let closing = parts.extensions.get::<Closing>().cloned();
    let pods = ask.path.resource.group.is_empty() && ask.path.resource.plural == "pods";
    let accounts = ask.path.resource.group.is_empty() && ask.path.resource.plural == "serviceaccounts";
    let homeless = ask.path.resource.namespaced && ask.path.namespace.is_empty();
    match (ask.path.subresource.as_str(), verb) {
        ("", "get") => read::get(core, &ask),
        ("", "list") => read::list(core, &ask).await,
        ("", "watch") => read::watch(core, &ask, closing).await,
        ("", "create") if ask.path.name.is_empty() && !homeless => {
            write::create(core, &ask, body::read(body).await?).await
        }
        ("", "deletecollection") if !homeless => write::delete_collection(core, &ask, body::read(body).await?).await,
        ("", "delete") => write::delete(core, &ask, body::read(body).await?).await,
        ("status", "get") if ask.path.resource.status => read::get(core, &ask),
        ("", "update") => write::update(core, &ask, body::read(body).await?).await,
        ("", "patch") => write::patch(core, &ask, body::read(body).await?).await,
        ("status", "update") if ask.path.resource.status => write::update(core, &ask, body::read(body).await?).await,
        ("status", "patch") if ask.path.resource.status => write::patch(core, &ask, body::read(body).await?).await,
        ("log", "get") if pods => read::log(core, &ask, closing).await,
        ("binding", "create") if pods => write::bind(core, &ask, body::read(body).await?).await,
        ("token", "create") if accounts => account::token(core, &ask, &body::read(body).await?),
        ("", _) => Err(Refusal::method_not_allowed(&parts.method)),
        ("status", _) if ask.path.resource.status => Err(Refusal::method_not_allowed(&parts.method)),
        ("token", _) if accounts => Err(Refusal::method_not_allowed(&parts.method)),
        ("log" | "binding", _) if pods => Err(Refusal::method_not_allowed(&parts.method)),
        (_, _) => Err(Refusal::no_such_path()),
    }
}
