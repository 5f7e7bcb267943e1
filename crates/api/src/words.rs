//! Words of the API with a known set of values. A word that is not known survives a round trip.

use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reads a word without a copy of it on the heap, unless it is one that is not known.
struct Reader<T>(PhantomData<T>);

impl<T: for<'a> From<&'a str>> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        Ok(T::from(word))
    }
}

/// Declares an enum of words.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($word:ident),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the Kubernetes word of the same name")]
        pub enum $name {
            $($word,)*
            /// A word that is not known here; empty if nothing is said.
            Other(String),
        }

        impl $name {
            /// The word as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$word => stringify!($word),)*
                    $name::Other(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $(stringify!($word) => $name::$word,)*
                    other => $name::Other(other.into()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Reader(PhantomData))
            }
        }
    )* };
}

words! {
    /// Where a claim is in its life.
    ClaimPhase { Pending, Bound, Lost }
    /// Where a volume is in its life.
    VolumePhase { Pending, Available, Bound, Released, Failed }
    /// Where a pod is in its life.
    PodPhase { Pending, Running, Succeeded, Failed, Unknown }
    /// How a volume may be shared.
    AccessMode { ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod }
    /// What happens to a volume when its claim is gone.
    ReclaimPolicy { Retain, Delete, Recycle }
    /// Whether a volume has a filesystem.
    VolumeMode { Filesystem, Block }
    /// When a claim gets its volume.
    BindingMode { Immediate, WaitForFirstConsumer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StorageClass, VolumeSpec};
    use serde_json::json;

    #[test]
    fn words_survive_a_round_trip_known_or_not() {
        for word in ["Bound", "Lost", "Elsewhere", ""] {
            let phase: ClaimPhase = serde_json::from_value(json!(word)).unwrap();
            assert_eq!(serde_json::to_value(&phase).unwrap(), json!(word));
            assert_eq!(phase.as_str(), word);
        }
        assert_eq!(ClaimPhase::from("Bound"), ClaimPhase::Bound);
        assert_eq!(AccessMode::from("ReadWriteOncePod"), AccessMode::ReadWriteOncePod);
        assert_eq!(ClaimPhase::default(), ClaimPhase::Other(String::new()));
    }

    #[test]
    fn objects_keep_words_that_are_not_known_and_say_none_that_is_not_said() {
        let words = json!({ "accessModes": ["ReadWriteOnce", "Sometimes"], "persistentVolumeReclaimPolicy": "Shred",
            "volumeMode": "Tape" });
        let spec: VolumeSpec = serde_json::from_value(words.clone()).unwrap();
        assert_eq!(spec.access_modes, [AccessMode::ReadWriteOnce, AccessMode::Other("Sometimes".into())]);
        assert_eq!(spec.persistent_volume_reclaim_policy, ReclaimPolicy::Other("Shred".into()));
        assert_eq!(*spec.volume_mode(), VolumeMode::Other("Tape".into()));
        assert_eq!(serde_json::to_value(&spec).unwrap(), words);
        let silent: VolumeSpec = serde_json::from_value(json!({ "volumeMode": null })).unwrap();
        assert_eq!(silent, VolumeSpec::default());
        assert_eq!(*silent.volume_mode(), VolumeMode::Filesystem);
        assert_eq!(serde_json::to_value(&silent).unwrap(), json!({}));
        let class = StorageClass::default();
        assert_eq!((class.reclaim_policy(), class.waits_for_consumer()), (&ReclaimPolicy::Delete, false));
    }
}
