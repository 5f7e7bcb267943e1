//! How much trouble a world may meet, and how far an exploration goes.

use std::fmt;

/// The table of everything that is counted: a field each, and what people call it.
macro_rules! budget {
    (
        alone { $($(#[doc = $alone_doc:literal])+ $alone:ident $alone_name:literal;)+ }
        faults { $($(#[doc = $fault_doc:literal])+ $fault:ident $fault_name:literal;)+ }
        delays { $($(#[doc = $delay_doc:literal])+ $delay:ident $delay_name:literal;)+ }
    ) => {
        /// How often each thing may happen in one run. Everything not counted here may happen at any time, any number of
        /// times, in any order.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Budget {
            $($(#[doc = $alone_doc])+ pub $alone: u8,)+
            /// Faults of any kind, in all.
            pub faults: u8,
            $($(#[doc = $fault_doc])+ pub $fault: u8,)+
            /// Delays of any kind, in all.
            pub delays: u8,
            $($(#[doc = $delay_doc])+ pub $delay: u8,)+
        }

        impl Budget {
            /// Nothing but the user.
            pub const fn calm(user: u8) -> Budget {
                Budget { user, faults: 0, $($fault: 0,)+ delays: 0, $($delay: 0,)+ ..Budget::NONE }
            }

            const NONE: Budget = Budget { $($alone: 0,)+ faults: 0, $($fault: 0,)+ delays: 0, $($delay: 0,)+ };

            /// Any faults and any delays, so many of each in all. The driver may let as many calls overtake another, and
            /// as many watches may list again. What no rules can survive stays out: see [`Budget::lies`].
            pub const fn troubled(user: u8, faults: u8, delays: u8) -> Budget {
                let (overtaken, relists) = (faults, delays);
                Budget { user, overtaken, relists, faults, $($fault: faults,)+ delays, $($delay: delays,)+ ..Budget::NONE }
            }

            /// Every count with its name: those that stand alone, then faults, then delays.
            fn counts(&self) -> Vec<(&'static str, u8)> {
                vec![
                    $(($alone_name, self.$alone),)+
                    ("faults", self.faults), $(($fault_name, self.$fault),)+
                    ("delays", self.delays), $(($delay_name, self.$delay),)+
                ]
            }

            /// What is less of two, count by count.
            pub(crate) fn least(self, other: Budget) -> Budget {
                Budget {
                    $($alone: self.$alone.min(other.$alone),)+
                    faults: self.faults.min(other.faults), $($fault: self.$fault.min(other.$fault),)+
                    delays: self.delays.min(other.delays), $($delay: self.$delay.min(other.$delay),)+
                }
            }

            /// Whatever can happen under `other` can happen under this.
            pub fn covers(&self, other: &Budget) -> bool {
                self.least(*other) == *other
            }
        }

        impl fmt::Display for Budget {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let listed = |counts: &[(&str, u8)]| {
                    let some: Vec<_> = counts.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{n} {name}")).collect();
                    some.join(", ")
                };
                write!(f, "{}", listed(&[$(($alone_name, self.$alone)),+]))?;
                write!(f, "; {} faults", self.faults)?;
                if self.faults > 0 {
                    write!(f, " (at most {})", listed(&[$(($fault_name, self.$fault)),+]))?;
                }
                write!(f, "; {} delays", self.delays)?;
                if self.delays > 0 {
                    write!(f, " (at most {})", listed(&[$(($delay_name, self.$delay)),+]))?;
                }
                Ok(())
            }
        }
    };
}

budget! {
    alone {
        /// Moves of the user.
        user "user moves";
        /// Calls the driver carries out while an earlier one about another aspect of the same volume is under way.
        overtaken "calls overtaking another";
        /// Watches that are behind and list again instead of delivering one event after another.
        relists "lists instead of events";
        /// Final refusals of calls that the driver has carried out, with this call or one before. CSI forbids them, and the
        /// rules do not survive them: `tests/assumptions.rs` shows what breaks. No world allows them.
        lies "refused calls that were carried out";
        /// Calls the driver carries out before an earlier one about the very same thing. No rules survive it either.
        reordered "calls carried out in the wrong order";
    }
    faults {
        /// Crashes: the controller loses cache, memory and every answer it waits for; of what it had begun each effect
        /// happened, or did not, or, where `late` allows, comes later.
        crashes "crashes";
        /// Another leader takes over while everything the old one has decided on is still on its way.
        takeovers "takeovers";
        /// Answers lost after the effect. A 500 or 429 from the API server and every code of the driver that leaves it open
        /// what happened read the same.
        lost "lost answers";
        /// Requests lost before the effect, which looks the same to the sender.
        unsent "lost requests";
        /// Calls the driver finally refuses without an effect, with any code that CSI lists for the method.
        refused "refused calls";
        /// Writes that the API server answers with 403 or 409, done or not.
        denied "denied writes";
        /// Reads that the API server does not answer, or denies.
        unread "failed reads";
        /// Operations of a machine that fail, or whose end is not known.
        machine "failed operations";
        /// Operations of a machine that do not end in time and go on.
        hung "hung operations";
        /// Calls of which the driver does a part and then dies.
        cut "calls cut short";
        /// A machine loses its power and starts again: mounts, processes and what was not synced are gone.
        power "losses of power";
        /// Requests that were given up or forgotten and take effect later.
        late "late effects";
        /// Erasures of what is remembered about one key.
        erased "erased memories";
    }
    delays {
        /// Actions held up between decision and effect while others go on.
        held "actions held";
        /// Watches of one kind at one controller that fall behind, for as long as they like, and then deliver one by one.
        behind "watches behind";
    }
}

impl Budget {
    /// One fault of a kind, if there is any left.
    pub(crate) fn fault(self, kind: fn(&mut Budget) -> &mut u8) -> Option<Budget> {
        let mut left = self.spend(kind)?;
        left.faults = left.faults.checked_sub(1)?;
        Some(left)
    }

    /// One delay of a kind, if there is any left.
    pub(crate) fn delay(self, kind: fn(&mut Budget) -> &mut u8) -> Option<Budget> {
        let mut left = self.spend(kind)?;
        left.delays = left.delays.checked_sub(1)?;
        Some(left)
    }

    /// One of something that is counted alone, or that comes along with a fault, if there is any left.
    pub(crate) fn spend(mut self, kind: fn(&mut Budget) -> &mut u8) -> Option<Budget> {
        let left = kind(&mut self);
        *left = left.checked_sub(1)?;
        Some(self)
    }

    /// What was allowed and, given what was left at the least, never happened: this world has no occasion for it.
    pub(crate) fn unused(&self, least: &Budget) -> Vec<&'static str> {
        let counts = self.counts().into_iter().zip(least.counts());
        counts.filter(|((_, had), (_, left))| had > &0 && had == left).map(|((name, _), _)| name).collect()
    }

    /// What was used up somewhere, so that more of it would lead further.
    pub(crate) fn used_up(&self, least: &Budget) -> Vec<&'static str> {
        let counts = self.counts().into_iter().zip(least.counts());
        counts.filter(|((_, had), (_, left))| had > &0 && *left == 0).map(|((name, _), _)| name).collect()
    }
}

/// How far a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Trouble in one run.
    pub budget: Budget,
    /// Stop after so many states, and say so.
    pub states: usize,
}

impl Bounds {
    /// This much trouble, and as many states as it takes.
    pub const fn of(budget: Budget) -> Bounds {
        Bounds { budget, states: 50_000_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_with_a_late_effect_is_one_fault() {
        let budget = Budget { faults: 1, crashes: 1, late: 1, ..Budget::calm(0) };
        let left = budget.fault(|b| &mut b.crashes).and_then(|left| left.spend(|b| &mut b.late)).unwrap();
        assert_eq!(left, Budget::calm(0));
        assert_eq!(left.fault(|b| &mut b.crashes), None);
    }

    #[test]
    fn what_was_used_up_and_what_never_came_up_is_told() {
        let (had, least) = (Budget::troubled(1, 1, 0), Budget { refused: 1, ..Budget::troubled(0, 0, 0) });
        assert_eq!(had.unused(&least), ["refused calls"]);
        assert!(had.used_up(&least).contains(&"user moves") && !had.used_up(&least).contains(&"refused calls"));
        assert!(had.covers(&least) && !least.covers(&had));
    }
}
