//! Opening: from a directory to a server that answers.

use std::path::Path;
use std::sync::Arc;

use rules_store::{
    Context, Failure, Kind, Request, Store, StoreKey, Stored, WriteOptions, missing_accounts, root_certificates,
};
use serde_json::{Value, json};

use crate::audit::AuditLog;
use crate::directory::DataDirectory;
use crate::durable::{CommitError, DurableLog, Found, Row};
use crate::pki::Pki;
use crate::writer::{self, Writer, key_of, key_text};
use crate::{ApiServer, Config, Core, Error, http_api, hub, snapshots, tls, token};

/// A cluster does not work without these.
const NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-node-lease"];

pub(crate) fn open(config: Config) -> Result<ApiServer, Error> {
    let directory = DataDirectory::open(&config.data_dir)?;
    let audit = config.audit_log.as_deref().map(AuditLog::open).transpose()?;
    let pki = Pki::open(&directory.certificates(), &config.extra_names)?;
    let tls = tls::Tls::new(&pki)
        .map_err(|error| Error::Certificates { path: directory.certificates(), reason: error.to_string() })?;
    let signer = token::Signer::open(&directory.certificates())?;
    let database = directory.database();
    let (mut log, found, revision) = DurableLog::open(&database, config.max_database_bytes)?;
    let mut store = restore(&database, found, revision)?.with_tolerance(config.tolerance);
    let certificate = &pki.server_authority.certificate;
    ensure_namespaces(&mut store, &mut log, &database, certificate)?;
    let hub = Arc::new(hub::Hub::new(store.clone()));
    let writer = Writer::start(store, log, hub.clone(), directory, certificate.clone())?;
    let (logs, exec) = (config.logs, config.exec);
    let (limits, snapshots) = (config.limits, snapshots::Snapshots::default());
    let core = Arc::new(Core { hub, writer, snapshots, signer, logs, exec, limits, audit });
    let router = http_api::router(core.clone(), config.extra);
    Ok(ApiServer { core, pki: Arc::new(pki), tls: Arc::new(tls), router })
}

fn restore(database: &Path, found: Vec<Found>, revision: u64) -> Result<Store, Error> {
    let mut objects = Vec::with_capacity(found.len());
    for Found { key, value } in found {
        // The key is shown, the value never: it may be a secret.
        let shown: String = key.chars().take(600).flat_map(char::escape_debug).collect();
        let damaged = |what: &str| Error::Damaged { path: database.to_owned(), reason: format!("{what}: {shown}") };
        let place = key_of(&key).ok_or_else(|| damaged("an object of an unknown kind"))?;
        let value = serde_json::from_slice(&value).map_err(|_| damaged("an object that is not JSON"))?;
        objects.push(stored(place, value, revision).ok_or_else(|| damaged("an object without a proper version"))?);
    }
    Ok(Store::restore(revision, objects.into_iter()))
}

fn stored(key: StoreKey, value: Value, newest: u64) -> Option<Stored> {
    let metadata = value.get("metadata")?;
    let revision: u64 = metadata.get("resourceVersion")?.as_str()?.parse().ok()?;
    let named = metadata.get("name")?.as_str()? == &*key.name;
    if named && (1..=newest).contains(&revision) { Some(Stored { key, revision, value }) } else { None }
}

/// The namespaces a cluster has from the beginning, and account and certificate of each namespace, also of those from
/// before.
fn ensure_namespaces(store: &mut Store, log: &mut DurableLog, database: &Path, certificate: &str) -> Result<(), Error> {
    let mut rows = Vec::new();
    for name in NAMESPACES {
        if store.get(Kind::Namespace, "", name).is_none() {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let (kind, options) = (Kind::Namespace, WriteOptions::default());
            make(store, Request::Create { kind, namespace: String::new(), body, options }, &mut rows)
                .map_err(|failure| Error::Namespace { name, reason: failure.to_string() })?;
        }
    }
    for request in missing_accounts(store) {
        make(store, request, &mut rows)
            .map_err(|failure| Error::Namespace { name: "default", reason: failure.to_string() })?;
    }
    for request in root_certificates(store, certificate) {
        // One that somebody sealed stays as it is: no namespace is worse off than without.
        let _ = make(store, request, &mut rows);
    }
    if rows.is_empty() {
        return Ok(());
    }
    log.commit(&rows, store.revision()).map_err(|error| match error {
        CommitError::Full => Error::file(
            "write",
            database,
            std::io::Error::new(std::io::ErrorKind::StorageFull, "the disk is full; free some space and try again"),
        ),
        CommitError::Broken(reason) => Error::Damaged { path: database.to_owned(), reason },
    })
}

fn make(store: &mut Store, request: Request, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let uid = uuid::Uuid::new_v4().to_string();
    let context = Context { now_millis: writer::now_millis(), new_uid: &uid, actor: "system:longshore" };
    for change in store.apply(&context, request)?.changes {
        let value = Some(change.object.value.to_string().into());
        rows.push(Row { key: key_text(&change.object.key), revision: change.revision, value });
    }
    Ok(())
}
