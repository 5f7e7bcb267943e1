//! Reads past the cache, shared: one look at the server certifies the cache for all who asked before it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use api::{Kind, ObjectRef};
use control::{Effect, Outcome, Reply};
use io_kube::Kube;
use tokio::sync::Semaphore;

use super::{Watches, lock};
use crate::SharedCache;

/// After a read the next turn comes only when this many times as long has passed, so that news can come instead: the
/// longer the server takes to answer, the less it is asked.
const REST: u32 = 4;

/// Reads objects past the cache.
///
/// Of those who ask for objects of one kind, one at a time reads its object. For those who wait meanwhile one look at
/// the server asks which version the kind has. Whoever asked before it began has the cache's object once the watch has
/// delivered that version: the cache then shows nothing older than the moment of asking. Versions are compared within
/// one kind. Where no news comes that would show it, each has its turn to read.
pub struct Looks {
    cache: Arc<SharedCache>,
    watches: Weak<Watches>,
    /// One permit each: somebody reads an object of the kind.
    alone: BTreeMap<Kind, Arc<Semaphore>>,
}

impl Looks {
    pub(super) fn new(cache: &Arc<SharedCache>, watches: &Arc<Watches>) -> Arc<Looks> {
        let alone = Effect::SHARED.into_iter().map(|kind| (kind, Arc::new(Semaphore::new(1)))).collect();
        Arc::new(Looks { cache: cache.clone(), watches: Arc::downgrade(watches), alone })
    }

    /// The object as it is at some moment after this call.
    pub async fn read(&self, kube: &Kube, target: &ObjectRef) -> Outcome {
        let shared = self.alone.get(&target.kind).filter(|_| self.may_certify(kube, target.kind));
        let Some(alone) = shared else { return kube.read(target).await };
        tokio::select! {
            biased;
            turn = alone.clone().acquire_owned() => {
                let began = Instant::now();
                let found = kube.read(target).await;
                let rest = began.elapsed() * REST;
                tokio::spawn(async move {
                    tokio::time::sleep(rest).await;
                    drop(turn);
                });
                found
            }
            Some(found) = self.certified(kube, target) => found,
        }
    }

    /// What the cache has, once it is certainly no older than this call. `None` where that cannot be known.
    async fn certified(&self, kube: &Kube, target: &ObjectRef) -> Option<Outcome> {
        let kind = target.kind;
        let version = kube.version(kind).await?;
        self.cache.seen(kind, version).await;
        // What a watch could not decode on the way here is not in the cache.
        self.may_certify(kube, kind).then(|| {
            let found = self.cache.look(|cache| cache.get(kind, &target.key));
            Outcome::Done(found.map_or(Reply::Gone, Reply::Object))
        })
    }

    /// All objects of the kind are watched and could be decoded: one that the cache does not have is not there.
    fn may_certify(&self, kube: &Kube, kind: Kind) -> bool {
        let whole = self.watches.upgrade().is_some_and(|watches| lock(&watches.set).is_whole(kind));
        whole && !kube.is_doubted(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Meta, Object, Patch, PersistentVolume, Precondition, Write};
    use io_apiserver::{ApiServer, Config};
    use io_kube::Scope;
    use serde_json::json;
    use tokio::task::JoinHandle;

    use crate::watch_set::WatchSet;

    const KIND: Kind = Kind::PersistentVolume;

    /// A real server with so many volumes, and a cache whose watch delivers nothing by itself.
    struct Stand {
        kube: Kube,
        server: ApiServer,
        cache: Arc<SharedCache>,
        watches: Arc<Watches>,
        looks: Arc<Looks>,
        _data: tempfile::TempDir,
    }

    impl Stand {
        async fn with(volumes: usize) -> Stand {
            let data = tempfile::tempdir().unwrap();
            let server = ApiServer::open(Config { data_dir: data.path().join("api"), ..Config::default() }).unwrap();
            let kube = Kube::in_process(server.service_as("system:longshore"));
            for at in 0..volumes {
                let mut body =
                    Object::from(PersistentVolume { metadata: Meta::named(name(at)).into(), ..Default::default() })
                        .to_json();
                body["spec"] = json!({
                    "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                    "csi": { "driver": "d", "volumeHandle": name(at) }, "persistentVolumeReclaimPolicy": "Delete",
                });
                done(kube.write(&Write::Create { target: target(at), body }).await);
            }
            let cache = Arc::default();
            let watches = Watches::start(&cache, &Arc::default());
            lock(&watches.set).need(KIND, Scope::default());
            lock(&watches.set).listed(KIND);
            let (version, all) = kube.list(KIND).await.unwrap();
            cache.replace(KIND, version.parse().unwrap(), all);
            let looks = Looks::new(&cache, &watches);
            Stand { kube, server, cache, watches, looks, _data: data }
        }

        /// All volumes are read at once, by those who begin now.
        fn read(&self, volumes: usize) -> Vec<JoinHandle<Outcome>> {
            let reads = (0..volumes).map(|at| {
                let (looks, kube) = (self.looks.clone(), self.kube.clone());
                tokio::spawn(async move { looks.read(&kube, &target(at)).await })
            });
            reads.collect()
        }

        async fn keep(&self, at: usize) -> Object {
            let body = json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } });
            let patch = Patch::merge(Precondition::default(), body);
            done(self.kube.write(&Write::Patch { target: target(at), subresource: None, patch }).await)
        }

        fn asked(&self, verb: &str) -> u64 {
            self.kube.counts().all().iter().filter(|((done, ..), _)| *done == verb).map(|(_, count)| count).sum()
        }

        /// Lets every task go as far as it can: the server is in this process and all tasks are on this thread.
        async fn settle(&self, lists: u64) {
            while self.asked("list") < lists {
                tokio::task::yield_now().await;
            }
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        }
    }

    impl Drop for Stand {
        fn drop(&mut self) {
            self.server.close();
        }
    }

    fn name(at: usize) -> String {
        format!("v-{at:03}")
    }

    fn target(at: usize) -> ObjectRef {
        ObjectRef::cluster(KIND, name(at))
    }

    fn done(outcome: Outcome) -> Object {
        match outcome {
            Outcome::Done(Reply::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }

    async fn policy(read: JoinHandle<Outcome>) -> String {
        match done(read.await.unwrap()) {
            Object::PersistentVolume(volume) => volume.spec.persistent_volume_reclaim_policy.to_string(),
            other => panic!("{other:?}"),
        }
    }

    // S0-33, reliability 8, 105: a hundred at once cost one look, and none of them has what was true before it asked.
    #[tokio::test]
    async fn one_look_serves_all_who_asked_before_it() {
        let stand = Stand::with(100).await;
        let before = stand.asked("list");
        let somebody_reads = stand.looks.alone[&KIND].acquire().await.unwrap();
        let kept = stand.keep(7).await;
        let reads = stand.read(100);
        stand.settle(before + 1).await;
        assert!(reads.iter().all(|read| !read.is_finished()), "the watch has not delivered what the look has seen");
        stand.cache.set(kept);
        for (at, read) in reads.into_iter().enumerate() {
            assert_eq!(policy(read).await, if at == 7 { "Retain" } else { "Delete" });
        }
        assert_eq!((stand.asked("get"), stand.asked("list") - before), (0, 1));
        drop(somebody_reads);
    }

    // A volume is kept while looks are under way: who asks after that has a look of its own.
    #[tokio::test]
    async fn a_look_that_began_before_serves_nobody() {
        let stand = Stand::with(2).await;
        let before = stand.asked("list");
        let _somebody_reads = stand.looks.alone[&KIND].acquire().await.unwrap();
        let first_kept = stand.keep(0).await;
        let early = stand.read(2);
        stand.settle(before + 1).await;
        let then_kept = stand.keep(1).await;
        let late = stand.read(2);
        stand.settle(before + 2).await;
        stand.cache.set(first_kept);
        stand.settle(before + 2).await;
        assert!(early.iter().all(JoinHandle::is_finished));
        assert!(late.iter().all(|read| !read.is_finished()));
        stand.cache.set(then_kept);
        for read in late {
            assert_eq!(policy(read).await, "Retain");
        }
    }

    // Without news nobody waits for ever: each has its turn.
    #[tokio::test]
    async fn who_hears_no_news_reads() {
        let stand = Stand::with(3).await;
        let before = stand.asked("list");
        let somebody_reads = stand.looks.alone[&KIND].acquire().await.unwrap();
        stand.keep(1).await;
        let reads = stand.read(3);
        stand.settle(before + 1).await;
        drop(somebody_reads);
        for (at, read) in reads.into_iter().enumerate() {
            assert_eq!(policy(read).await, if at == 1 { "Retain" } else { "Delete" });
        }
        assert_eq!(stand.asked("get"), 3);
    }

    // Of a kind that is watched in part, or not at all, what the cache does not have may be there all the same.
    #[tokio::test]
    async fn a_kind_that_is_watched_in_part_is_read() {
        let stand = Stand::with(2).await;
        let before = stand.asked("list");
        *lock(&stand.watches.set) = WatchSet::default();
        for read in stand.read(2) {
            assert_eq!(policy(read).await, "Delete");
        }
        assert_eq!((stand.asked("get"), stand.asked("list") - before), (2, 0));
    }
}
