//! `longshore controllers` and `longshore sidecar` work together, with our driver, on the real kube-apiserver beside
//! the real kube-scheduler and what else kube-controller-manager runs. There is no kubelet: the test reports what is
//! in use.

use std::collections::BTreeMap;
use std::time::Duration;

use api::names;
use prove_cluster::{ControlPlane, Options, PeerProcess, Scratch, eventually};
use serde_json::{Value, json};

use super::controllers::WITHOUT_VOLUMES;
use super::crew::{PLACE, controllers, grant_both, sidecar};
use super::plane::{audit, audit_flags};
use super::scene::PATIENCE;
use super::writes::{Cost, Record};
use super::{backend, writes};
use crate::client::Client;
use crate::stand::Stand;
use crate::world::{ATTACHMENTS, DRIVER, VOLUMES};

const NODES: [&str; 2] = ["n1", "n2"];
/// Claims of this class are bound at once.
const NOW: &str = "now";
/// Claims of this class wait until kube-scheduler has chosen a node for their pod.
const LATER: &str = "later";

/// Claims whose life is counted, of each class.
const COUNTED: usize = 2;
/// Claims that are under way when the leaders are killed, of each class.
const WAVE: usize = 15;

fn cluster() -> String {
    let class = |name: &str, mode: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\n\
             provisioner: {DRIVER}\nallowVolumeExpansion: true\nvolumeBindingMode: {mode}\n"
        )
    };
    let node = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n\
             \x20 labels: {{kubernetes.io/os: linux, kubernetes.io/hostname: {name}}}\n\
             \x20 annotations: {{volumes.kubernetes.io/controller-managed-attach-detach: 'true'}}\n\
             status:\n  allocatable: {{cpu: '64', memory: 64Gi, pods: '200'}}\n\
             \x20 capacity: {{cpu: '64', memory: 64Gi, pods: '200'}}\n\
             ---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {{name: {name}}}\n\
             spec: {{drivers: [{{name: {DRIVER}, nodeID: {name}}}]}}\n"
        )
    };
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {PLACE}}}\n");
    namespace + &class(NOW, "Immediate") + &class(LATER, "WaitForFirstConsumer") + &NODES.map(node).concat()
}

fn claim(name: &str) -> Value {
    let class = if name.contains(LATER) { LATER } else { NOW };
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": PLACE},
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "16Mi"}},
        },
    })
}

/// A pod of the name of its claim. kube-scheduler chooses the node, among all or this one alone.
fn pod(name: &str, node: Option<&str>, volume: Value) -> Value {
    let mut volume = volume;
    volume["name"] = "data".into();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": PLACE},
        "spec": {
            "automountServiceAccountToken": false,
            "nodeSelector": node.map(|node| json!({"kubernetes.io/hostname": node})),
            "containers": [
                {"name": "main", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            ],
            "volumes": [volume],
        },
    })
}

fn user(name: &str, node: Option<&str>) -> Value {
    pod(name, node, json!({"persistentVolumeClaim": {"claimName": name}}))
}

/// Claims of both classes.
fn names(wave: &str, each: usize) -> Vec<String> {
    let of = |class: &'static str| (0..each).map(move |number| format!("{wave}-{class}-{number}"));
    of(NOW).chain(of(LATER)).collect()
}

fn of_class<'a>(claims: &'a [String], class: &str) -> Vec<&'a String> {
    claims.iter().filter(|name| name.contains(class)).collect()
}

struct Together {
    // In the order they are dropped: who works, then what is worked on.
    controllers: PeerProcess,
    sidecar: PeerProcess,
    stand: Stand,
    api: Client,
    record: Record,
    control: ControlPlane,
    _policy: Scratch,
    lives: usize,
}

impl Together {
    fn start() -> Together {
        let policy = Scratch::new("audit").unwrap();
        let control = ControlPlane::start(Options {
            controller_manager: true,
            scheduler: true,
            // Nobody judges nodes that have no kubelet.
            controllers: format!("{WITHOUT_VOLUMES},-node-lifecycle-controller"),
            apiserver_flags: audit_flags(policy.path()),
            ..Options::default()
        })
        .unwrap();
        control.apply(&cluster()).unwrap();
        control.kubectl(&["taint", "node", "n1", "n2", "node.kubernetes.io/not-ready-"]).unwrap();
        // Both nodes are this machine: what one node has attached the other may have next.
        let stand = Stand::ours(&["--peer", "n2", "--without", "topology"]);
        grant_both(&control, &stand);
        let (controllers, sidecar) = (controllers(&stand, 0), sidecar(&stand, 0));
        let (api, record) = (Client::new(control.kubeconfig()), Record::new(audit(&control)));
        let account = format!("/api/v1/namespaces/{PLACE}/serviceaccounts");
        let made = api.watch(&account, |all| all.iter().any(|one| one["metadata"]["name"] == "default"));
        made.unwrap();
        Together { controllers, sidecar, stand, api, record, control, _policy: policy, lives: 1 }
    }

    fn path(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{PLACE}/{plural}")
    }

    fn make(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            let plural = if object["kind"] == "Pod" { "pods" } else { "persistentvolumeclaims" };
            self.api.ask("POST", &self.path(plural), "application/json", &object.to_string()).unwrap();
        }
    }

    /// As a kubelet does once the containers have ended.
    fn end_pods<'a>(&self, pods: impl IntoIterator<Item = &'a String>) {
        pods.into_iter().for_each(|pod| self.api.delete(&format!("{}/{pod}?gracePeriodSeconds=0", self.path("pods"))));
    }

    fn delete_claims<'a>(&self, claims: impl IntoIterator<Item = &'a String>) {
        let path = self.path("persistentvolumeclaims");
        claims.into_iter().for_each(|claim| self.api.delete(&format!("{path}/{claim}")));
    }

    fn wait(&mut self, what: &str, collection: &str, wanted: impl Fn(&[&Value]) -> bool) -> Vec<Value> {
        let found = self.api.watch(collection, wanted);
        self.controllers.check().unwrap();
        self.sidecar.check().unwrap();
        found.unwrap_or_else(|last| panic!("waited for {what} in vain: {last}\n{}", self.told()))
    }

    /// Claims and volumes both say that they are bound.
    fn wait_bound(&mut self, claims: &[&String]) {
        let named = |object: &Value, path: &Value| claims.iter().any(|name| *path == name.as_str()) && bound(object);
        let count = |all: &[&Value], path: fn(&Value) -> &Value| {
            all.iter().filter(|object| named(object, path(object))).count() == claims.len()
        };
        let path = self.path("persistentvolumeclaims");
        self.wait("claims to be bound", &path, |all| count(all, |claim| &claim["metadata"]["name"]));
        self.wait("volumes to be bound", VOLUMES, |all| count(all, |volume| &volume["spec"]["claimRef"]["name"]));
    }

    /// The volumes of claims, with the names by which nodes speak of them.
    fn volumes_of(&self, claims: &[String]) -> BTreeMap<String, String> {
        let all = self.api.list(VOLUMES).into_iter();
        let of_claims = all.filter(|volume| claims.iter().any(|name| volume["spec"]["claimRef"]["name"] == **name));
        let entry = |volume: Value| {
            let word = |value: &Value| value.as_str().unwrap().to_string();
            let unique = names::unique_volume_name(DRIVER, &word(&volume["spec"]["csi"]["volumeHandle"]));
            (word(&volume["metadata"]["name"]), unique)
        };
        of_claims.map(entry).collect()
    }

    /// The volumes are attached to this node and to no other, and the nodes are told so; with no node, to none at all.
    fn wait_attached(&mut self, volumes: &BTreeMap<String, String>, to: Option<&str>) {
        let ours = |attachment: &&&Value| {
            attachment["spec"]["source"]["persistentVolumeName"].as_str().is_some_and(|name| volumes.contains_key(name))
        };
        self.wait("attachments", ATTACHMENTS, |all| {
            let there: Vec<&&Value> = all.iter().filter(ours).collect();
            let right = |one: &&&Value| to.is_some_and(|to| one["spec"]["nodeName"] == to) && attached(one);
            there.iter().all(right) && there.len() == to.map_or(0, |_| volumes.len())
        });
        self.wait("nodes to be told", "/api/v1/nodes", |nodes| {
            nodes.iter().all(|node| {
                let told = node["status"]["volumesAttached"].to_string();
                let here = to.is_some_and(|to| node["metadata"]["name"] == to);
                volumes.values().all(|unique| told.contains(&format!("\"{unique}\"")) == here)
            })
        });
    }

    /// As a kubelet tells which volumes it has mounted.
    fn use_on(&self, node: &str, volumes: &BTreeMap<String, String>) {
        let used: Vec<&String> = volumes.values().collect();
        self.api.patch(&format!("/api/v1/nodes/{node}/status"), json!({"status": {"volumesInUse": used}}));
    }

    /// Deletes pods whose volumes their node has in use still, then tells that it has not.
    fn leave(&self, node: &str, claims: &[String], volumes: &BTreeMap<String, String>) {
        self.end_pods(claims);
        // Whoever would detach them now has the time for it.
        std::thread::sleep(Duration::from_secs(1));
        let kept = self.api.list(ATTACHMENTS);
        let stays = |one: &&Value| {
            one["spec"]["nodeName"] == node && attached(one) && one["metadata"]["deletionTimestamp"].is_null()
        };
        assert_eq!(kept.iter().filter(stays).count(), volumes.len(), "detached while in use: {kept:?}");
        self.use_on(node, &BTreeMap::new());
    }

    /// Asks for more, which the driver gives, and says that the filesystems have grown, as a kubelet does.
    fn grow(&mut self, claims: &[String]) {
        let path = self.path("persistentvolumeclaims");
        for claim in claims {
            let more = json!({"spec": {"resources": {"requests": {"storage": "32Mi"}}}});
            self.api.patch(&format!("{path}/{claim}"), more);
        }
        let all = |objects: &[&Value], wanted: &dyn Fn(&Value) -> bool| {
            objects.iter().filter(|object| wanted(object)).count() == claims.len()
        };
        self.wait("volumes to have grown", VOLUMES, |volumes| {
            all(volumes, &|volume| volume["spec"]["capacity"]["storage"] == "32Mi")
        });
        self.wait("claims to wait for their nodes", &path, |found| {
            all(found, &|claim| claim["status"]["allocatedResourceStatuses"]["storage"] == "NodeResizePending")
        });
        for claim in claims {
            let grown = json!({"status": {
                "capacity": {"storage": "32Mi"}, "allocatedResourceStatuses": null, "conditions": [],
            }});
            self.api.patch(&format!("{path}/{claim}/status"), grown);
        }
        self.wait("volumes to forget their former size", VOLUMES, |volumes| {
            all(volumes, &|volume| volume["metadata"]["annotations"][names::PRE_RESIZE_CAPACITY].is_null())
        });
    }

    /// The whole life of claims of both classes; what each part of it cost.
    fn life(&mut self, wave: &str) -> Cost {
        let claims = names(wave, COUNTED);
        let (mut cost, expected) = (Cost::new(), writes::expected(COUNTED));
        self.record.news(&BTreeMap::new());
        let now = of_class(&claims, NOW);
        self.make(now.iter().map(|name| claim(name)));
        self.wait_bound(&now);
        cost.insert(writes::BOUND, self.record.news(&expected[writes::BOUND]));

        self.make(of_class(&claims, LATER).into_iter().map(|name| claim(name)));
        self.make(claims.iter().map(|name| user(name, Some(NODES[0]))));
        self.wait_bound(&claims.iter().collect::<Vec<_>>());
        let volumes = self.volumes_of(&claims);
        assert_eq!(volumes.len(), claims.len());
        self.wait_attached(&volumes, Some(NODES[0]));
        cost.insert(writes::PLACED, self.record.news(&expected[writes::PLACED]));
        self.use_on(NODES[0], &volumes);

        self.grow(&claims);
        cost.insert(writes::GROWN, self.record.news(&expected[writes::GROWN]));

        self.leave(NODES[0], &claims, &volumes);
        self.make(claims.iter().map(|name| user(name, Some(NODES[1]))));
        self.wait_attached(&volumes, Some(NODES[1]));
        cost.insert(writes::MOVED, self.record.news(&expected[writes::MOVED]));
        self.use_on(NODES[1], &volumes);

        self.leave(NODES[1], &claims, &volumes);
        self.wait_attached(&volumes, None);
        cost.insert(writes::DETACHED, self.record.news(&expected[writes::DETACHED]));

        self.delete_claims(&claims);
        self.wait_nothing_left();
        cost.insert(writes::GONE, self.record.news(&expected[writes::GONE]));
        cost
    }

    /// Many claims and pods come; in the middle of the work both leaders are killed, some claims and pods go while
    /// nobody works, and others start in their place.
    fn killed_in_the_middle(&mut self) {
        let mut claims = names("wave", WAVE);
        let template = json!({"ephemeral": {"volumeClaimTemplate": {"spec": claim(LATER)["spec"]}}});
        self.make(claims.iter().map(|name| claim(name)));
        self.make(claims.iter().map(|name| user(name, None)));
        self.make([pod("guest", None, template)]);
        eventually("the middle of the work", PATIENCE, || match self.held() {
            held if held >= WAVE / 2 => Ok(()),
            held => Err(format!("{held} volumes")),
        })
        .unwrap_or_else(|error| panic!("{error}\n{}", self.told()));
        self.sidecar.kill().unwrap();
        self.controllers.kill().unwrap();
        let held = self.held();
        assert!(held < claims.len(), "killed too late: the driver has {held} volumes");

        let unwanted = [claims.remove(0), claims.pop().unwrap()];
        self.end_pods(&unwanted);
        self.delete_claims(&unwanted);
        (self.controllers, self.sidecar) = (controllers(&self.stand, self.lives), sidecar(&self.stand, self.lives));
        self.lives += 1;
        claims.push("guest-data".into());
        self.wait_bound(&claims.iter().collect::<Vec<_>>());
        let count = claims.len();
        self.wait("all to be attached", ATTACHMENTS, |all| all.len() == count && all.iter().all(|one| attached(one)));
        self.wait("no other volume", VOLUMES, |all| all.len() == count);
        let held = || match self.held() {
            held if held == count => Ok(()),
            held => Err(format!("{held} volumes for {count} claims")),
        };
        eventually("one volume for each claim", PATIENCE, held).unwrap();

        claims.pop();
        self.end_pods(claims.iter().chain([&"guest".to_string()]));
        self.delete_claims(&claims);
        self.wait_nothing_left();
    }

    /// How many volumes the driver has.
    fn held(&self) -> usize {
        backend::contents(&self.stand.socket).0.len()
    }

    fn wait_nothing_left(&mut self) {
        let (pods, claims) = (self.path("pods"), self.path("persistentvolumeclaims"));
        for collection in [&pods, &claims, VOLUMES, ATTACHMENTS] {
            self.wait(&format!("{collection} to be empty"), collection, |all| all.is_empty());
        }
        self.wait("nodes to be told that nothing is attached", "/api/v1/nodes", |nodes| {
            nodes.iter().all(|node| node["status"]["volumesAttached"].as_array().is_none_or(Vec::is_empty))
        });
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{PLACE}/leases");
        self.wait("the journal to be empty", &leases, |leases| {
            leases.iter().all(|lease| !lease["metadata"]["annotations"].to_string().contains(names::JOURNAL_ENTRY))
        });
        let none = || match backend::contents(&self.stand.socket) {
            (volumes, snapshots) if volumes.is_empty() && snapshots.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        };
        eventually("the driver to hold nothing", PATIENCE, none)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.told()));
        assert_eq!(self.stand.leftovers(), Vec::<String>::new());
    }

    /// For a failure: the last words of everybody.
    fn told(&self) -> String {
        let events = self.control.kubectl(&["get", "events", "--namespace", PLACE]).unwrap_or_default();
        let all = [&self.controllers, &self.sidecar];
        let tails = all.map(|one| format!("--- {}\n{}\n", one.name(), one.log_tail())).concat();
        format!("{events}\n{tails}")
    }
}

fn bound(object: &Value) -> bool {
    object["status"]["phase"] == "Bound"
}

fn attached(attachment: &Value) -> bool {
    attachment["status"]["attached"] == true
}

#[test]
fn our_controllers_and_our_sidecars_serve_pods_that_kube_scheduler_places_and_are_killed_in_the_middle() {
    let mut together = Together::start();
    let expected = writes::expected(COUNTED);
    let mut cost = together.life("first");
    if writes::with_all_reports(&cost, &expected) != expected {
        // On a busy machine who waits for long tells about it, which takes writes of its own. The cheaper count holds.
        let second = together.life("second");
        cost = writes::least(cost, &second);
    }
    assert_eq!(writes::with_all_reports(&cost, &expected), expected, "writes by their actors; counted: {cost:#?}");
    together.killed_in_the_middle();
}
