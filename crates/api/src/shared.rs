use alloc::sync::Arc;
use core::fmt;
use core::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of an object that copies of the object share, until one of them is written to.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shared<T>(Arc<T>);

impl<T: Clone> Shared<T> {
    /// The part by itself, copied only if somebody else has it too.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Whoever writes gets a copy of their own first, if there are others.
impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(part: T) -> Self {
        Shared(Arc::new(part))
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        T::serialize(self, to)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::deserialize(from).map(Shared::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn a_copy_shares_until_it_is_written_to() {
        let one = Shared::from(String::from("a"));
        let mut other = one.clone();
        assert!(core::ptr::eq(&*one, &*other));
        other.push('b');
        assert_eq!((one.as_str(), other.as_str()), ("a", "ab"));
        assert_eq!(serde_json::from_str::<Shared<String>>(&serde_json::to_string(&one).unwrap()).unwrap(), one);
    }
}
