//! `longshore explain`: the very rule that is waiting, in one sentence.
//!
//! The running process answers, because it alone knows what is under way and what failed last. It asks every rule, read
//! only, about the object and what its state hangs on; [`control::explain`] chooses what to tell.

mod asked;

pub use asked::kind_named;
use asked::{AskedServer, object_named};

use anyhow::{Context, Result, bail};
use api::{Kind, Object, ObjectRef};
use control::explain::{Telling, hangs_on, tell};
use control::{Outcome, Reply, Rules};
use io_run::{Explanation, Manager, Verdict};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_binding::{AttributesProtection, Binding};
use rules_node::Node;
use rules_nodelifecycle::NodeLifecycle;
use rules_provisioner::Provisioner;
use rules_registrar::{ObjectState, Registrar, namespace_state, object_state};
use rules_resizer::Resizer;
use rules_scheduler::Scheduler;
use serde_json::{Value, json};

use crate::{args, out};

/// The path the running process answers at.
pub const PATH: &str = "/longshore/v1/explain";

/// The controllers from cause to consequence; those that are not named come last.
const CAUSES: [&str; 10] = [
    Provisioner::NAME,
    Resizer::NAME,
    Binding::NAME,
    AttributesProtection::NAME,
    Scheduler::NAME,
    NodeLifecycle::NAME,
    Attacher::NAME,
    AttachDetach::NAME,
    Node::NAME,
    Registrar::NAME,
];

/// Who speaks first for an object that is settled.
const VOICES: [&str; 4] = [Scheduler::NAME, Binding::NAME, Attacher::NAME, Node::NAME];

/// What the running process knows about an object.
pub struct Answer {
    /// Nothing remains to be done about it.
    pub settled: bool,
    pub sentence: String,
    said: Vec<Explanation>,
}

/// What the running process knows about an object; `None` if there is no such object.
pub async fn answer(manager: &Manager, asked: &ObjectRef) -> Option<Answer> {
    if asked.kind == Kind::Namespace {
        let (status, body) = manager.kube().get_raw(&format!("/api/v1/namespaces/{}", asked.key.name)).await.ok()?;
        let found: Value = serde_json::from_slice(&body).ok().filter(|_| status == 200)?;
        let going = !found["metadata"]["deletionTimestamp"].is_null();
        let stands = manager.cache().look(|cache| namespace_state(&asked.key.name, going, cache));
        return Some(stands_as(asked, stands, Vec::new()));
    }
    if let Some(answer) = answer_cached(manager, asked) {
        return Some(answer);
    }
    // Kinds that no controller at work watches are in no cache.
    if manager.cache().look(|cache| cache.is_synced(asked.kind)) {
        return None;
    }
    let Outcome::Done(Reply::Object(object)) = manager.kube().read(asked).await else { return None };
    let stands = manager.cache().look(|cache| object_state(&object, cache));
    Some(match stands {
        Some(stands) => stands_as(asked, stands, Vec::new()),
        None => answer_of(&object, None, Vec::new()),
    })
}

/// The same for an object in the cache.
pub fn answer_cached(manager: &Manager, asked: &ObjectRef) -> Option<Answer> {
    let chain = manager.cache().look(|cache| hangs_on(cache, asked))?;
    let said = manager.explain(&chain, &CAUSES);
    let object = chain.first()?;
    let stands = manager.cache().look(|cache| object_state(object, cache));
    Some(answer_of(object, stands, said))
}

/// One sentence out of what all rules say, given from cause to consequence.
fn answer_of(object: &Object, stands: Option<ObjectState>, said: Vec<Explanation>) -> Answer {
    let asked = object.reference();
    let what = subject(&asked);
    let told = tell(object, &said, &VOICES);
    if let (Telling::Settled(_) | Telling::Nothing, Some(stands)) = (&told, stands) {
        return stands_as(&asked, stands, said);
    }
    let (settled, sentence) = match told {
        Telling::Waits(waiting) => {
            let how = match waiting.verdict {
                Verdict::Rests => "is waiting".to_string(),
                Verdict::Waits(millis) => format!("tries again in {:.1} s", millis as f64 / 1000.0),
                Verdict::WillDo(_) | Verdict::Doing => "is at work".to_string(),
            };
            (false, format!("{what}: {} {how}: {}", waiting.controller, waiting.why))
        }
        Telling::Held(finalizers) => {
            let names = finalizers.join(", ");
            (
                false,
                format!("{what} is being deleted and waits for whoever set these finalizers to remove them: {names}"),
            )
        }
        Telling::Settled(settled) => (true, format!("{what} is settled: {}", settled.why)),
        Telling::Nothing => (true, format!("{what} is settled: no rule has anything to do with it")),
    };
    Answer { settled, sentence: ended(sentence), said }
}

fn stands_as(asked: &ObjectRef, stands: ObjectState, said: Vec<Explanation>) -> Answer {
    let how = if stands.settled { "settled" } else { "waiting" };
    let sentence = ended(format!("{} is {how}: {}", subject(asked), stands.text));
    Answer { settled: stands.settled, sentence, said }
}

/// A sentence ends once.
fn ended(mut sentence: String) -> String {
    if !sentence.ends_with(['.', '?', '!']) {
        sentence.push('.');
    }
    sentence
}

impl Answer {
    /// As it travels.
    pub fn to_json(&self) -> Value {
        let rule = |one: &Explanation| {
            let state = match one.verdict {
                Verdict::Rests if one.why.settled => "settled".to_string(),
                Verdict::Rests => "waiting".to_string(),
                Verdict::Waits(millis) => format!("again in {millis} ms"),
                Verdict::WillDo(action) => format!("about to {action}"),
                Verdict::Doing => "doing".to_string(),
            };
            let (code, why) = (&one.why.code, &one.why.text);
            json!({ "rules": one.controller, "key": one.key, "state": state, "code": code, "why": why })
        };
        let rules: Vec<Value> = self.said.iter().map(rule).collect();
        json!({ "sentence": self.sentence, "settled": self.settled, "rules": rules })
    }
}

/// An object, as sentences about it begin.
fn subject(asked: &ObjectRef) -> String {
    let kind = match asked.kind {
        Kind::PersistentVolumeClaim => "claim",
        Kind::PersistentVolume => "volume",
        Kind::VolumeAttachment => "attachment",
        Kind::Pod => "pod",
        Kind::StorageClass => "class",
        Kind::CSIDriver => "driver",
        Kind::Node => "node",
        Kind::Namespace => "namespace",
        Kind::VolumeSnapshot => "snapshot",
        other => other.name(),
    };
    format!("{kind} {}", asked.key)
}

/// The command: asks the running process and prints what it says.
pub async fn command(args: args::Explain) -> Result<()> {
    let asked = object_named(&args.object, &args.namespace)?;
    let kubeconfig = AskedServer::chosen(args.kubeconfig, args.data_dir).kubeconfig()?;
    let kube = io_kube::Kube::from_kubeconfig(&kubeconfig).await?;
    let path = format!("{PATH}?kind={}&namespace={}&name={}", asked.kind.name(), asked.key.namespace, asked.key.name);
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

    fn claim(meta: Value) -> Object {
        Object::from_json(Kind::PersistentVolumeClaim, json!({ "metadata": meta })).unwrap()
    }

    fn said(about: &Object, controller: &'static str, why: Why) -> Explanation {
        Explanation { controller, key: "k".into(), about: vec![about.reference()], verdict: Verdict::Rests, why }
    }

    #[test]
    fn the_first_unsettled_rule_is_the_sentence() {
        let data = claim(json!({ "namespace": "default", "name": "data" }));
        let done = said(&data, "binding", Why::settled("Bound", "the claim is bound"));
        let waiting = said(&data, "provisioner", Why::waiting("Away", "the driver is away"));
        let told = answer_of(&data, None, vec![waiting, done.clone()]);
        assert_eq!(told.sentence, "claim default/data: provisioner is waiting: the driver is away.");
        assert_eq!((told.settled, told.to_json()["settled"].as_bool()), (false, Some(false)));
        let told = answer_of(&data, None, vec![done]);
        assert_eq!((told.settled, &*told.sentence), (true, "claim default/data is settled: the claim is bound."));
    }

    #[test]
    fn a_finalizer_of_another_is_named_whatever_the_rules_say() {
        let going = json!({ "namespace": "default", "name": "data", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["example.com/hold"] });
        let data = claim(going);
        let told = answer_of(&data, None, vec![said(&data, "binding", Why::settled("Going", "it is being deleted"))]);
        assert!(!told.settled && told.sentence.ends_with("remove them: example.com/hold."), "{}", told.sentence);
    }

    #[test]
    fn what_no_rule_waits_on_says_how_it_stands() {
        let class = Object::from_json(Kind::StorageClass, json!({ "metadata": { "name": "fast" } })).unwrap();
        let stands = ObjectState { settled: false, text: "its driver is away".into() };
        let told = answer_of(&class, Some(stands), Vec::new());
        assert_eq!((told.settled, &*told.sentence), (false, "class fast is waiting: its driver is away."));
    }
}
