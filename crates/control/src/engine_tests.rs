use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use api::{Kind, Meta, Object, ObjectKey, ObjectRef, Precondition, ResourceVersion, StorageClass, Write};

use super::*;
use crate::{BackOff, Lane, Permission, Refusal, Route};

crate::reasons! {
    enum TouchReason {
        Touching,
        Touched,
    }
}

/// Rules that touch every class once, and delete those called `old`.
#[derive(Debug)]
struct Touch;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Act {
    name: String,
    uid: String,
}

impl Action for Act {
    fn name(&self) -> &'static str {
        "Touch"
    }
    fn effect(&self) -> Effect {
        let only_if = Precondition { uid: Some(self.uid.clone()), resource_version: None };
        let target = ObjectRef::cluster(Kind::StorageClass, self.name.as_str());
        Effect::Write(Write::Delete { target, only_if, grace_seconds: None })
    }
    fn lane(&self) -> Lane<'_> {
        Lane::about(&self.uid)
    }
    fn permissions() -> &'static [Permission] {
        &[]
    }
}

impl Rules for Touch {
    const NAME: &'static str = "touch";
    type Key = String;
    type Local = u32;
    type View = Option<String>;
    type Action = Act;
    type Reason = TouchReason;
    type Memory = bool;

    const ROUTES: &'static [Route<Touch>] = crate::routes![
        StorageClass => each(|class, woken| woken.wake(class.metadata.name.clone())),
        api::Node => nothing,
    ];

    fn keys(cache: &Cache, _: &u32) -> Vec<String> {
        cache.classes().map(|class| class.metadata.name.clone()).collect()
    }
    fn view(key: &String, cache: &Cache, _: &u32) -> Option<String> {
        cache.class(&ObjectKey::cluster(key.as_str())).map(|class| class.metadata.uid.clone())
    }
    fn decide(_: Timestamp, view: &Option<String>, done: &bool) -> Decision<Act, TouchReason> {
        match view {
            Some(uid) if !done => {
                let why = Why::waiting(TouchReason::Touching, "touching the class");
                Decision::Do(Act { name: uid.split('-').next().unwrap_or_default().into(), uid: uid.clone() }, why)
            }
            Some(_) | None => Decision::Rest(Why::settled(TouchReason::Touched, "nothing to touch")),
        }
    }
    fn remember(_: Timestamp, _: bool, _: &Act, got: &Outcome) -> bool {
        matches!(got, Outcome::Done(_))
    }
    fn learn(touched: &mut u32, _: &Act, _: &Outcome, cache: &Cache) -> Vec<String> {
        *touched += 1;
        if *touched == 1 { Touch::keys(cache, touched) } else { Vec::new() }
    }
    fn back_off(_: &u32) -> BackOff {
        BackOff::default()
    }
    fn object(key: &String) -> ObjectRef {
        ObjectRef::cluster(Kind::StorageClass, key.as_str())
    }
}

fn class(name: &str, version: u64) -> Object {
    let (uid, resource_version) = (alloc::format!("{name}-{version}"), ResourceVersion(version.to_string()));
    StorageClass { metadata: Meta { uid, resource_version, ..Meta::named(name) }.into(), ..StorageClass::default() }
        .into()
}

/// An engine that has listed these classes at version 10.
fn engine(classes: &[&str]) -> (Engine<Touch>, Cache) {
    let mut cache = Cache::default();
    cache.replace(Kind::Node, 10, Vec::new());
    cache.replace(Kind::StorageClass, 10, classes.iter().map(|name| class(name, 5)).collect());
    let mut engine = Engine::new(0);
    engine.wake_all(Timestamp(100), &cache);
    (engine, cache)
}

fn begin(engine: &mut Engine<Touch>, now: u64, cache: &Cache) -> String {
    match engine.next(Timestamp(now), cache) {
        Next::Begin { key, .. } => key.to_string(),
        other => panic!("{other:?}"),
    }
}

// Reliability 35, PV-2: what has not been listed cannot be told from what is gone.
#[test]
fn nothing_is_decided_before_everything_watched_was_listed() {
    let (mut engine, mut cache) = (Engine::<Touch>::new(0), Cache::default());
    cache.replace(Kind::StorageClass, 10, vec![class("a", 5)]);
    engine.wake_all(Timestamp(1), &cache);
    assert!(matches!(engine.next(Timestamp(1), &cache), Next::Idle(None)));
    assert_eq!(engine.decide(Timestamp(1), &"a".into(), &cache).why().code, "CacheNotSynced");
    cache.replace(Kind::Node, 10, Vec::new());
    assert_eq!(begin(&mut engine, 1, &cache), "a");
}

// Reliability 106, PV-6, AD-14, AD-24: one action per key at a time; what changes meanwhile is looked at afterwards.
#[test]
fn a_key_under_way_is_not_begun_again() {
    let (mut engine, mut cache) = engine(&["a"]);
    assert_eq!(begin(&mut engine, 100, &cache), "a");
    let change = cache.set(class("a", 12)).unwrap();
    assert_eq!(engine.changed(Timestamp(101), &change, &cache), 1);
    assert!(matches!(engine.next(Timestamp(200), &cache), Next::Idle(None)));
    assert_eq!(
        (engine.busy(), engine.explain(Timestamp(200), &class("a", 12), &cache)[0].verdict),
        (1, Verdict::Doing)
    );
    engine.ended(Timestamp(300), &"a".into(), &Outcome::Unknown("cut off".into()), &cache);
    assert_eq!(begin(&mut engine, 300, &cache), "a", "another uid: what failed was about an earlier one");
}

// PV-5: and nothing else waits for it.
#[test]
fn what_was_begun_goes_on_first_and_a_failure_backs_off() {
    let (mut engine, cache) = engine(&["a", "b"]);
    assert_eq!(begin(&mut engine, 100, &cache), "a");
    let ended = engine.ended(Timestamp(150), &"a".into(), &Outcome::Unknown("cut off".into()), &cache).unwrap();
    assert_eq!(ended.attempt, Attempt::Failed("cut off".into()));
    // The key that was begun is looked at before `b`, and has to wait.
    let Next::Waiting { key, why } = engine.next(Timestamp(150), &cache) else { panic!("it backs off") };
    assert_eq!((key.as_str(), why.code, why.text.as_str()), ("a", "BackOff", "touching the class: cut off"));
    assert_eq!(begin(&mut engine, 150, &cache), "b");
    assert!(matches!(engine.next(Timestamp(150), &cache), Next::Idle(Some(Timestamp(250)))));
    assert_eq!(engine.explain(Timestamp(200), &class("a", 5), &cache)[0].verdict, Verdict::Waits(50));
    assert_eq!(begin(&mut engine, 250, &cache), "a");
}

// Reliability 104: the answer to our own write is in the cache before the next decision; a namesake is spared.
#[test]
fn an_answer_is_folded_into_the_cache() {
    let (mut engine, mut cache) = engine(&["a", "b"]);
    begin(&mut engine, 100, &cache);
    engine.finish(Timestamp(101), &"a".into(), &Outcome::Done(Reply::Gone), &mut cache);
    assert!(cache.class(&ObjectKey::cluster("a")).is_none());
    assert!(matches!(engine.next(Timestamp(101), &cache), Next::Rested { .. }), "nothing is left to do");
    begin(&mut engine, 101, &cache);
    cache.set(class("b", 20)); // Somebody deleted it and made another of the same name.
    engine.finish(Timestamp(102), &"b".into(), &Outcome::Done(Reply::Gone), &mut cache);
    assert!(cache.class(&ObjectKey::cluster("b")).is_some());
}

#[test]
fn learning_requeues_the_keys_it_names() {
    let (mut engine, cache) = engine(&["a", "b"]);
    begin(&mut engine, 100, &cache);
    engine.rest(&"b".into());
    assert_eq!(engine.waiting(), 0);
    engine.ended(Timestamp(101), &"a".into(), &Outcome::Done(Reply::Nothing), &cache);
    assert_eq!((engine.queued().cloned().collect::<Vec<_>>(), *engine.local()), (vec!["a".into(), "b".into()], 1));
}

// Memory is a hint: forgetting it costs a repetition, and never what is under way.
#[test]
fn starting_over_forgets_everything_but_what_is_under_way() {
    let (mut engine, cache) = engine(&["a", "b"]);
    begin(&mut engine, 100, &cache);
    engine.ended(Timestamp(101), &"a".into(), &Outcome::Refused(Refusal::Denied("no".into())), &cache);
    engine.next(Timestamp(101), &cache);
    assert_eq!(begin(&mut engine, 101, &cache), "b");
    assert_eq!(engine.remembered().count(), 1);
    engine.start_over(Timestamp(102), &cache);
    assert_eq!((engine.remembered().count(), engine.under_way().count()), (0, 1));
    assert_eq!(begin(&mut engine, 102, &cache), "a", "nothing is held back any more");
}

#[test]
fn engines_that_have_come_the_same_way_hash_alike() {
    fn hash(engine: &Engine<Touch>) -> u64 {
        let mut sum = Fnv(0xcbf2_9ce4_8422_2325);
        engine.hash(&mut sum);
        sum.finish()
    }
    let (mut one, cache) = engine(&["a", "b"]);
    let mut other = one.clone();
    assert_eq!(hash(&one), hash(&other));
    begin(&mut one, 100, &cache);
    assert_ne!(hash(&one), hash(&other));
    begin(&mut other, 100, &cache);
    assert_eq!(hash(&one), hash(&other));
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}
