//! `longshore explain`: the very rule that is waiting, in one sentence.
//!
//! The running process answers, because it alone knows what is under way and what failed last. It asks every rule, read
//! only, about the object and what hangs on it, and tells the first that is not settled, from cause to consequence.

use anyhow::{Context, Result, bail};
use api::{Kind, Object, ObjectKey};
use control::{Cache, Rules};
use io_run::{Explanation, Manager, Verdict};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_binding::Binding;
use rules_node::Node;
use rules_provisioner::Provisioner;
use rules_registrar::Registrar;
use rules_scheduler::Scheduler;
use serde_json::{Value, json};

use crate::args;
use crate::layout::Layout;
use crate::out;

/// The path the running process answers at.
pub const PATH: &str = "/longshore/v1/explain";

/// Names people use for kinds.
const NAMES: [(&str, Kind); 5] = [
    ("pvc persistentvolumeclaim persistentvolumeclaims claim", Kind::PersistentVolumeClaim),
    ("pv persistentvolume persistentvolumes volume", Kind::PersistentVolume),
    ("va volumeattachment volumeattachments attachment", Kind::VolumeAttachment),
    ("pod pods po", Kind::Pod),
    ("node nodes no", Kind::Node),
];

/// The controllers from cause to consequence; those that are not named come last.
const CAUSES: [&str; 7] = [
    Provisioner::NAME,
    Binding::NAME,
    Scheduler::NAME,
    Attacher::NAME,
    AttachDetach::NAME,
    Node::NAME,
    Registrar::NAME,
];

/// What every controller makes of an object and what hangs on it, from cause to consequence; `None` if there is no such
/// object.
pub fn explain(manager: &Manager, kind: Kind, key: &ObjectKey) -> Option<Vec<Explanation>> {
    let chain = manager.cache().look(|cache| chain(cache, kind, key))?;
    let mut said = manager.explain(&chain, &CAUSES);
    // What was asked about comes first when everything is settled.
    said.sort_by_key(|e| e.why.settled && e.key != key.to_string());
    Some(said)
}

/// The kind a person means.
pub fn kind_named(name: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    NAMES.iter().find(|(names, _)| names.split(' ').any(|n| n == name)).map(|(_, kind)| *kind)
}

/// The object and everything its state hangs on: a pod's claims, their volumes, the volumes' attachments, and its node.
fn chain(cache: &Cache, kind: Kind, key: &ObjectKey) -> Option<Vec<Object>> {
    let first = cache.get(kind, key)?;
    let mut chain = vec![first.clone()];
    let claims: Vec<ObjectKey> = match &first {
        Object::Pod(pod) => pod.claim_names().map(|name| ObjectKey::new(&*pod.metadata.namespace, name)).collect(),
        Object::PersistentVolumeClaim(claim) => vec![claim.metadata.key()],
        _ => Vec::new(),
    };
    let mut volumes: Vec<ObjectKey> = match &first {
        Object::PersistentVolume(volume) => vec![volume.metadata.key()],
        Object::VolumeAttachment(attachment) => attachment.volume().map(ObjectKey::cluster).into_iter().collect(),
        _ => Vec::new(),
    };
    for key in claims {
        let Some(claim) = cache.claim(&key) else { continue };
        chain.push(Object::PersistentVolumeClaim(claim.clone()));
        if !claim.spec.volume_name.is_empty() {
            volumes.push(ObjectKey::cluster(&*claim.spec.volume_name));
        }
    }
    for key in volumes {
        chain.extend(cache.volume(&key).map(Object::PersistentVolume));
        chain.extend(cache.attachments_by_volume(&key.name).map(Object::VolumeAttachment));
    }
    if let Object::Pod(pod) = &first {
        chain.extend(cache.node(&ObjectKey::cluster(&*pod.spec.node_name)).map(Object::Node));
    }
    Some(chain)
}

/// One sentence out of what all rules say, given from cause to consequence.
pub fn sentence(kind: Kind, key: &ObjectKey, said: &[Explanation]) -> String {
    let what = format!("{} {key}", plain(kind));
    // What a node's drivers wait for concerns a pod only if the node's controller says so.
    let concerns = |e: &&Explanation| kind == Kind::Node || e.controller != Registrar::NAME;
    match said.iter().filter(concerns).find(|e| !e.why.settled) {
        Some(waiting) => {
            let how = match waiting.verdict {
                Verdict::Rests => "is waiting".to_string(),
                Verdict::Waits(millis) => format!("tries again in {:.1} s", millis as f64 / 1000.0),
                Verdict::WillDo(_) | Verdict::Doing => "is at work".to_string(),
            };
            ended(format!("{what}: {} {how}: {}", waiting.controller, waiting.why))
        }
        None => match said.first() {
            Some(settled) => ended(format!("{what} is settled: {}", settled.why)),
            None => format!("{what} is settled: no rule has anything to do with it."),
        },
    }
}

/// A sentence ends once.
fn ended(mut sentence: String) -> String {
    if !sentence.ends_with(['.', '?', '!']) {
        sentence.push('.');
    }
    sentence
}

/// The answer of the running process.
pub fn answer(kind: Kind, key: &ObjectKey, said: &[Explanation]) -> Value {
    let rules: Vec<Value> = said
        .iter()
        .map(|e| {
            let state = match e.verdict {
                Verdict::Rests if e.why.settled => "settled".to_string(),
                Verdict::Rests => "waiting".to_string(),
                Verdict::Waits(millis) => format!("again in {millis} ms"),
                Verdict::WillDo(action) => format!("about to {action}"),
                Verdict::Doing => "doing".to_string(),
            };
            json!({ "rules": e.controller, "key": e.key, "state": state, "code": e.why.code, "why": e.why.text })
        })
        .collect();
    json!({ "sentence": sentence(kind, key, said), "rules": rules })
}

fn plain(kind: Kind) -> &'static str {
    match kind {
        Kind::PersistentVolumeClaim => "claim",
        Kind::PersistentVolume => "volume",
        Kind::VolumeAttachment => "attachment",
        Kind::Pod => "pod",
        Kind::StorageClass => "class",
        Kind::CSIDriver => "driver",
        Kind::CSINode | Kind::Node => "node",
        Kind::VolumeSnapshot | Kind::VolumeSnapshotContent => "snapshot",
        _ => "object",
    }
}

/// The command: asks the running process and prints what it says.
pub async fn command(args: args::Explain) -> Result<()> {
    let Some((kind, name)) = args.object.split_once('/').and_then(|(kind, name)| Some((kind_named(kind)?, name)))
    else {
        bail!(
            "{} is not something to explain; write it as pvc/NAME, pod/NAME, pv/NAME, va/NAME or node/NAME",
            args.object
        );
    };
    let kubeconfig = match (args.kubeconfig, std::env::var_os("KUBECONFIG")) {
        (Some(path), _) => path,
        (None, Some(path)) if args.data_dir.is_none() => path.into(),
        (None, _) => Layout::new(args.data_dir)?.kubeconfig(),
    };
    let kube = io_kube::Kube::from_kubeconfig(&kubeconfig).await?;
    let namespace = if kind.namespaced() { args.namespace.as_str() } else { "" };
    let path = format!("{PATH}?kind={}&namespace={namespace}&name={name}", kind.name());
    let (status, body) = kube.get_raw(&path).await.context("nobody answers; is `longshore up` running?")?;
    let said: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if status == 404 && said["reason"] == "NotFound" && said["details"]["longshore"].is_null() {
        bail!("this server does not explain; name the kubeconfig of `longshore up` with --kubeconfig");
    }
    if status != 200 {
        bail!("{}", said["message"].as_str().unwrap_or("the server gave no answer"));
    }
    print(&args.output, args.all, &said);
    Ok(())
}

fn print(output: &args::Output, all: bool, said: &Value) {
    if *output == args::Output::Json {
        out::say(&said.to_string());
        return;
    }
    out::say(said["sentence"].as_str().unwrap_or_default());
    for rule in said["rules"].as_array().into_iter().flatten().filter(|_| all) {
        let field = |name: &str| rule[name].as_str().unwrap_or_default().to_string();
        out::say(&format!("  {:<13} {:<12} {}: {}", field("rules"), field("state"), field("key"), field("why")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::Why;

    fn said(controller: &'static str, verdict: Verdict, why: Why) -> Explanation {
        Explanation { controller, key: "default/data".into(), verdict, why }
    }

    #[test]
    fn the_first_unsettled_rule_is_the_sentence() {
        let key = ObjectKey::new("default", "data");
        let done = said("provisioner", Verdict::Rests, Why::settled("NotOurs", "another driver's claim"));
        let waiting = said("binding", Verdict::Rests, Why::waiting("ClassMissing", "class fast does not exist"));
        assert_eq!(
            sentence(Kind::PersistentVolumeClaim, &key, &[done.clone(), waiting]),
            "claim default/data: binding is waiting: class fast does not exist."
        );
        assert_eq!(
            sentence(Kind::PersistentVolumeClaim, &key, &[done]),
            "claim default/data is settled: another driver's claim."
        );
    }

    #[test]
    fn people_may_use_the_names_they_know() {
        assert_eq!(kind_named("PVC"), Some(Kind::PersistentVolumeClaim));
        assert_eq!(kind_named("volumeattachments"), Some(Kind::VolumeAttachment));
        assert_eq!(kind_named("service"), None);
    }
}
