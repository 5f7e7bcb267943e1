//! kube-controller-manager's volume controllers and ours take over from each other while claims and pods come and go:
//! theirs, ours, the standby of ours, theirs, ours. Whoever leaves is killed in the middle of the work, and what comes
//! and goes while nobody works is there for the next.

use prove_cluster::{PeerProcess, eventually, peer};

use super::controllers::{WITHOUT_VOLUMES, grant, granted, ours};
use super::objects;
use super::scene::{PATIENCE, PLACE, Scene, of_claim, pod};
use super::witness::Witness;

/// What kube-controller-manager runs when it is its turn.
const THEIRS: &str = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,\
    persistentvolume-expander-controller,persistentvolumeclaim-protection-controller,\
    persistentvolume-protection-controller,ephemeral-volume-controller,volumeattributesclass-protection-controller";
const OURS: &str = "*,-scheduler";

/// Pods with a claim in each wave; one more has a claim that comes with it.
const WAVE: usize = 6;
/// How many waves are there at once.
const AFLOAT: usize = 2;
/// Pods that stay from the beginning to the end.
const KEEPERS: usize = 4;

/// The pod that a claim is for.
pub fn pod_of(claim: &str) -> String {
    // `pod-data` is of the pod's making.
    claim.strip_suffix("-data").unwrap_or(claim).to_string()
}

struct Load {
    // Dropped first: the watches end before what they watch.
    witness: Witness,
    scene: Scene,
    waves: usize,
    grown: usize,
}

impl Load {
    fn names(wave: usize) -> Vec<String> {
        (0..WAVE).map(|number| format!("w{wave}-{number}")).collect()
    }

    fn guest(wave: usize) -> String {
        format!("w{wave}-guest")
    }

    /// A wave comes, and the one of a while ago goes.
    fn wave(&mut self) -> usize {
        let wave = self.waves;
        self.waves += 1;
        let template = format!(
            "ephemeral: {{volumeClaimTemplate: {{spec: {{storageClassName: {PLACE}, accessModes: [ReadWriteOnce], \
             resources: {{requests: {{storage: 16Mi}}}}}}}}}}"
        );
        let both = |name: &String| objects::claim(PLACE, name, "") + &lasting(name, &of_claim(name));
        let all: String = Load::names(wave).iter().map(both).collect();
        self.scene.apply(&(all + &lasting(&Load::guest(wave), &template)));
        if wave >= AFLOAT {
            self.drop_wave(wave - AFLOAT);
        }
        wave
    }

    fn drop_wave(&self, wave: usize) {
        let names = Load::names(wave);
        let mut words = vec!["delete".to_string(), "--wait=false".into(), format!("pod/{}", Load::guest(wave))];
        words.extend(names.iter().flat_map(|name| [format!("pod/{name}"), format!("pvc/{name}")]));
        self.scene.kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    }

    /// Waits until all pods of a wave run.
    fn wait_running(&self, wave: usize) {
        let all: Vec<String> = Load::names(wave).into_iter().chain([Load::guest(wave)]).collect();
        self.wait(&format!("wave {wave} to run"), || {
            let pods = self.witness.last("pod");
            let still = |name: &&String| pods.get(*name).is_none_or(|seen| seen.fields[0] != "Running");
            all.iter().filter(still).cloned().collect()
        });
    }

    /// Waits until nothing of a wave is left.
    fn wait_gone(&self, wave: usize) {
        let start = format!("w{wave}-");
        self.wait(&format!("wave {wave} to be gone"), || {
            let volumes = self.witness.last("pv");
            let of_wave = volumes.values().filter(|seen| seen.fields[0].starts_with(&start));
            let attached = self.witness.last("volumeattachment");
            let attached = attached.values().filter(|seen| !seen.deleted).map(|seen| seen.fields[0].clone());
            let attached: Vec<String> = attached.collect();
            let left = of_wave.filter(|seen| !seen.deleted || attached.contains(&seen.name));
            left.map(|seen| seen.name.clone()).collect()
        });
    }

    fn wait(&self, what: &str, left: impl Fn() -> Vec<String>) {
        let look = || match left() {
            none if none.is_empty() => Ok(()),
            some => Err(format!("{some:?}")),
        };
        eventually(what, PATIENCE, look).unwrap_or_else(|error| panic!("{error}\n{}", self.scene.told()));
    }

    /// A wave comes while nobody works; then somebody begins, and serves it, those that come meanwhile and those that
    /// go.
    fn turn(&mut self, begin: impl FnOnce(&Scene) -> Option<PeerProcess>) -> Option<PeerProcess> {
        let first = self.wave();
        let process = begin(&self.scene);
        self.grow();
        // What the one before was in the middle of.
        self.wait_running(first - 1);
        let second = self.wave();
        self.wait_running(first);
        self.wait_running(second);
        self.wait_gone(first - AFLOAT);
        // Whoever is killed now is in the middle of these.
        self.wave();
        process
    }

    /// One of those that stay grows.
    fn grow(&mut self) {
        let (keeper, size) = (format!("keeper-{}", self.grown % KEEPERS), format!("{}Mi", 32 + 16 * self.grown));
        self.grown += 1;
        let more = format!("--patch={{\"spec\":{{\"resources\":{{\"requests\":{{\"storage\":\"{size}\"}}}}}}}}");
        self.scene.kubectl(&["patch", "pvc", &keeper, &more]).unwrap();
        let capacity = ["get", "pvc", &keeper, "--output=jsonpath={.status.capacity.storage}"];
        self.scene.wait_until("a claim to have grown", &capacity, |said| said == size);
    }
}

fn lasting(name: &str, volume: &str) -> String {
    pod(name, volume, "echo here > /data/f; exec sleep 100000")
}

fn theirs(scene: &Scene) -> Option<PeerProcess> {
    let words = [
        "--leader-elect=false".to_string(),
        "--secure-port=0".into(),
        "--kube-api-qps=1000".into(),
        "--kube-api-burst=1000".into(),
        scene.kubeconfig(),
        format!("--controllers={THEIRS}"),
    ];
    let program = peer("kube-controller-manager").unwrap();
    Some(PeerProcess::start("theirs", &program, &words, scene.stand.scratch.path()).unwrap())
}

fn leads(process: &PeerProcess) -> bool {
    std::fs::read_to_string(process.log()).unwrap().contains("leading under the lease")
}

#[test]
fn their_controllers_and_ours_take_over_from_each_other_under_load_and_lose_nothing() {
    let mut scene = Scene::begin(WITHOUT_VOLUMES);
    grant(&scene, OURS);
    scene.join();
    let witness = Witness::start(&scene);
    let mut load = Load { scene, witness, waves: 0, grown: 0 };
    let keepers: Vec<String> = (0..KEEPERS).map(|number| format!("keeper-{number}")).collect();
    for keeper in &keepers {
        load.scene.apply(&(objects::claim(PLACE, keeper, "") + &lasting(keeper, &of_claim(keeper))));
    }
    let mut first = theirs(&load.scene).unwrap();
    for _ in 0..AFLOAT {
        let wave = load.wave();
        load.wait_running(wave);
    }
    keepers.iter().for_each(|keeper| load.scene.wait_phase(keeper, "Running"));
    assert!(load.turn(|_| None).is_none());
    first.kill().unwrap();

    let mut leader = load.turn(|scene| Some(ours(scene, "ours", OURS))).unwrap();
    let standby = ours(&load.scene, "standby", OURS);
    let ready =
        || std::fs::read_to_string(standby.log()).unwrap().contains("controllers:").then_some(()).ok_or("".into());
    eventually("the standby to stand by", PATIENCE, ready).unwrap();
    assert!(leads(&leader) && !leads(&standby));
    // Nobody is told: the Lease must run out.
    leader.kill().unwrap();
    assert!(load.turn(|_| None).is_none());
    assert!(leads(&standby));
    let mut standby = standby;
    // Told to end, it gives the Lease up.
    assert!(standby.terminate(PATIENCE).unwrap().success());

    let mut again = load.turn(theirs).unwrap();
    again.kill().unwrap();
    let last = load.turn(|scene| Some(ours(scene, "last", OURS))).unwrap();

    load.wait_running(load.waves - 1);
    for keeper in &keepers {
        let path = "{.status.phase} {.status.containerStatuses[0].restartCount}";
        assert_eq!(load.scene.get(&format!("pod/{keeper}"), path), "Running 0");
        assert_eq!(load.scene.get(&format!("pvc/{keeper}"), "{.status.phase}"), "Bound");
    }
    load.scene.kubectl(&["delete", "pod,pvc", "--all", "--wait=false"]).unwrap();
    load.scene.wait_nothing_left();
    granted(&load.scene, &[&leader, &standby, &last]);
    let volumes = load.witness.judge();
    assert_eq!(volumes, KEEPERS + load.waves * (WAVE + 1));
}
