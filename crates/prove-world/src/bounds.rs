//! How much trouble a world may meet.

use std::fmt;

/// How often each thing may happen in one run. Everything not counted here may happen at any time, any number of times,
/// in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Moves of the user.
    pub user: u8,
    /// Faults of any kind, in all.
    pub faults: u8,
    /// Crashes: the controller loses cache, memory and every answer it waits for; what it had begun happened or not.
    pub crashes: u8,
    /// Answers lost after the effect.
    pub lost: u8,
    /// Requests lost before the effect, which looks the same to the sender.
    pub unsent: u8,
    /// Calls the driver finally refuses without an effect.
    pub refused: u8,
    /// Requests that were given up or forgotten and take effect later.
    pub late: u8,
    /// Erasures of what is remembered about one key.
    pub erased: u8,
    /// Delays of any kind, in all.
    pub delays: u8,
    /// Actions held up between decision and effect while others go on.
    pub held: u8,
    /// Watches of one kind at one controller that fall behind, for as long as they like, and then deliver one by one.
    pub behind: u8,
}

impl Budget {
    /// Nothing but the user.
    pub const fn calm(user: u8) -> Budget {
        Budget {
            user,
            faults: 0,
            crashes: 0,
            lost: 0,
            unsent: 0,
            refused: 0,
            late: 0,
            erased: 0,
            delays: 0,
            held: 0,
            behind: 0,
        }
    }

    /// Any faults and any delays, so many of each in all.
    pub const fn troubled(user: u8, faults: u8, delays: u8) -> Budget {
        Budget {
            user,
            faults,
            crashes: faults,
            lost: faults,
            unsent: faults,
            refused: faults,
            late: faults,
            erased: faults,
            delays,
            held: delays,
            behind: delays,
        }
    }

    fn all(&self) -> [u8; 11] {
        [
            self.user,
            self.faults,
            self.crashes,
            self.lost,
            self.unsent,
            self.refused,
            self.late,
            self.erased,
            self.delays,
            self.held,
            self.behind,
        ]
    }

    /// Whatever can happen under `other` can happen under this.
    pub(crate) fn covers(&self, other: &Budget) -> bool {
        self.all().iter().zip(other.all()).all(|(mine, theirs)| *mine >= theirs)
    }

    /// One fault of a kind, if there is any left.
    pub(crate) fn fault(mut self, kind: fn(&mut Budget) -> &mut u8) -> Option<Budget> {
        self.faults = self.faults.checked_sub(1)?;
        let left = kind(&mut self);
        *left = left.checked_sub(1)?;
        Some(self)
    }

    /// One delay of a kind, if there is any left.
    pub(crate) fn delay(mut self, kind: fn(&mut Budget) -> &mut u8) -> Option<Budget> {
        self.delays = self.delays.checked_sub(1)?;
        let left = kind(&mut self);
        *left = left.checked_sub(1)?;
        Some(self)
    }

    /// One move of the user, if there is any left.
    pub(crate) fn user_move(mut self) -> Option<Budget> {
        self.user = self.user.checked_sub(1)?;
        Some(self)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} user moves; {} faults (of them at most {} crashes, {} lost answers, {} lost requests, {} refused calls, \
             {} late effects, {} erased memories); {} delays (of them at most {} actions held, {} watches behind)",
            self.user,
            self.faults,
            self.crashes,
            self.lost,
            self.unsent,
            self.refused,
            self.late,
            self.erased,
            self.delays,
            self.held,
            self.behind
        )
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
