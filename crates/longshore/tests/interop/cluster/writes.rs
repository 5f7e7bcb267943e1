//! What volumes cost in writes to the API, by who writes: from kube-apiserver's audit log, beside what is documented.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often each account wrote what: `controllers patch persistentvolumes/status`.
pub type Writes = BTreeMap<String, usize>;

/// What each part of a life cost.
pub type Cost = BTreeMap<&'static str, Writes>;

pub const BOUND: &str = "1 claims of one class to bound";
pub const PLACED: &str = "2 claims of the other to bound, and all attached";
pub const GROWN: &str = "3 all grown";
pub const MOVED: &str = "4 all attached to the other node";
pub const DETACHED: &str = "5 all detached";
pub const GONE: &str = "6 all gone";

/// Between two looks into the log.
const PAUSE: Duration = Duration::from_millis(200);
/// What is not in the log after so long was not written.
const LATE: Duration = Duration::from_secs(10);

/// The audit log, and how much of it was read.
pub struct Record {
    path: PathBuf,
    at: usize,
}

impl Record {
    pub fn new(path: PathBuf) -> Record {
        Record { path, at: 0 }
    }

    /// The writes since the last time that were done. A watch may tell of one before the server has written it down, so
    /// that those that are expected are waited for.
    pub fn news(&mut self, expected: &Writes) -> Writes {
        let (until, mut writes) = (Instant::now() + LATE, Writes::new());
        loop {
            std::thread::sleep(PAUSE);
            self.read(&mut writes);
            let all = |(write, count): (&String, &usize)| write == REPORT || writes.get(write) >= Some(count);
            if expected.iter().all(all) || Instant::now() > until {
                return writes;
            }
        }
    }

    fn read(&mut self, writes: &mut Writes) {
        let text = std::fs::read_to_string(&self.path).unwrap();
        let new = text.get(self.at..).unwrap();
        let whole = new.rfind('\n').map_or(0, |end| end + 1);
        self.at += whole;
        for write in new[..whole].lines().filter_map(write) {
            *writes.entry(write).or_default() += 1;
        }
    }
}

/// Who wrote what in a line of the log. Events are left out, because a process writes as many as its own limit allows.
/// So are Leases: those of leaders go by the clock, and the journal holds as many volumes in a write as come together.
fn write(line: &str) -> Option<String> {
    let event: Value = serde_json::from_str(line).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (object, verb) = (&event["objectRef"], word(&event["verb"]));
    let done = event["responseStatus"]["code"].as_u64().is_some_and(|code| (200..300).contains(&code));
    let resource = word(&object["resource"]);
    let counts =
        ["create", "update", "patch", "delete"].contains(&&*verb) && !["events", "leases"].contains(&&*resource);
    let user = word(&event["user"]["username"]);
    let (_, account) = user.rsplit_once(':')?;
    let part = object["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
    (done && counts && ["controllers", "sidecar"].contains(&account))
        .then(|| format!("{account} {verb} {resource}{part}"))
}

/// The lesser of two counts of the same.
pub fn least(first: Cost, second: &Cost) -> Cost {
    let both = |(part, writes): (&'static str, Writes)| {
        let other = &second[part];
        let less =
            writes.into_iter().filter_map(|(write, count)| Some((write.clone(), count.min(*other.get(&write)?))));
        (part, less.collect())
    };
    first.into_iter().map(both).collect()
}

/// For one claim, as docs/benchmarks.md has it.
const TO_BOUND: [(&str, usize); 4] = [
    ("controllers patch persistentvolumeclaims", 2),
    ("controllers patch persistentvolumeclaims/status", 1),
    ("controllers patch persistentvolumes/status", 1),
    ("sidecar create persistentvolumes", 1),
];
const TO_ATTACHED: [(&str, usize); 4] = [
    ("controllers create volumeattachments", 1),
    (REPORT, 1),
    ("sidecar patch volumeattachments", 1),
    ("sidecar patch volumeattachments/status", 1),
];
/// The node's word is the test's own; after it the volume's former size is taken back.
const TO_GROWN: [(&str, usize); 2] =
    [("sidecar patch persistentvolumeclaims/status", 2), ("sidecar patch persistentvolumes", 2)];
const TO_MOVED: [(&str, usize); 5] = [
    ("controllers create volumeattachments", 1),
    ("controllers delete volumeattachments", 1),
    (REPORT, 2),
    ("sidecar patch volumeattachments", 2),
    ("sidecar patch volumeattachments/status", 1),
];
const TO_DETACHED: [(&str, usize); 3] =
    [("controllers delete volumeattachments", 1), (REPORT, 1), ("sidecar patch volumeattachments", 1)];
const TO_GONE: [(&str, usize); 5] = [
    ("controllers patch persistentvolumeclaims", 1),
    ("controllers patch persistentvolumes", 1),
    ("controllers patch persistentvolumes/status", 1),
    ("sidecar delete persistentvolumes", 1),
    ("sidecar patch persistentvolumes", 1),
];

/// Volumes that are attached at once are told to their node in one write, so that there may be fewer.
const REPORT: &str = "controllers patch nodes/status";

/// What happens to so many volumes at once, and what each of them costs.
type Happens<'a> = (usize, &'a [(&'a str, usize)]);

/// What is documented, for so many claims of each of two classes.
pub fn expected(each: usize) -> Cost {
    let both = 2 * each;
    let parts: [(&'static str, &[Happens<'_>]); 6] = [
        (BOUND, &[(each, &TO_BOUND)]),
        (PLACED, &[(each, &TO_BOUND), (both, &TO_ATTACHED)]),
        (GROWN, &[(both, &TO_GROWN)]),
        (MOVED, &[(both, &TO_MOVED)]),
        (DETACHED, &[(both, &TO_DETACHED)]),
        (GONE, &[(both, &TO_GONE)]),
    ];
    let all = |(part, kinds): (&'static str, &[Happens<'_>])| {
        let kinds =
            kinds.iter().flat_map(|(times, writes)| writes.iter().map(move |(write, one)| (*write, times * one)));
        (part, kinds.map(|(write, count)| (write.to_string(), count)).collect())
    };
    parts.into_iter().map(all).collect()
}

/// The count with the expected number of reports where there were fewer.
pub fn with_all_reports(cost: &Cost, expected: &Cost) -> Cost {
    let mut cost = cost.clone();
    for (part, writes) in &mut cost {
        let most = expected[part].get(REPORT).copied().unwrap_or_default();
        if let Some(count) = writes.get_mut(REPORT) {
            *count = most.max(*count);
        }
    }
    cost
}
