//! The HTTP face: one handler that reads the path by hand and sends each request to its verb.

mod absent;
mod account;
mod body;
mod discovery;
mod exec;
mod negotiate;
mod openapi;
mod options;
mod path;
pub(crate) mod protobuf;
mod read;
mod respond;
mod standing;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use http::request::Parts;
use http::{HeaderName, Method, Response, StatusCode};
use rules_store::{Attributes, Kind};

use crate::Core;
use crate::audit::Audited;
use crate::auth::{self, Identity};
use crate::refusal::Refusal;
use crate::tls::{Closing, Door};

pub(crate) use negotiate::{Accepted, Encoding, Form};
pub(crate) use options::Options;
pub(crate) use path::{ResourcePath, Route, parse as parse_path};
use standing::FieldStanding;

/// A request about a resource, parsed.
pub(crate) struct RequestInfo {
    pub identity: Identity,
    pub path: ResourcePath,
    pub options: Options,
    pub accepted: Accepted,
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

async fn authenticate(State(core): State<Arc<Core>>, request: Request, next: Next) -> Response<Body> {
    let health = auth::is_open_to_all(request.uri().path());
    let mut audited = core.audit.as_ref().and_then(|_| Audited::of(&request, health));
    let (mut answer, identity) = serve(&core, request, next, health, audited.as_mut()).await;
    if let (Some(audit), Some(audited)) = (&core.audit, audited) {
        answer.headers_mut().extend(audited.id().map(|id| (HeaderName::from_static("audit-id"), id)));
        audit.tell(audited, identity.as_ref(), answer.status()).await;
    }
    answer
}

/// Serves a request, and says as whom it was served.
async fn serve(
    core: &Core,
    mut request: Request,
    next: Next,
    open: bool,
    audited: Option<&mut Audited>,
) -> (Response<Body>, Option<Identity>) {
    if open {
        return (next.run(request).await, None);
    }
    let Some((caller, standing)) = standing::caller(core, &request) else {
        return (Refusal::unauthorized().into_response(), None);
    };
    if let Some(door) = request.extensions().get::<Door>() {
        door.open();
    }
    if let Some(audited) = audited {
        audited.by(&caller);
    }
    let identity = match standing::impersonate(core, caller, request.headers()) {
        Ok(identity) => identity,
        Err(refusal) => return (refusal.into_response(), None),
    };
    let path = request.uri().path();
    // Resources are judged once their path is understood; what is served here, every known caller may ask.
    let judged_later = ["/api", "/apis", "/openapi"].iter().any(|p| path == *p || path.starts_with(&format!("{p}/")));
    let proxied = node_behind(path);
    if !judged_later || proxied.is_some() {
        let verb = request.method().as_str().to_ascii_lowercase();
        let attributes = match proxied {
            Some(name) => {
                Attributes { verb: &verb, resource: "nodes", subresource: "proxy", name, ..Attributes::default() }
            }
            None => Attributes { verb: &verb, path, ..Attributes::default() },
        };
        if let Err(refusal) = core.hub.read(|store| auth::authorize(store, &identity, &attributes)) {
            return (refusal.into_response(), Some(identity));
        }
    }
    request.extensions_mut().insert(standing);
    request.extensions_mut().insert(identity.clone());
    (next.run(request).await, Some(identity))
}

/// The node whose own answers a path asks for. What is served there is not the API server's, but the right to it is
/// judged here.
fn node_behind(path: &str) -> Option<&str> {
    let (node, rest) = path.strip_prefix("/api/v1/nodes/")?.split_once('/')?;
    (rest == "proxy" || rest.starts_with("proxy/")).then_some(node)
}

async fn dispatch(State(core): State<Arc<Core>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    handle(&core, &parts, body).await.unwrap_or_else(|refusal| respond::refusal(&parts.headers, &refusal))
}

async fn handle(core: &Arc<Core>, parts: &Parts, body: Body) -> Result<Response<Body>, Refusal> {
    let route = path::parse(parts.uri.path());
    if let Route::Resource(path) = route {
        let identity = parts.extensions.get::<Identity>().cloned().ok_or_else(Refusal::unauthorized)?;
        let info = RequestInfo {
            identity,
            options: Options::read(&parts.uri)?,
            accepted: negotiate::accepted(&parts.headers, path.kind.has_protobuf())?,
            media_type: body::media_type(&parts.headers).to_owned(),
            path,
        };
        return resource(core, parts, info, body).await;
    }
    if let Route::Review(asked) = route {
        return account::review(core, parts, asked, body).await;
    }
    if let Route::Absent(path) = &route {
        return match absent::own_services(path, parts.uri.query()) {
            Some(none) if parts.method == Method::GET => {
                respond::value(StatusCode::OK, negotiate::accepted(&parts.headers, false)?, &none)
            }
            Some(_) | None => Err(absent::resource(path)),
        };
    }
    if route == Route::Unknown {
        return Err(Refusal::no_such_path());
    }
    if parts.method != Method::GET {
        return Err(Refusal::method_not_allowed(&parts.method));
    }
    document(parts, &route)
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
    let accepted = negotiate::accepted(&parts.headers, false)?;
    let value = match route {
        Route::Version => discovery::version(),
        Route::CoreVersions | Route::Groups if accepted.aggregated => {
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
        Route::Health
        | Route::OpenApiV2
        | Route::Review(_)
        | Route::Absent(_)
        | Route::Resource(_)
        | Route::Unknown => {
            return Err(Refusal::no_such_path());
        }
    };
    respond::value(StatusCode::OK, accepted, &value)
}

/// The RBAC verb of a request.
fn verb(method: &Method, info: &RequestInfo) -> Option<&'static str> {
    let collection = info.path.name.is_empty();
    let watch = info.options.watch || info.path.watch;
    // A WebSocket begins with GET, and runs a command all the same.
    if info.path.kind == Kind::Pod && info.path.subresource == "exec" && matches!(method.as_str(), "GET" | "POST") {
        return Some("create");
    }
    match (method.as_str(), collection) {
        ("GET", _) if watch && info.path.subresource.is_empty() => Some("watch"),
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

fn authorize(core: &Core, info: &RequestInfo, verb: &str) -> Result<(), Refusal> {
    let ResourcePath { kind, namespace, name, subresource, .. } = &info.path;
    // A list of the one object with a name is allowed by whatever allows that object. No other verb is chosen by fields.
    let chosen = match verb {
        "list" | "watch" | "deletecollection" => {
            Some(rules_store::select(*kind, None, Some(&info.options.field_selector))?)
        }
        _others => None,
    };
    let chosen = chosen.as_ref().and_then(|selector| selector.fields.name()).unwrap_or_default();
    // A namespace lies in itself: a role in it may allow to look at it.
    let namespace = if *kind == Kind::Namespace { name } else { namespace };
    let name = if name.is_empty() { chosen } else { name };
    let attributes =
        Attributes { verb, group: kind.group(), resource: kind.plural(), subresource, namespace, name, path: "" };
    core.hub.read(|store| auth::authorize(store, &info.identity, &attributes))
}

async fn resource(core: &Arc<Core>, parts: &Parts, info: RequestInfo, body: Body) -> Result<Response<Body>, Refusal> {
    let verb = verb(&parts.method, &info).ok_or_else(|| Refusal::method_not_allowed(&parts.method))?;
    authorize(core, &info, verb)?;
    let info = Arc::new(info);
    let end = read::End {
        closing: parts.extensions.get::<Closing>().cloned(),
        rights: Box::pin(standing::ended(
            core.clone(),
            info.clone(),
            verb,
            parts.extensions.get::<FieldStanding>().cloned().unwrap_or(FieldStanding::Process),
            core.limits.judge_again,
        )),
    };
    let patience = core.limits.body;
    let pods = info.path.kind == Kind::Pod;
    let accounts = info.path.kind == Kind::ServiceAccount;
    let lacks_namespace = info.path.kind.namespaced() && info.path.namespace.is_empty();
    match (info.path.subresource.as_str(), verb) {
        ("", "get") => read::get(core, &info),
        ("", "list") => read::list(core, &info).await,
        ("", "watch") => read::watch(core, &info, end).await,
        ("", "create") if info.path.name.is_empty() && !lacks_namespace => {
            write::create(core, &info, body::read(body, patience).await?).await
        }
        ("", "deletecollection") if !lacks_namespace => {
            write::delete_collection(core, &info, body::read(body, patience).await?).await
        }
        ("", "delete") => write::delete(core, &info, body::read(body, patience).await?).await,
        ("status", "get") if info.path.kind.has_status() => read::get(core, &info),
        ("", "update") => write::update(core, &info, body::read(body, patience).await?).await,
        ("", "patch") => write::patch(core, &info, body::read(body, patience).await?).await,
        ("status", "update") if info.path.kind.has_status() => {
            write::update(core, &info, body::read(body, patience).await?).await
        }
        ("status", "patch") if info.path.kind.has_status() => {
            write::patch(core, &info, body::read(body, patience).await?).await
        }
        ("log", "get") if pods => read::log(core, &info, end).await,
        ("exec", "create") if pods => exec::exec(core, parts, &info, end).await,
        ("binding", "create") if pods => write::bind(core, &info, body::read(body, patience).await?).await,
        ("token", "create") if accounts => account::token(core, &info, body::read(body, patience).await?).await,
        ("", _) => Err(Refusal::method_not_allowed(&parts.method)),
        ("status", _) if info.path.kind.has_status() => Err(Refusal::method_not_allowed(&parts.method)),
        ("token", _) if accounts => Err(Refusal::method_not_allowed(&parts.method)),
        ("log" | "binding" | "exec", _) if pods => Err(Refusal::method_not_allowed(&parts.method)),
        (_, _) => Err(absent::part(&info.path)),
    }
}
