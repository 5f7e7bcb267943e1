use api::Kind;
#[cfg(debug_assertions)]
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The kinds that were read from a cache, one bit each, and how many objects. Release builds keep nothing.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    #[cfg(debug_assertions)]
    kinds: AtomicU32,
    #[cfg(debug_assertions)]
    objects: AtomicUsize,
}

const _: () = assert!(Kind::ALL.len() <= 32, "every kind has its bit");

/// What was read from one cache was not read from its copy.
impl Clone for Reads {
    fn clone(&self) -> Reads {
        Reads::default()
    }
}

impl Reads {
    #[cfg(debug_assertions)]
    pub(crate) fn note(&self, kind: Kind) {
        self.kinds.fetch_or(1 << kind as u32, Ordering::Relaxed);
    }

    #[cfg(not(debug_assertions))]
    pub(crate) fn note(&self, _kind: Kind) {}

    /// One object was taken from its shelf.
    #[cfg(debug_assertions)]
    pub(crate) fn count(&self) {
        self.objects.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(not(debug_assertions))]
    pub(crate) fn count(&self) {}

    /// How many were taken so far.
    #[cfg(debug_assertions)]
    pub(crate) fn counted(&self) -> usize {
        self.objects.load(Ordering::Relaxed)
    }

    /// The kinds read since the last time this was asked.
    pub(crate) fn take(&self) -> impl Iterator<Item = Kind> + use<> {
        #[cfg(debug_assertions)]
        let kinds = self.kinds.swap(0, Ordering::Relaxed);
        #[cfg(not(debug_assertions))]
        let kinds = 0_u32;
        Kind::ALL.into_iter().filter(move |kind| kinds & (1 << *kind as u32) != 0)
    }
}
