//! Which keys a change concerns, as a table with one row for each kind that a controller watches.
//!
//! [`routes!`](crate::routes) writes the table. What a controller watches follows from it, so a kind is either in the
//! table or neither watched nor heard of.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::marker::PhantomData;

use api::Kind;
/// So that the macro finds it.
#[doc(hidden)]
pub use api::Narrow;

use crate::{Cache, Change, Rules};

/// One row: a kind, and how to find the keys that a change of such an object concerns.
pub struct Route<R: Rules> {
    kind: Kind,
    wakes: fn(&Change, &mut Woken<'_, R>),
}

impl<R: Rules> Route<R> {
    /// A row of [`routes!`](crate::routes).
    pub const fn new(kind: Kind, wakes: fn(&Change, &mut Woken<'_, R>)) -> Route<R> {
        Route { kind, wakes }
    }
}

/// Writes the routes of a controller, one kind to a line:
///
/// ```ignore
/// routes![
///     Pod => each(pod_wakes),       // fn(&Pod, &mut Woken<'_, R>), for the object as it was and as it is
///     Node => both(node_wakes),     // fn(Sides<'_, Node>, &mut Woken<'_, R>), once for both
///     CSIDriver => nothing,         // read by views, and no change of it matters by itself
/// ]
/// ```
#[macro_export]
macro_rules! routes {
    ($($kind:ty => $how:ident $(($wakes:expr))?),* $(,)?) => {
        &[$($crate::Route::new(
            <$kind as $crate::route::Narrow>::KIND,
            |change, woken| $crate::route::$how::<$kind, _>(change, woken $(, $wakes)?),
        )),*]
    };
}

/// The keys that a change wakes, and what may be looked at to find them.
pub struct Woken<'a, R: Rules> {
    /// It already holds the change.
    pub cache: &'a Cache,
    /// The facts from outside the API.
    pub local: &'a R::Local,
    keys: BTreeSet<R::Key>,
}

impl<R: Rules> Woken<'_, R> {
    /// Wakes one key.
    pub fn wake(&mut self, key: R::Key) {
        self.keys.insert(key);
    }

    /// Wakes some keys, or none.
    pub fn wake_all(&mut self, keys: impl IntoIterator<Item = R::Key>) {
        self.keys.extend(keys);
    }
}

/// An object before and after a change.
#[derive(Debug)]
pub struct Sides<'a, T> {
    /// As it was; `None` if it is new.
    pub before: Option<&'a T>,
    /// As it is; `None` if it is gone.
    pub after: Option<&'a T>,
}

impl<'a, T> Sides<'a, T> {
    /// The sides there are, the older one first.
    pub fn iter(&self) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.before.into_iter().chain(self.after)
    }
}

/// A row that looks at each side of a change by itself.
pub fn each<T: Narrow, R: Rules>(change: &Change, woken: &mut Woken<'_, R>, wakes: fn(&T, &mut Woken<'_, R>)) {
    change.sides().filter_map(T::of).for_each(|object| wakes(object, woken));
}

/// A row that compares the sides of a change.
pub fn both<T: Narrow, R: Rules>(
    change: &Change,
    woken: &mut Woken<'_, R>,
    wakes: fn(Sides<'_, T>, &mut Woken<'_, R>),
) {
    let [before, after] =
        [&change.before, &change.after].map(|side| side.as_ref().and_then(T::of).map(|object| &**object));
    wakes(Sides { before, after }, woken);
}

/// A row of a kind that views read and of which no change matters by itself.
pub fn nothing<T: Narrow, R: Rules>(_change: &Change, _woken: &mut Woken<'_, R>) {}

/// The keys a change concerns, by the controller's table.
pub(crate) fn wakes<R: Rules>(change: &Change, cache: &Cache, local: &R::Local) -> Vec<R::Key> {
    const { assert!(!R::ROUTES.is_empty(), "rules that wrap others forward wakes()") };
    let mut woken = Woken { cache, local, keys: BTreeSet::new() };
    let kind = change.object().map(api::Object::kind);
    for route in R::ROUTES.iter().filter(|route| Some(route.kind) == kind) {
        (route.wakes)(change, &mut woken);
    }
    woken.keys.into_iter().collect()
}

/// The kinds in a controller's table.
pub(crate) struct Kinds<R>(PhantomData<R>);

impl<R: Rules> Kinds<R> {
    const PADDED: &'static [Kind; Kind::ALL.len()] = &{
        assert!(!R::ROUTES.is_empty(), "rules that wrap others forward watches()");
        let mut kinds = Kind::ALL;
        let mut at = 0;
        while at < R::ROUTES.len() {
            kinds[at] = R::ROUTES[at].kind;
            at += 1;
        }
        kinds
    };
    pub(crate) const ALL: &'static [Kind] = Self::PADDED.split_at(R::ROUTES.len()).0;
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
