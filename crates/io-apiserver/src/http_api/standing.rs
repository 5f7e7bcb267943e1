//! Who a request is from, why that is believed, and for how long; and whom it asks to be taken for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use http::HeaderMap;
use rules_store::Attributes;

use super::path::unescape;
use super::{RequestInfo, account, authorize};
use crate::Core;
use crate::auth::{self, Identity, Particulars};
use crate::pki;
use crate::refusal::Refusal;
use crate::tls::Peer;
use crate::token::Account;

/// Why a caller is believed to be who it is.
#[derive(Clone, Debug)]
pub(crate) enum FieldStanding {
    /// It is a part of this process.
    Process,
    /// It proved to hold the key of a certificate that ends at this time.
    Certificate { until: i64 },
    /// It sent the token of an account, which ends at this time.
    Token { account: Account, until: i64 },
}

impl FieldStanding {
    /// Whether it is still to be believed.
    fn holds(&self, core: &Core) -> bool {
        match self {
            FieldStanding::Process => true,
            FieldStanding::Certificate { until } => *until > pki::unix_now(),
            FieldStanding::Token { account, until } => *until > pki::unix_now() && account::lives(core, account),
        }
    }
}

/// The caller. Extensions are set by this process only: by the connection, or by `service_as`.
pub(crate) fn caller(core: &Core, request: &Request) -> Option<(Identity, FieldStanding)> {
    if let Some(Some(Peer { identity, until })) = request.extensions().get::<Option<Peer>>() {
        // A connection may outlive the certificate it was opened with.
        let standing = FieldStanding::Certificate { until: *until };
        return if standing.holds(core) { Some((identity.clone(), standing)) } else { None };
    }
    if let Some(header) = request.headers().get(http::header::AUTHORIZATION) {
        return account::holder(core, header);
    }
    request.extensions().get::<Identity>().map(|identity| (identity.clone(), FieldStanding::Process))
}

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Whom the caller wants to be taken for: itself, or somebody it may impersonate. What `--as` asks for is done as that
/// user or not at all.
pub(crate) fn impersonate(core: &Core, caller: Identity, headers: &HeaderMap) -> Result<Identity, Refusal> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(caller);
    }
    let readable = |value: &http::HeaderValue| value.to_str().map(str::to_owned).map_err(|_| unreadable());
    let all = |name: &str| headers.get_all(name).iter().map(readable).collect::<Result<Vec<_>, _>>();
    let (users, groups, uids) = (all(USER)?, all(GROUP)?, all(UID)?);
    let [user] = users.as_slice() else { return Err(no_user()) };
    if user.is_empty() {
        return Err(no_user());
    }
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let attributes =
            Attributes { verb: "impersonate", group, resource, subresource, namespace, name, ..Attributes::default() };
        core.hub.read(|store| auth::authorize(store, &caller, &attributes))
    };
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, name)) => may("", "serviceaccounts", "", namespace, name)?,
        None => may("", "users", "", "", user)?,
    }
    for group in &groups {
        may("", "groups", "", "", group)?;
    }
    let uid = match uids.as_slice() {
        [] => String::new(),
        [uid] => {
            may("authentication.k8s.io", "uids", "", "", uid)?;
            uid.clone()
        }
        _several => return Err(Refusal::bad_request("impersonation takes the header Impersonate-Uid once")),
    };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-")) {
        let name = name.as_str();
        match (name, name.strip_prefix(EXTRA)) {
            (USER | GROUP | UID, _) => {}
            (_, Some(key)) => {
                let (key, value) = (unescape(key).ok_or_else(unreadable)?, readable(value)?);
                may("authentication.k8s.io", "userextras", &key, "", &value)?;
                extra.entry(key).or_default().push(value);
            }
            (_, None) => return Err(Refusal::bad_request(format!("{name} is not a header of impersonation"))),
        }
    }
    let mut groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let place = account.map(|(namespace, _)| format!("system:serviceaccounts:{namespace}"));
    if let (Some(place), true) = (&place, groups.is_empty()) {
        groups.extend(["system:serviceaccounts", place]);
    }
    Ok(Identity::new(user, &groups).with(Particulars { uid, extra }))
}

fn no_user() -> Refusal {
    Refusal::bad_request("impersonation needs the header Impersonate-User, once and not empty")
}

fn unreadable() -> Refusal {
    Refusal::bad_request("the headers of impersonation cannot be read")
}

/// Waits until the caller may no longer do what it began: its token ended, its account or its role is gone. For
/// streams, which are judged when they start and last for hours.
pub(crate) async fn ended(
    core: Arc<Core>,
    info: Arc<RequestInfo>,
    verb: &'static str,
    standing: FieldStanding,
    every: Duration,
) -> Refusal {
    if matches!(standing, FieldStanding::Process) {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(every).await;
        if !standing.holds(&core) {
            return Refusal::unauthorized();
        }
        if let Err(refusal) = authorize(&core, &info, verb) {
            return refusal;
        }
    }
}
