use alloc::sync::Arc;
use core::fmt;
use core::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of an object that copies of the object share, until one of them is written to.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedPart<T>(Arc<T>);

impl<T: Clone> SharedPart<T> {
    /// The part by itself, copied only if somebody else has it too.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> Deref for SharedPart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Whoever writes gets a copy of their own first, if there are others.
impl<T: Clone> DerefMut for SharedPart<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for SharedPart<T> {
    fn from(part: T) -> Self {
        SharedPart(Arc::new(part))
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedPart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for SharedPart<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        T::serialize(self, to)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedPart<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::deserialize(from).map(SharedPart::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn a_copy_shares_until_it_is_written_to() {
        let one = SharedPart::from(String::from("a"));
        let mut other = one.clone();
        assert!(core::ptr::eq(&*one, &*other));
        other.push('b');
        assert_eq!((one.as_str(), other.as_str()), ("a", "ab"));
        assert_eq!(serde_json::from_str::<SharedPart<String>>(&serde_json::to_string(&one).unwrap()).unwrap(), one);
    }
}
