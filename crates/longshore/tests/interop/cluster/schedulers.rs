//! Our scheduler and the real kube-scheduler say the same of pods that no node takes. Both look at the same nodes,
//! volumes and classes of one kube-apiserver, each at a namespace of its own with the same claims and pods.

use std::collections::BTreeMap;
use std::path::Path;

use prove_cluster::{ControlPlane, Options, PeerProcess, eventually, peer};
use serde_json::Value;

use super::closed;
use super::no_node::{self, Case};
use super::scene::PATIENCE;
use crate::client::Client;

/// The namespace of the pods that name kube-scheduler; it is the name by which they do.
const THEIRS: &str = "theirs";
/// The namespace of the pods that name no scheduler.
const OURS: &str = "ours";

/// kube-scheduler answers to a name that is not the usual one, because ours answers to that.
fn configuration(kubeconfig: &Path) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         leaderElection: {{leaderElect: false}}\n\
         clientConnection: {{kubeconfig: {}, qps: 1000, burst: 1000}}\n\
         profiles: [{{schedulerName: {THEIRS}}}]\n",
        kubeconfig.display()
    )
}

struct Both {
    // Dropped first: it writes to the control plane.
    ours: PeerProcess,
    control: ControlPlane,
    api: Client,
}

impl Both {
    fn start() -> Both {
        let gates = || vec![format!("--feature-gates={}", closed::GATES)];
        let mut control = ControlPlane::start(Options { apiserver_flags: gates(), ..Options::default() }).unwrap();
        for place in [THEIRS, OURS] {
            control.kubectl(&["create", "namespace", place]).unwrap();
        }
        let file = control.directory().join("scheduler.yaml");
        std::fs::write(&file, configuration(control.kubeconfig())).unwrap();
        let config = format!("--config={}", file.display());
        let program = peer("kube-scheduler").unwrap();
        control.run("kube-scheduler", &program, &[&config, "--secure-port=0", &gates()[0]]).unwrap();
        let kubeconfig = format!("--kubeconfig={}", control.kubeconfig().display());
        let words = ["controllers", "--controllers=scheduler", &kubeconfig, "-vv"];
        let program = Path::new(env!("CARGO_BIN_EXE_longshore"));
        let ours = PeerProcess::start("ours", program, &words, control.directory()).unwrap();
        let api = Client::new(control.kubeconfig());
        Both { ours, control, api }
    }

    /// The same objects for both.
    fn apply(&self, objects: impl Fn(&str) -> String) {
        self.control.apply(&(objects(THEIRS) + &objects(OURS))).unwrap();
    }

    /// The message of each pod's condition, once its reason is that the pod cannot be scheduled.
    fn conditions(&self, place: &str) -> BTreeMap<String, String> {
        let pods = self.api.list(&format!("/api/v1/namespaces/{place}/pods"));
        let told = pods.iter().filter_map(|pod| {
            let name = pod["metadata"]["name"].as_str()?;
            let mut conditions = pod["status"]["conditions"].as_array()?.iter();
            let condition = conditions.find(|condition| condition["type"] == "PodScheduled")?;
            let waits = condition["status"] == "False" && condition["reason"] == "Unschedulable";
            waits.then(|| (name.to_string(), condition["message"].as_str().unwrap_or_default().to_string()))
        });
        told.collect()
    }

    /// What the events of each pod say that it could not be scheduled.
    fn events(&self, place: &str) -> BTreeMap<String, Vec<String>> {
        let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in self.api.list(&format!("/api/v1/namespaces/{place}/events")) {
            assert_eq!((&event["reason"], &event["type"]), (&"FailedScheduling".into(), &"Warning".into()), "{event}");
            let word = |value: &Value| value.as_str().unwrap().to_string();
            told.entry(word(&event["involvedObject"]["name"])).or_default().push(word(&event["message"]));
        }
        told
    }

    /// Waits until both have told of every case what is expected, in the condition and in an event.
    fn wait_told(&mut self, cases: &[Case]) {
        let look = || {
            let [theirs, ours] = [THEIRS, OURS].map(|place| (self.conditions(place), self.events(place)));
            let wrong: Vec<String> = cases.iter().filter_map(|case| wrong(case, &theirs, &ours)).collect();
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
        };
        let told = eventually("both schedulers to say what is expected", PATIENCE, look);
        self.ours.check().unwrap();
        self.control.check().unwrap();
        told.unwrap_or_else(|error| panic!("{error}\n--- ours\n{}", self.ours.log_tail()));
    }
}

type Told = (BTreeMap<String, String>, BTreeMap<String, Vec<String>>);

/// How what was told of a case differs from what is expected; nothing if it does not.
fn wrong(case: &Case, theirs: &Told, ours: &Told) -> Option<String> {
    let told = |(conditions, events): &Told| {
        let condition = conditions.get(case.name).cloned().unwrap_or_default();
        let in_event = events.get(case.name).is_some_and(|said| said.contains(&condition));
        (condition, in_event)
    };
    let wanted = [case.theirs, case.ours].map(whole);
    let ((their_text, their_event), (our_text, our_event)) = (told(theirs), told(ours));
    let same = plain(&their_text, THEIRS) == wanted[0] && plain(&our_text, OURS) == wanted[1];
    let text = format!("{}:\n  theirs: {their_text}\n  ours:   {our_text}", case.name);
    if !same {
        Some(format!("{text}\n  wanted: {}\n  ours:   {}", wanted[0], wanted[1]))
    } else if !(their_event && our_event) {
        Some(format!("{text}\n  in an event: {their_event}, {our_event}"))
    } else {
        None
    }
}

/// The whole message, which begins with how many nodes there are, where there are some.
fn whole(reasons: &[&str]) -> String {
    let text = reasons.join(", ");
    if text.starts_with("no nodes") { text } else { format!("{}{text}", closed::NONE) }
}

/// The reasons alone. kube-scheduler ends the sentence, and adds whether ending other pods would help; ours adds in
/// parentheses which nodes, and which claim, taint or driver.
fn plain(text: &str, place: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text.split(". ").next().unwrap_or_default());
    // `node(s)` has no space before it.
    while let Some((before, after)) = rest.split_once(" (") {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_names, after)| after);
    }
    kept.push_str(rest);
    kept.trim_end_matches('.').replace(&format!("{place}/"), "PLACE/")
}

// SC-6.
#[test]
fn our_scheduler_says_what_kube_scheduler_says_of_pods_that_no_node_takes() {
    let mut both = Both::start();
    both.apply(no_node::early);
    both.wait_told(&[no_node::EARLY]);
    for place in [THEIRS, OURS] {
        both.api.delete(&format!("/api/v1/namespaces/{place}/pods/{}?gracePeriodSeconds=0", no_node::EARLY.name));
    }

    both.control.apply(closed::CLUSTER).unwrap();
    // The server adds this taint to every new node; there is no kubelet to say that one is ready.
    let ready = [&["taint", "node"][..], &closed::READY, &["node.kubernetes.io/not-ready-"]].concat();
    both.control.kubectl(&ready).unwrap();
    both.apply(closed::claims);
    for place in [THEIRS, OURS] {
        for (claim, phase) in closed::PHASES {
            let path = format!("/api/v1/namespaces/{place}/persistentvolumeclaims/{claim}/status");
            both.api.patch(&path, serde_json::json!({ "status": { "phase": phase } }));
        }
        both.api.delete(&format!("/api/v1/namespaces/{place}/persistentvolumeclaims/{}", closed::DELETED));
    }
    both.apply(|place| no_node::CASES.iter().map(|case| no_node::pod(place, place == THEIRS, case)).collect());
    both.wait_told(&no_node::CASES);
}
