//! Whom a change wakes, as a table.

use api::{Kind, Object, Value};
use control::{Cache, Change, Rules};

use crate::shapes::check_table;

/// A change by a name: the object before and after.
pub type NamedChange = (&'static str, Option<Object>, Option<Object>);

/// An object as the API has it.
pub fn object(kind: Kind, body: Value) -> Object {
    Object::from_json(kind, body).unwrap_or_else(|error| panic!("{kind:?}: {error:?}"))
}

/// Compares the keys that each change wakes, given this cache, with the table `src/tests/tables/wakes.txt` of a crate.
/// A key too many costs a look for nothing, one too few may wait for ever.
pub fn check_wakes<R: Rules>(manifest: &str, cache: &Cache, local: &R::Local, changes: &[NamedChange]) {
    let names: Vec<(&'static str, usize)> = changes.iter().enumerate().map(|(at, change)| (change.0, at)).collect();
    check_table(manifest, "wakes", |choices| {
        let (_, before, after) = changes[choices.one_of("change", &names)].clone();
        let mut woken: Vec<String> =
            R::wakes(&Change { before, after }, cache, local).iter().map(ToString::to_string).collect();
        woken.sort();
        woken.dedup();
        if woken.is_empty() { "nobody".into() } else { woken.join(", ") }
    });
}
