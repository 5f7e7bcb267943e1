//! Who watches the API from the first object to the last, and tells afterwards whether something was lost on the way.
//! Versions of objects of all kinds come from one counter, so they say what happened before what.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prove_cluster::PeerProcess;

use super::scene::{DRIVER, PLACE, Scene};

/// What is written down of each kind, after the event's type and the object's version and name.
const FIELDS: [(&str, &[&str]); 5] = [
    ("pvc", &["{.object.status.phase}", "{.object.spec.volumeName}"]),
    ("pv", &["{.object.spec.claimRef.name}", "{.object.spec.csi.volumeHandle}"]),
    (
        "pod",
        &[
            "{.object.status.phase}",
            "{.object.metadata.deletionTimestamp}",
            "{.object.status.containerStatuses[0].restartCount}",
        ],
    ),
    (
        "volumeattachment",
        &[
            "{.object.spec.source.persistentVolumeName}",
            "{.object.metadata.deletionTimestamp}",
            "{.object.metadata.uid}",
        ],
    ),
    ("node", &["{.object.status.volumesInUse[*]}"]),
];

/// Watches, each with a file.
pub struct Witness {
    watches: Vec<PeerProcess>,
}

/// One event of a watch.
pub struct Seen {
    pub deleted: bool,
    pub version: u64,
    pub name: String,
    pub fields: Vec<String>,
}

impl Witness {
    pub fn start(scene: &Scene) -> Witness {
        let watch = |(kind, fields): &(&str, &[&str])| {
            let head = ["{.type}", "{.object.metadata.resourceVersion}", "{.object.metadata.name}"];
            let line = [&head[..], fields].concat().join("|");
            let words = [
                "get".to_string(),
                (*kind).into(),
                scene.kubeconfig(),
                format!("--namespace={PLACE}"),
                "--watch".into(),
                "--output-watch-events".into(),
                format!("--output=jsonpath={line}{{\"\\n\"}}"),
            ];
            let folder = scene.stand.scratch.path();
            PeerProcess::start(&format!("watch-{kind}"), Path::new("kubectl"), &words, folder).unwrap()
        };
        Witness { watches: FIELDS.iter().map(watch).collect() }
    }

    /// What was seen of a kind so far, in order.
    pub fn seen(&self, kind: &str) -> Vec<Seen> {
        let watch = self.watches.iter().find(|watch| watch.name() == format!("watch-{kind}")).unwrap();
        let text = std::fs::read_to_string(watch.log()).unwrap();
        let whole = text.rsplit_once('\n').map(|(whole, _half)| whole).unwrap_or_default();
        whole.lines().filter_map(event).collect()
    }

    /// The last that was seen of each object.
    pub fn last(&self, kind: &str) -> BTreeMap<String, Seen> {
        self.seen(kind).into_iter().map(|seen| (seen.name.clone(), seen)).collect()
    }

    /// One volume for each claim, one attachment for each volume, no claim lost, and nothing detached under a pod.
    /// Returns how many volumes there were.
    pub fn judge(&mut self) -> usize {
        self.watches.iter_mut().for_each(|watch| watch.check().unwrap());
        let lost: Vec<String> =
            self.seen("pvc").into_iter().filter(|seen| seen.fields[0] == "Lost").map(|seen| seen.name).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        let volumes = of_each(self.seen("pvc"), |seen| (seen.name.clone(), seen.fields[1].clone()));
        let made = of_each(self.seen("pv"), |seen| (seen.fields[0].clone(), seen.name.clone()));
        let differ: Vec<_> = volumes.iter().filter(|(claim, volume)| made.get(*claim) != Some(volume)).collect();
        assert!(differ.is_empty(), "bound to what was not made for them: {differ:?}");
        let differ: Vec<_> = made.iter().filter(|(claim, volume)| volumes.get(*claim) != Some(volume)).collect();
        assert!(differ.is_empty(), "made and not bound: {differ:?}");
        let attachments =
            of_each(self.seen("volumeattachment"), |seen| (seen.fields[0].clone(), seen.fields[2].clone()));
        let one = |all: &BTreeMap<String, BTreeSet<String>>| all.values().all(|values| values.len() == 1);
        assert!(one(&volumes), "more than one volume: {volumes:?}");
        assert!(one(&attachments), "attached more than once: {attachments:?}");
        let claims: BTreeMap<&String, &String> =
            volumes.iter().map(|(claim, volumes)| (volumes.first().unwrap(), claim)).collect();
        let attached: BTreeSet<&String> = attachments.keys().collect();
        assert_eq!(attached, claims.keys().copied().collect(), "every volume was attached");
        self.judge_detached(&claims);
        volumes.len()
    }

    /// Nobody asked for a volume to be detached before somebody deleted its pod, and the node had stopped using it.
    fn judge_detached(&self, claims: &BTreeMap<&String, &String>) {
        let handles: BTreeMap<String, String> =
            self.seen("pv").into_iter().map(|seen| (seen.name, seen.fields[1].clone())).collect();
        let (nodes, pods) = (self.seen("node"), self.seen("pod"));
        let mut asked = BTreeMap::new();
        for seen in self.seen("volumeattachment").iter().filter(|seen| seen.deleted || !seen.fields[1].is_empty()) {
            asked.entry(seen.fields[0].clone()).or_insert(seen.version);
        }
        for (volume, version) in &asked {
            let pod = super::handover::pod_of(claims[volume]);
            let going = pods.iter().find(|seen| seen.name == pod && (seen.deleted || !seen.fields[1].is_empty()));
            assert!(going.is_some_and(|going| going.version < *version), "{volume} was detached under pod {pod}");
            let unique = format!("kubernetes.io/csi/{DRIVER}^{}", handles[volume]);
            let before = nodes.iter().rfind(|seen| seen.version < *version).unwrap();
            let used = before.fields[0].split(' ').any(|used| used == unique);
            assert!(!used, "{volume} was detached while the node used it, at version {version}");
        }
        assert_eq!(asked.len(), claims.len(), "all were detached in the end");
    }
}

/// The values that were seen for each key, but for empty ones.
fn of_each(all: Vec<Seen>, entry: impl Fn(&Seen) -> (String, String)) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, value) in all.iter().map(entry).filter(|(_, value)| !value.is_empty()) {
        found.entry(key).or_default().insert(value);
    }
    found
}

fn event(line: &str) -> Option<Seen> {
    let mut words = line.split('|').map(String::from);
    let (kind, version, name) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    Some(Seen { deleted: kind == "DELETED", version, name, fields: words.collect() })
}
