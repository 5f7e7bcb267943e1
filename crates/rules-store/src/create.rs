use alloc::format;
use alloc::string::String;
use alloc::vec;

use api::{Kind, Time};
use serde_json::Value;

use crate::kinds::rules;
use crate::request::{Context, WriteOptions};
use crate::store::{Applied, EventType, Store, StoreKey};
use crate::{Failure, decode, fields, generate_name, meta, size, validate};

/// Kubernetes cuts a prefix so that the whole generated name fits a label.
const LONGEST_PREFIX: usize = 58;

impl Store {
    pub(crate) fn create(
        &mut self,
        context: &Context<'_>,
        kind: Kind,
        namespace: &str,
        mut body: Value,
        options: WriteOptions,
    ) -> Result<Applied, Failure> {
        identify(kind, namespace, &mut body)?;
        if !meta::text(&body, "resourceVersion").is_empty() {
            return Err(Failure::bad_request("metadata.resourceVersion must not be set on an object to be created"));
        }
        let mut warnings = decode::decode(kind, &mut body, options.field_validation)?;
        let verdict = if options.judged { fields::judge(kind, None, &body) } else { fields::Verdict::default() };
        warnings.extend(verdict.warnings);
        let generated = self.choose_name(context, kind, namespace, &mut body);
        strip(kind, &mut body);
        self.check_namespace(kind, namespace, meta::text(&body, "name"))?;
        stamp(context, &mut body);
        (rules(kind).admit)(self, &mut body);
        (rules(kind).defaults)(&mut body);
        (rules(kind).stamp)(&Time::from_unix_millis(context.now_millis), None, &mut body);
        if body.get("spec").is_some() {
            meta::of(&mut body).insert("generation".into(), 1.into());
        }
        meta::tidy(&mut body);
        size::check(None, &body)?;
        validate::create(kind, &body, verdict.refused)?;
        warnings.extend((rules(kind).admit_create)(self, &body)?);
        let key = StoreKey::new(kind, namespace, meta::text(&body, "name"));
        if self.get(kind, namespace, &key.name).is_some() {
            let name = String::from(&*key.name);
            return Err(match generated {
                // The dice were bad eight times; a client that tries again gets new ones.
                true => Failure::Conflict { kind, name, message: "no free name was found; try again".into() },
                false => Failure::AlreadyExists { kind, name },
            });
        }
        let change = self.commit(EventType::Added, key, body, None);
        Ok(Applied { reply: change.object.clone(), changes: vec![change], warnings })
    }

    /// Completes `generateName`. Says whether the name was made here.
    fn choose_name(&self, context: &Context<'_>, kind: Kind, namespace: &str, body: &mut Value) -> bool {
        if !meta::text(body, "name").is_empty() {
            return false;
        }
        let prefix = meta::text(body, "generateName");
        if prefix.is_empty() {
            return false;
        }
        let prefix: String = prefix.chars().take(LONGEST_PREFIX).collect();
        let mut name = String::new();
        for round in 0..8 {
            name = format!("{prefix}{}", generate_name::suffix(context.new_uid, round));
            if self.get(kind, namespace, &name).is_none() {
                break;
            }
        }
        meta::of(body).insert("name".into(), name.into());
        true
    }

    /// Objects are created only in a namespace that exists and stays.
    fn check_namespace(&self, kind: Kind, namespace: &str, name: &str) -> Result<(), Failure> {
        if !kind.namespaced() {
            return Ok(());
        }
        let Some(home) = self.get(Kind::Namespace, "", namespace) else {
            return Err(Failure::NotFound { kind: Kind::Namespace, name: namespace.into() });
        };
        if home.is_deleting() {
            let message = format!("namespace {namespace} is being deleted, so nothing new can be created in it");
            return Err(Failure::Forbidden { kind, name: name.into(), message });
        }
        Ok(())
    }
}

/// The body is of the kind the path names and lives in the namespace the path names.
pub(crate) fn identify(kind: Kind, namespace: &str, body: &mut Value) -> Result<(), Failure> {
    let Value::Object(map) = body else {
        return Err(Failure::bad_request(format!("the body must be a {} object", kind.name())));
    };
    for (key, wanted) in [("apiVersion", kind.api_version()), ("kind", kind.name())] {
        match map.get(key).and_then(Value::as_str) {
            Some(said) if said != wanted && !said.is_empty() => {
                return Err(Failure::bad_request(format!(
                    "the body says {key} {said:?}, but this path takes {wanted:?}"
                )));
            }
            Some(_) | None => map.insert(key.into(), wanted.into()),
        };
    }
    if map.get("metadata").is_some_and(|meta| !meta.is_object() && !meta.is_null()) {
        return Err(Failure::bad_request("metadata must be an object"));
    }
    if kind.namespaced() && namespace.is_empty() {
        return Err(Failure::bad_request(format!("{} live in a namespace; name one in the path", kind.plural())));
    }
    let said = meta::text(body, "namespace");
    if !said.is_empty() && said != namespace {
        return Err(Failure::bad_request(format!(
            "the namespace of the body ({said}) does not match the namespace of the path ({namespace})"
        )));
    }
    if namespace.is_empty() {
        meta::of(body).remove("namespace");
    } else {
        meta::of(body).insert("namespace".into(), namespace.into());
    }
    Ok(())
}

/// What the server owns is not taken from the sender.
fn strip(kind: Kind, body: &mut Value) {
    let meta = meta::of(body);
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        meta.remove(key);
    }
    if kind.has_status()
        && !rules(kind).created_with_status
        && let Value::Object(map) = body
    {
        map.remove("status");
    }
}

fn stamp(context: &Context<'_>, body: &mut Value) {
    let meta = meta::of(body);
    meta.insert("uid".into(), context.new_uid.into());
    meta.insert("creationTimestamp".into(), Time::from_unix_millis(context.now_millis).0.into());
}
