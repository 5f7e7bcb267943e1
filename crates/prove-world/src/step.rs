//! The steps a world may take, listed.

use api::{Kind, Write};
use control::Effect;

use crate::bounds::Budget;
use crate::world::{UserMove, World};

/// One step. Small, so that millions of states can remember the one that led to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// One of the user's moves.
    User(u8),
    /// A decided action, or one held up before (`held`), has its effect or not, and an answer or not.
    Act { member: u8, at: u8, held: bool, how: How },
    /// A decided action is begun and held up.
    Hold { member: u8, at: u8 },
    /// One event reaches a controller whose watch is behind.
    Deliver { member: u8, kind: Kind },
    /// An effect comes that nobody waits for any more.
    Land(u8),
    /// A controller dies and starts anew; of the actions held up, those in the mask had their effect.
    Crash { member: u8, landed: u8 },
    /// A controller forgets one key.
    Erase { member: u8, at: u8 },
    /// An agent does not go on at once with what only its own machine sees.
    Dawdle { member: u8 },
}

/// How an action ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Done,
    AnswerLost,
    Unsent,
    Refused,
    Late,
    ThenCrash,
    LateCrash,
}

/// A step, what it leaves of the budget, and whose watch falls behind at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) step: Step,
    pub(crate) budget: Budget,
    pub(crate) behind: Option<(u8, Kind)>,
    /// No user, no fault, no delay: it happens sooner or later by itself.
    pub(crate) calm: bool,
}

impl World {
    /// Everything that may happen next.
    pub(crate) fn moves(&self, user: &[UserMove]) -> Vec<Move> {
        let mut moves = Vec::new();
        if let Some((member, at)) = self.private() {
            self.ways(member, at, false, &self.members[member].ready_intent(at).effect, &mut moves);
            if let Some(budget) = self.budget.delay(|b| &mut b.held) {
                let step = Step::Dawdle { member: member as u8 };
                moves.push(Move { step, budget, behind: None, calm: false });
            }
            return moves;
        }
        let calm = |step| Move { step, budget: self.budget, behind: None, calm: true };
        for (at, late) in self.late.iter().enumerate() {
            // A driver finishes what it works on; a request that hangs in a network may never come.
            let sure = matches!(late.intent.effect, Effect::Call { .. });
            moves.push(Move { calm: sure, ..calm(Step::Land(at as u8)) });
        }
        for (member, kind) in self.behind.keys() {
            moves.push(calm(Step::Deliver { member: *member as u8, kind: *kind }));
        }
        for (index, member) in self.members.iter().enumerate() {
            for at in 0..member.ready() {
                self.ways(index, at, false, &member.ready_intent(at).effect, &mut moves);
            }
            for at in 0..member.held() {
                self.ways(index, at, true, &member.held_intent(at).effect, &mut moves);
            }
            self.crashes(index, member.held(), &mut moves);
            if let Some(budget) = self.budget.fault(|b| &mut b.erased) {
                for at in 0..member.remembered() {
                    let step = Step::Erase { member: index as u8, at: at as u8 };
                    moves.push(Move { step, budget, behind: None, calm: false });
                }
            }
        }
        if let Some(budget) = self.budget.user_move() {
            for at in 0..user.len() {
                moves.push(Move { step: Step::User(at as u8), budget, behind: None, calm: false });
            }
        }
        moves
    }

    /// An operation on its own machine that an agent is about to do: nobody else sees it or is hindered by it, so it is
    /// done before anything else happens, unless the agent dawdles.
    fn private(&self) -> Option<(usize, usize)> {
        for (index, member) in self.members.iter().enumerate() {
            if self.dawdling & (1 << index) == 0 {
                let private = |at: &usize| matches!(member.ready_intent(*at).effect, Effect::Host(_));
                if let Some(at) = (0..member.ready()).find(private) {
                    return Some((index, at));
                }
            }
        }
        None
    }

    /// The ways one action may end. Reading changes nothing, so losing a read is merely a repetition; and a machine
    /// answers its own agent or the agent is gone, so operations on it are neither lost nor late.
    fn ways(&self, member: usize, at: usize, held: bool, effect: &Effect, moves: &mut Vec<Move>) {
        let (member, at) = (member as u8, at as u8);
        let mut push = |how, budget: Option<Budget>| {
            if let Some(budget) = budget {
                let step = Step::Act { member, at, held, how };
                moves.push(Move { step, budget, behind: None, calm: how == How::Done });
            }
        };
        let budget = self.budget;
        push(How::Done, Some(budget));
        let remote = matches!(effect, Effect::Write(_) | Effect::Call { .. });
        if remote {
            push(How::AnswerLost, budget.fault(|b| &mut b.lost));
            push(How::Unsent, budget.fault(|b| &mut b.unsent));
            push(How::Late, budget.fault(|b| &mut b.late));
            let crash = budget.fault(|b| &mut b.crashes);
            push(How::LateCrash, crash.and_then(|left| left.fault(|b| &mut b.late)));
        }
        if matches!(effect, Effect::Call { call, .. } if !self.is_busy(call)) {
            push(How::Refused, budget.fault(|b| &mut b.refused));
        }
        if !matches!(effect, Effect::Read(_)) {
            push(How::ThenCrash, budget.fault(|b| &mut b.crashes));
        }
        // A machine's own operation is seen by nobody else before its answer, so holding it up shows nothing new.
        if !held
            && (remote || matches!(effect, Effect::Read(_)))
            && let Some(budget) = budget.delay(|b| &mut b.held)
        {
            moves.push(Move { step: Step::Hold { member, at }, budget, behind: None, calm: false });
        }
    }

    fn crashes(&self, member: usize, held: usize, moves: &mut Vec<Move>) {
        let Some(budget) = self.budget.fault(|b| &mut b.crashes) else { return };
        for landed in 0..(1_u8 << held.min(6)) {
            let step = Step::Crash { member: member as u8, landed };
            moves.push(Move { step, budget, behind: None, calm: false });
        }
    }

    /// The same move with one of the watchers of what changed falling behind.
    pub(crate) fn stragglers(&self, step: &Move, kinds: &[Kind]) -> Vec<Move> {
        let Some(budget) = step.budget.delay(|b| &mut b.behind) else { return Vec::new() };
        let actor = match step.step {
            // The answer tells the actor what the watch would.
            Step::Act { member, how: How::Done, .. } => Some(member),
            Step::Act { member, how: How::ThenCrash | How::LateCrash, .. } | Step::Crash { member, .. } => Some(member),
            _ => None,
        };
        let mut moves = Vec::new();
        for kind in kinds {
            for (at, member) in self.members.iter().enumerate() {
                let at = at as u8;
                if member.watches(*kind) && Some(at) != actor && !self.behind.contains_key(&(usize::from(at), *kind)) {
                    moves.push(Move { budget, behind: Some((at, *kind)), calm: false, ..*step });
                }
            }
        }
        moves
    }

    /// A step in words, as seen from this state.
    pub(crate) fn words(&self, step: &Move, user: &[UserMove], note: &str) -> String {
        let name = |member: u8| self.members[usize::from(member)].name();
        let mut text = match step.step {
            Step::User(at) => format!("user: {}", user[usize::from(at)].label),
            Step::Act { member, at, held, how } => {
                let of = &self.members[usize::from(member)];
                let at = usize::from(at);
                let intent = if held { of.held_intent(at) } else { of.ready_intent(at) };
                let what = format!("{}: {}{}", of.name(), intent.label, detail(&intent.effect));
                match how {
                    How::Done => format!("{what}: {note}"),
                    How::AnswerLost => format!("{what}: {note}, but the answer is lost"),
                    How::Unsent => format!("{what}: the request is lost"),
                    How::Refused => format!("{what}: the driver refuses"),
                    How::Late => format!("{what}: given up, may still come"),
                    How::ThenCrash => format!("{what}: {note}, then crash {} before the answer", of.name()),
                    How::LateCrash => format!("{what}: crash {}, may still come", of.name()),
                }
            }
            Step::Hold { member, at } => {
                let intent = self.members[usize::from(member)].ready_intent(usize::from(at));
                format!("{}: {}{}: begun, held up", name(member), intent.label, detail(&intent.effect))
            }
            Step::Deliver { member, kind } => format!("{}: sees {kind} event: {note}", name(member)),
            Step::Land(at) => {
                let late = &self.late[usize::from(at)];
                format!("late effect of {}: {}{}: {note}", late.actor, late.intent.label, detail(&late.intent.effect))
            }
            Step::Crash { member, .. } => format!("crash {} {note}", name(member)),
            Step::Erase { member, at } => {
                let key = self.members[usize::from(member)].remembered_key(usize::from(at));
                format!("{} forgets {key}", name(member))
            }
            Step::Dawdle { member } => format!("{} dawdles", name(member)),
        };
        if let Some((member, kind)) = step.behind {
            text.push_str(&format!(" ({}'s watch of {kind} falls behind)", name(member)));
        }
        text
    }
}

fn detail(effect: &Effect) -> String {
    match effect {
        Effect::Read(target) => format!(" [read {target}]"),
        Effect::Write(Write::Patch { target, subresource, .. }) => {
            format!(" [patch {target}{}]", if subresource.is_some() { "/status" } else { "" })
        }
        Effect::Write(write) => format!(" [{} {}]", write.verb(), write.target()),
        Effect::Call { call, .. } => format!(" [{call:?}]"),
        Effect::Host(op) => format!(" [{op:?}]"),
    }
}
