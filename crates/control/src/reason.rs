use core::fmt::Debug;
use core::hash::Hash;

/// The reasons of one controller: a closed set, declared with [`reasons!`](crate::reasons).
pub trait Reason: Copy + Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// The reason in one CamelCase word, for metric labels, events and `explain`.
    fn name(self) -> &'static str;
}

/// Declares the reasons of a controller. Each variant's name is also its name in metrics, events and `explain`, so that
/// renaming one is a change that users see.
///
/// ```
/// control::reasons! {
///     /// Why a tap is as it is.
///     pub enum TapReason {
///         /// Somebody washes their hands.
///         InUse,
///         /// Nobody does.
///         Closed,
///     }
/// }
/// assert_eq!(control::Reason::name(TapReason::InUse), "InUse");
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$about:meta])* $visible:vis enum $Reason:ident { $($(#[$meaning:meta])* $Name:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visible enum $Reason { $($(#[$meaning])* $Name),+ }

        impl $crate::Reason for $Reason {
            fn name(self) -> &'static str {
                match self { $($Reason::$Name => stringify!($Name)),+ }
            }
        }
    };
}
