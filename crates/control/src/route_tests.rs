use alloc::string::String;
use alloc::vec::Vec;

use api::{CSIDriver, Kind, Meta, Node, Object, ObjectKey, ObjectRef, StorageClass};

use super::*;
use crate::{Action, BackOff, Decision, Effect, Outcome, Permission, Timestamp, Why};

/// Rules that look at a class and at the driver of the same name. `HONEST` ones say so.
struct Look<const HONEST: bool>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Nothing;

impl Action for Nothing {
    fn name(&self) -> &'static str {
        "Nothing"
    }
    fn effect(&self) -> Effect {
        Effect::Nothing
    }
    fn permissions() -> &'static [Permission] {
        &[]
    }
}

crate::reasons! {
    enum LookReason {
        Looked,
    }
}

impl<const HONEST: bool> Rules for Look<HONEST> {
    const NAME: &'static str = "look";
    type Key = String;
    type Local = ();
    type View = bool;
    type Action = Nothing;
    type Reason = LookReason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = match HONEST {
        true => crate::routes![
            StorageClass => each(|class, woken| woken.wake(class.metadata.name.clone())),
            Node => both(node_wakes),
            CSIDriver => nothing,
        ],
        false => crate::routes![StorageClass => each(|class, woken| woken.wake(class.metadata.name.clone()))],
    };

    fn keys(_: &Cache, (): &()) -> Vec<String> {
        Vec::new()
    }
    fn view(key: &String, cache: &Cache, (): &()) -> bool {
        let key = ObjectKey::cluster(key.as_str());
        cache.class(&key).is_some() && cache.driver(&key).is_some()
    }
    fn decide(_: Timestamp, _: &bool, (): &()) -> Decision<Nothing, LookReason> {
        Decision::Rest(Why::settled(LookReason::Looked, "that was all"))
    }
    fn remember(_: Timestamp, (): (), _: &Nothing, _: &Outcome) {}
    fn learn((): &mut (), _: &Nothing, _: &Outcome, _: &Cache) -> Vec<String> {
        Vec::new()
    }
    fn back_off((): &()) -> BackOff {
        BackOff::default()
    }
    fn object(key: &String) -> ObjectRef {
        ObjectRef::cluster(Kind::StorageClass, key.as_str())
    }
}

fn node_wakes<const HONEST: bool>(node: Sides<'_, Node>, woken: &mut Woken<'_, Look<HONEST>>) {
    let [before, after] = [node.before, node.after].map(|node| node.map(|node| &node.metadata.labels));
    if before != after {
        woken.wake_all(node.iter().map(|node| node.metadata.name.clone()));
    }
}

fn class(name: &str) -> Object {
    StorageClass { metadata: Meta::named(name).into(), ..StorageClass::default() }.into()
}

fn node(name: &str, zone: &str) -> Object {
    let mut node = Node { metadata: Meta::named(name), ..Node::default() };
    node.metadata.labels.insert("zone".into(), zone.into());
    node.into()
}

fn woken(before: Option<Object>, after: Option<Object>) -> Vec<String> {
    Look::<true>::wakes(&Change { before, after }, &Cache::default(), &())
}

#[test]
fn what_is_watched_follows_from_the_table() {
    assert_eq!(Look::<true>::watches(), [Kind::StorageClass, Kind::Node, Kind::CSIDriver]);
    assert_eq!(Look::<false>::watches(), [Kind::StorageClass]);
}

#[test]
fn each_side_of_a_change_wakes_what_it_concerns() {
    assert_eq!(woken(None, Some(class("new"))), ["new"]);
    assert_eq!(woken(Some(class("old")), Some(class("new"))), ["new", "old"]);
    assert_eq!(woken(Some(class("old")), None), ["old"]);
}

#[test]
fn a_row_for_both_sides_is_asked_once_and_may_compare_them() {
    assert!(woken(Some(node("n", "a")), Some(node("n", "a"))).is_empty());
    assert_eq!(woken(Some(node("n", "a")), Some(node("n", "b"))), ["n"]);
    assert_eq!(woken(None, Some(node("n", "a"))), ["n"]);
}

#[test]
fn kinds_without_a_row_and_quiet_ones_wake_nothing() {
    let driver = CSIDriver { metadata: Meta::named("d"), ..CSIDriver::default() };
    assert!(woken(None, Some(driver.into())).is_empty());
    let change = Change { before: None, after: Some(node("n", "a")) };
    assert!(Look::<false>::wakes(&change, &Cache::default(), &()).is_empty());
}

fn view<const HONEST: bool>() -> bool {
    let mut cache = Cache::default();
    cache.set(class("c"));
    cache.checked::<Look<HONEST>, _>(|cache| Look::<HONEST>::view(&"c".into(), cache, &()))
}

#[test]
fn a_view_may_read_what_has_a_row() {
    assert!(!view::<true>());
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "look reads [CSIDriver] and has no route for it"))]
fn a_view_that_reads_what_is_not_watched_is_caught() {
    assert!(!view::<false>());
}
