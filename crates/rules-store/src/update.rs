use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, Subresource, Time};
use serde_json::{Value, json};

use crate::create::identify;
use crate::kinds::rules;
use crate::request::{Context, Target, WriteOptions};
use crate::store::{Applied, EventType, Store, Stored};
use crate::{Failure, PatchKind, decode, fields, meta, patch, size, validate};

/// What whoever applies on the server should know.
const UNOWNED: &str = "server-side apply: nobody's fields are recorded here, so what was left out of the file since \
                       the last time stays in the object, and conflicts with others are not found";

impl Store {
    /// PUT.
    pub(crate) fn update(
        &mut self,
        context: &Context<'_>,
        target: &Target,
        subresource: Option<Subresource>,
        body: Value,
        options: WriteOptions,
    ) -> Result<Applied, Failure> {
        let old = self.find(target)?;
        self.replace(context, &old, subresource, body, options)
    }

    /// PATCH in any of its languages.
    pub(crate) fn patch(
        &mut self,
        context: &Context<'_>,
        target: &Target,
        subresource: Option<Subresource>,
        kind: PatchKind,
        body: Value,
        options: WriteOptions,
    ) -> Result<Applied, Failure> {
        let old = match self.find(target) {
            Ok(old) => old,
            // Apply makes what is not there yet.
            Err(Failure::NotFound { .. })
                if kind == PatchKind::Apply && subresource.is_none() && !options.only_existing =>
            {
                return self.create_by_apply(context, target, body, options);
            }
            Err(failure) => return Err(failure),
        };
        let wanted = patch::apply(kind, target.kind, &old.value, &body)
            .map_err(|error| error.into_failure(target.kind, &target.name))?;
        let mut applied = self.replace(context, &old, subresource, wanted, options)?;
        if kind == PatchKind::Apply && options.judged {
            applied.warnings.push(UNOWNED.into());
        }
        Ok(applied)
    }

    fn create_by_apply(
        &mut self,
        context: &Context<'_>,
        target: &Target,
        mut body: Value,
        options: WriteOptions,
    ) -> Result<Applied, Failure> {
        // A uid or version names an object that exists; making another one would not be it.
        if !meta::text(&body, "uid").is_empty() || !meta::text(&body, "resourceVersion").is_empty() {
            return Err(Failure::Conflict {
                kind: target.kind,
                name: target.name.clone(),
                message: "it names an object that no longer exists; read it again".into(),
            });
        }
        check_name(target, &body)?;
        meta::set_default(&mut body, "name", &target.name);
        self.create(context, target.kind, &target.namespace, body, options)
    }

    /// The one way from an old object to a new one.
    fn replace(
        &mut self,
        context: &Context<'_>,
        old: &Arc<Stored>,
        subresource: Option<Subresource>,
        mut wanted: Value,
        options: WriteOptions,
    ) -> Result<Applied, Failure> {
        let kind = old.key.kind;
        let target = Target::new(kind, &*old.key.namespace, &*old.key.name);
        if subresource.is_some() && !kind.has_status() {
            return Err(Failure::NotFound { kind, name: format!("{}/status", target.name) });
        }
        identify(kind, &target.namespace, &mut wanted)?;
        check_name(&target, &wanted)?;
        meta::set_default(&mut wanted, "name", &target.name);
        check_same_object(&target, &old.value, &wanted)?;
        let mut warnings = decode::decode(kind, &mut wanted, options.field_validation)?;
        settle(old, subresource, &mut wanted);
        // What controllers write into a status is no wish.
        let judged = options.judged && subresource.is_none();
        let verdict = if judged { fields::judge(kind, Some(&old.value), &wanted) } else { fields::Verdict::default() };
        warnings.extend(verdict.warnings);
        (rules(kind).defaults)(&mut wanted);
        (rules(kind).stamp)(&Time::from_unix_millis(context.now_millis), Some(&old.value), &mut wanted);
        meta::tidy(&mut wanted);
        size::check(Some(&old.value), &wanted)?;
        (rules(kind).admit_update)(self, &old.value, &wanted)?;
        validate::update(kind, &old.value, &wanted, verdict.refused)?;
        count_generation(&old.value, &mut wanted);
        self.finish(old, wanted, warnings)
    }

    /// Commits the new state: nothing if nothing changed, a deletion if the last finalizer went.
    pub(crate) fn finish(
        &mut self,
        old: &Arc<Stored>,
        wanted: Value,
        warnings: Vec<String>,
    ) -> Result<Applied, Failure> {
        if wanted == old.value {
            return Ok(Applied { changes: vec![], reply: old.clone(), warnings });
        }
        if self.may_go(&old.key, &wanted) {
            let mut applied = self.remove(old, wanted);
            applied.warnings = warnings;
            return Ok(applied);
        }
        let change = self.commit(EventType::Modified, old.key.clone(), wanted, Some(old.clone()));
        Ok(Applied { reply: change.object.clone(), changes: vec![change], warnings })
    }

    /// `pods/binding`.
    pub(crate) fn bind(
        &mut self,
        context: &Context<'_>,
        target: &Target,
        uid: Option<&str>,
        node: &str,
    ) -> Result<Applied, Failure> {
        if target.kind != Kind::Pod {
            return Err(Failure::MethodNotAllowed { kind: target.kind, verb: "binding".into() });
        }
        if node.is_empty() {
            return Err(Failure::bad_request("target.name must be the name of a node"));
        }
        let old = self.find(target)?;
        let refuse = |message: String| Failure::Conflict { kind: Kind::Pod, name: target.name.clone(), message };
        if uid.is_some_and(|uid| !uid.is_empty() && uid != old.uid()) {
            return Err(refuse(format!("its uid is {}, so it is another pod of the same name", old.uid())));
        }
        if old.is_deleting() {
            return Err(refuse("the pod is being deleted, so it cannot be put on a node".into()));
        }
        if let Some(node) = old.value["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
            return Err(refuse(format!("the pod is already assigned to node {node}")));
        }
        let mut wanted = old.value.clone();
        meta::object_at(&mut wanted, "spec").insert("nodeName".into(), node.into());
        set_scheduled(context, &mut wanted);
        count_generation(&old.value, &mut wanted);
        self.finish(&old, wanted, vec![])
    }
}

/// The name in the body, if any, is the name in the path.
fn check_name(target: &Target, body: &Value) -> Result<(), Failure> {
    let said = meta::text(body, "name");
    if said.is_empty() || said == target.name {
        return Ok(());
    }
    let path = &target.name;
    Err(Failure::bad_request(format!("the name of the body ({said}) does not match the name of the path ({path})")))
}

/// reliability 86: a stale version or a foreign uid is a conflict.
fn check_same_object(target: &Target, old: &Value, wanted: &Value) -> Result<(), Failure> {
    let refuse = |message: String| Failure::Conflict { kind: target.kind, name: target.name.clone(), message };
    let (uid, current) = (meta::text(wanted, "uid"), meta::text(old, "uid"));
    if !uid.is_empty() && uid != current {
        return Err(refuse(format!("its uid is {current}, not {uid}: another object now has this name")));
    }
    let (version, current) = (meta::text(wanted, "resourceVersion"), meta::text(old, "resourceVersion"));
    // "0" means "any version" to every Kubernetes client.
    if !version.is_empty() && version != "0" && version != current {
        return Err(refuse(format!(
            "the object has been modified since version {version}; read it again, apply your change to the latest \
             version and try again"
        )));
    }
    Ok(())
}

/// Puts back what this door of the object does not open.
fn settle(old: &Stored, subresource: Option<Subresource>, wanted: &mut Value) {
    match subresource {
        Some(Subresource::Status) => {
            let mut settled = old.value.clone();
            meta::carry_part(wanted, &mut settled, "status");
            if rules(old.key.kind).status_with_annotations {
                meta::carry(wanted, &mut settled, "annotations");
            }
            *wanted = settled;
        }
        None => {
            if old.key.kind.has_status() {
                meta::carry_part(&old.value, wanted, "status");
            }
            for key in ["uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
                meta::carry(&old.value, wanted, key);
            }
            for key in ["creationTimestamp", "generateName"] {
                if wanted["metadata"].get(key).is_none() {
                    meta::carry(&old.value, wanted, key);
                }
            }
        }
    }
}

/// reliability 100: the generation moves exactly when the spec does.
fn count_generation(old: &Value, wanted: &mut Value) {
    let generation = old["metadata"]["generation"].as_i64();
    if old.get("spec") != wanted.get("spec") {
        meta::of(wanted).insert("generation".into(), (generation.unwrap_or(0) + 1).into());
    }
}

fn set_scheduled(context: &Context<'_>, pod: &mut Value) {
    let now = Time::from_unix_millis(context.now_millis).0;
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastTransitionTime": now,
    });
    let conditions = meta::object_at(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(list) = conditions {
        list.retain(|c| c["type"].as_str() != Some("PodScheduled"));
        list.push(condition);
    }
}
