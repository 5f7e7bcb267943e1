//! Counts volumes made and deleted as the Go provisioner does: one success or failure per attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use api::{Kind, ObjectKey, ObjectRef};
use control::{AttemptStep, Cache};
use io_run::{Acted, Counts, Facts, Metrics};

/// Attempts whose claims are gone are forgotten when so many are remembered.
const MANY: usize = 1024;

/// Remembers when attempts began.
pub struct Tally {
    facts: Arc<Facts>,
    begun: Mutex<BTreeMap<ObjectRef, Instant>>,
}

impl Tally {
    /// Nothing has begun.
    pub fn new(facts: Arc<Facts>) -> Tally {
        Tally { facts, begun: Mutex::default() }
    }

    /// When the attempt that this action belongs to began: with this one, if none is remembered.
    fn began(&self, ended: &Acted<'_>) -> Instant {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.len() >= MANY {
            self.facts.look(|cache| begun.retain(|about, _| exists(cache, about)));
        }
        let now = Instant::now();
        *begun.entry(ended.about.clone()).or_insert(now.checked_sub(ended.took).unwrap_or(now))
    }

    fn over(&self, about: &ObjectRef) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(about);
    }
}

fn exists(cache: &Cache, about: &ObjectRef) -> bool {
    match about.kind {
        Kind::PersistentVolumeClaim => cache.claim(&about.key).is_some(),
        _volume => cache.volume(&about.key).is_some(),
    }
}

/// The class of a claim and the kind of what its volume is made from.
fn of_claim(cache: &Cache, key: &ObjectKey) -> (String, String) {
    let Some(claim) = cache.claim(key) else { return Default::default() };
    let source = claim.source().map(|(source, _)| source.kind.clone());
    (claim.class().unwrap_or_default().into(), source.unwrap_or_default())
}

impl Counts for Tally {
    fn ended(&self, metrics: &Metrics, ended: &Acted<'_>) {
        // The last step of an attempt; every other goes before it, and each may fail.
        let Some(step) = ended.step else { return };
        let began = self.began(ended);
        if step == AttemptStep::OnTheWay && !ended.failed {
            return;
        }
        self.over(ended.about);
        let took = (!ended.failed).then(|| began.elapsed());
        if ended.about.kind == Kind::PersistentVolumeClaim {
            let (class, source) = self.facts.look(|cache| of_claim(cache, &ended.about.key));
            metrics.provisioned(&class, &source, took);
        } else {
            let class =
                self.facts.look(|cache| cache.volume(&ended.about.key).map(|volume| volume.class().to_string()));
            metrics.deleted(&class.unwrap_or_default(), took);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::Object;
    use serde_json::json;

    use super::*;

    fn told(tell: &[(Kind, Option<AttemptStep>, bool)]) -> String {
        let facts = Arc::<Facts>::default();
        let meta = |name: &str| json!({ "name": name, "namespace": "n", "uid": "u", "resourceVersion": "1" });
        let claim = json!({ "metadata": meta("c"), "spec": {
            "storageClassName": "fast", "dataSource": { "kind": "VolumeSnapshot", "name": "s" } } });
        let volume = json!({ "metadata": { "name": "v", "uid": "u", "resourceVersion": "1" }, "spec": { "storageClassName": "fast" } });
        for (kind, object) in [(Kind::PersistentVolumeClaim, claim), (Kind::PersistentVolume, volume)] {
            let object = Object::from_slice(kind, object.to_string().as_bytes()).unwrap();
            facts.replace(kind, 1, vec![object]);
        }
        let (metrics, tally) = (Metrics::default(), Tally::new(facts));
        for (kind, step, failed) in tell {
            let about = match kind {
                Kind::PersistentVolumeClaim => ObjectRef::namespaced(*kind, "n", "c"),
                _volume => ObjectRef::cluster(*kind, "v"),
            };
            let outcome = if *failed { "refused" } else { "done" };
            let took = Duration::from_millis(1);
            let (controller, action) = ("provisioner", "Step");
            let acted = Acted { controller, about: &about, action, step: *step, outcome, failed: *failed, took };
            tally.ended(&metrics, &acted);
        }
        assert!(tally.begun.lock().unwrap().is_empty(), "every attempt is over");
        let counted =
            |line: &&str| line.starts_with("controller_") && !line.contains("_bucket") && !line.contains("_sum");
        metrics.text().lines().filter(counted).collect::<Vec<_>>().join("\n")
    }

    // Sidecars 2.13.
    #[test]
    fn an_attempt_is_counted_once_with_the_class_and_what_the_volume_is_made_from() {
        let claim = Kind::PersistentVolumeClaim;
        let counted = told(&[
            (claim, Some(AttemptStep::OnTheWay), false),
            (claim, Some(AttemptStep::OnTheWay), true),
            (claim, Some(AttemptStep::OnTheWay), true),
            (claim, Some(AttemptStep::OnTheWay), false),
            (claim, Some(AttemptStep::Provisions), false),
        ]);
        let labels = "{class=\"fast\",source=\"VolumeSnapshot\"}";
        let name = "controller_persistentvolumeclaim_provision";
        let expected = [
            format!("{name}_total{labels} 1"),
            format!("{name}_failed_total{labels} 2"),
            format!("{name}_duration_seconds_count{labels} 1"),
        ];
        assert!(expected.iter().all(|line| counted.contains(line)), "{counted}");
        assert_eq!(counted.lines().count(), 3, "{counted}");
    }

    #[test]
    fn a_volume_is_deleted_when_the_driver_says_so_and_steps_of_no_attempt_do_not_count() {
        let volume = Kind::PersistentVolume;
        let counted = told(&[
            (volume, Some(AttemptStep::Deletes), true),
            (volume, Some(AttemptStep::Deletes), false),
            (volume, None, false),
        ]);
        let name = "controller_persistentvolume_delete";
        let expected = [
            format!("{name}_total{{class=\"fast\"}} 1"),
            format!("{name}_failed_total{{class=\"fast\"}} 1"),
            format!("{name}_duration_seconds_count{{class=\"fast\"}} 1"),
        ];
        assert!(expected.iter().all(|line| counted.contains(line)), "{counted}");
        assert_eq!(counted.lines().count(), 3, "{counted}");
    }
}
