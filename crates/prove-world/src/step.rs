//! The steps a world may take, listed: everything that may happen next, and how each action may end.

use api::{Kind, Write};
use control::Effect;
use csi::{Call, Code, Method};

use crate::bounds::Budget;
use crate::world::{USER, UserMove, World};

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
    /// A watch that is behind has lost its place and lists again: what came and went in between is never seen.
    Relist { member: u8, kind: Kind },
    /// An effect comes that nobody waits for any more.
    Land(u8),
    /// A controller dies and starts anew; of the actions held up, those in `landed` had their effect and those in `late`
    /// may still have it.
    Crash { member: u8, landed: u8, late: u8 },
    /// Another process leads in the place of a controller; whatever that one has decided on is still on its way.
    Takeover { member: u8 },
    /// The new incarnation of an agent is written on its Node.
    Introduce { member: u8 },
    /// A controller forgets one key.
    Erase { member: u8, at: u8 },
    /// An agent does not go on at once with what only its own machine sees.
    Dawdle { member: u8 },
    /// The machine of an agent loses its power.
    LosePower { member: u8 },
}

/// How an action ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Done,
    AnswerLost,
    Unsent,
    /// The driver refuses for good and does nothing.
    Refused(Code),
    /// The driver refuses for good what it has done.
    Lied(Code),
    /// The driver does it although an earlier call about the volume is under way.
    Overtakes,
    /// The API server's answer to a write that it has carried out or not.
    Denied(Denial, bool),
    /// The API server's answer to a read: no, or none.
    Unread(bool),
    /// The cache answers a read, once it shows all that there was when it was asked for.
    Cached,
    /// The machine did not do it and says so.
    OpRefused,
    /// The machine does not say whether it did it.
    OpUnknown(bool),
    /// The driver does so many operations of a call and dies.
    CutShort(u8),
    /// It does so many, and then the machine loses its power.
    PowerCut(u8),
    Late,
    ThenCrash,
    LateCrash,
}

/// The API server's refusals as `io-kube` reads them. A 429 or a 500 reads as a lost answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// 403.
    Forbidden,
    /// 409.
    Conflict,
    /// 409 to a create.
    AlreadyExists,
    /// 404 to a delete.
    NotFound,
}

/// What the API server may answer to a write, and whether it was carried out. A server that repeats what its database did
/// not confirm finds its own change in the way.
fn denials(write: &Write) -> &'static [(Denial, bool)] {
    use Denial::{AlreadyExists, Conflict, Forbidden, NotFound};
    match write {
        Write::Create { .. } => &[(Forbidden, false), (Forbidden, true), (Conflict, false), (AlreadyExists, true)],
        Write::Delete { .. } => {
            &[(Forbidden, false), (Forbidden, true), (Conflict, false), (Conflict, true), (NotFound, true)]
        }
        Write::Patch { .. } | Write::Bind { .. } | Write::Note(_) => {
            &[(Forbidden, false), (Forbidden, true), (Conflict, false), (Conflict, true)]
        }
    }
}

/// The codes that CSI lists for a method and that are final, with INTERNAL for all that it does not list. Codes that leave
/// it open what happened read as a lost answer.
fn codes(method: Method) -> &'static [Code] {
    use Code::{AlreadyExists, FailedPrecondition, Internal, InvalidArgument, NotFound, OutOfRange, ResourceExhausted};
    match method {
        Method::CreateVolume => &[Internal, InvalidArgument, NotFound, AlreadyExists, ResourceExhausted, OutOfRange],
        Method::DeleteVolume => &[Internal, FailedPrecondition],
        Method::ControllerPublishVolume => &[Internal, NotFound, AlreadyExists, FailedPrecondition],
        Method::ControllerExpandVolume => &[Internal, InvalidArgument, NotFound, FailedPrecondition, OutOfRange],
        Method::ControllerModifyVolume => &[Internal, InvalidArgument, NotFound],
        Method::NodeStageVolume => &[Internal, NotFound, AlreadyExists, FailedPrecondition, OutOfRange],
        Method::NodePublishVolume => &[Internal, NotFound, AlreadyExists, FailedPrecondition],
        Method::NodeUnstageVolume | Method::NodeUnpublishVolume => &[Internal, NotFound],
        Method::NodeExpandVolume => &[Internal, NotFound, FailedPrecondition, OutOfRange],
        // A volume or node that the driver does not know is detached: NOT_FOUND is no refusal of ControllerUnpublish.
        _ => &[Internal],
    }
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
                moves.push(Move::trouble(Step::Dawdle { member: member as u8 }, budget));
            }
            self.power(member, &mut moves);
            return moves;
        }
        self.arrivals(&mut moves);
        for (index, member) in self.members.iter().enumerate().filter(|(_, member)| !self.is_silent(member.node())) {
            for at in 0..member.ready() {
                self.ways(index, at, false, &member.ready_intent(at).effect, &mut moves);
            }
            for at in 0..member.held() {
                self.ways(index, at, true, &member.held_intent(at).effect, &mut moves);
            }
            self.ends(index, &mut moves);
            self.power(index, &mut moves);
            if let Some(budget) = self.budget.fault(|b| &mut b.erased) {
                for at in 0..member.remembered() {
                    moves.push(Move::trouble(Step::Erase { member: index as u8, at: at as u8 }, budget));
                }
            }
        }
        if let Some(budget) = self.budget.spend(|b| &mut b.user) {
            moves.extend((0..user.len()).map(|at| Move::trouble(Step::User(at as u8), budget)));
        }
        moves
    }

    /// What is on its way and comes by itself.
    fn arrivals(&self, moves: &mut Vec<Move>) {
        let calm = |step| Move { calm: true, ..Move::trouble(step, self.budget) };
        for (at, late) in self.late.iter().enumerate() {
            // A driver and a machine finish what they work on, and what the user has sent comes; any other request that
            // hangs in a network may never come.
            let sure = matches!(late.intent.effect, Effect::Call { .. } | Effect::Host(_)) || late.actor == USER;
            moves.push(Move { calm: sure, ..calm(Step::Land(at as u8)) });
        }
        for member in 0..self.members.len() {
            if self.is_unannounced(member) {
                moves.push(calm(Step::Introduce { member: member as u8 }));
            }
        }
        for ((member, kind), events) in &self.behind {
            let (member, kind) = (*member as u8, *kind);
            moves.push(calm(Step::Deliver { member, kind }));
            if events.len() > 1
                && let Some(budget) = self.budget.spend(|b| &mut b.relists)
            {
                moves.push(Move::trouble(Step::Relist { member, kind }, budget));
            }
        }
    }

    /// An operation on its own machine that an agent is about to do: nobody else sees it or is hindered by it, so it is
    /// done before anything else happens, unless the agent dawdles.
    fn private(&self) -> Option<(usize, usize)> {
        for (index, member) in self.members.iter().enumerate().filter(|(_, member)| !self.is_silent(member.node())) {
            // A driver that is at work on the same machine would see it.
            let alone = !self.late.iter().any(|late| !late.node.is_empty() && late.node == member.node());
            if self.dawdling & (1 << index) == 0 && (alone || self.truth.machine(member.node()).is_none()) {
                let private = |at: &usize| matches!(member.ready_intent(*at).effect, Effect::Host(_) | Effect::Nothing);
                if let Some(at) = (0..member.ready()).find(private) {
                    return Some((index, at));
                }
            }
        }
        None
    }

    /// The ways one action may end.
    fn ways(&self, member: usize, at: usize, held: bool, effect: &Effect, moves: &mut Vec<Move>) {
        let (member, at) = (member as u8, at as u8);
        let budget = self.budget;
        let mut push = |how, budget: Option<Budget>| {
            let step = Step::Act { member, at, held, how };
            moves.extend(budget.map(|budget| Move { calm: how == How::Done, ..Move::trouble(step, budget) }));
        };
        push(How::Done, Some(budget));
        if held && self.cached(usize::from(member), usize::from(at)).is_some() {
            push(How::Cached, Some(budget));
        }
        match effect {
            Effect::Read(_) | Effect::List { .. } | Effect::Token(_) => {
                for denied in [false, true] {
                    push(How::Unread(denied), budget.fault(|b| &mut b.unread));
                }
            }
            Effect::Write(write) => {
                for (denial, done) in denials(write) {
                    push(How::Denied(*denial, *done), budget.fault(|b| &mut b.denied));
                }
            }
            Effect::Call { call, .. } => {
                let node = self.members[usize::from(member)].node();
                self.answers(node, call, &mut push);
                for part in 1..self.parts(node, call) {
                    push(How::CutShort(part), budget.fault(|b| &mut b.cut));
                    push(How::PowerCut(part), budget.fault(|b| &mut b.power));
                }
            }
            Effect::Host(_) => {
                if self.truth.machine(self.members[usize::from(member)].node()).is_some() {
                    push(How::Late, budget.fault(|b| &mut b.hung));
                }
                push(How::OpRefused, budget.fault(|b| &mut b.machine));
                push(How::OpUnknown(false), budget.fault(|b| &mut b.machine));
                push(How::OpUnknown(true), budget.fault(|b| &mut b.machine));
            }
            Effect::Nothing => {}
        }
        let remote = matches!(effect, Effect::Write(_) | Effect::Call { .. });
        if remote {
            push(How::AnswerLost, budget.fault(|b| &mut b.lost));
            push(How::Unsent, budget.fault(|b| &mut b.unsent));
            push(How::Late, budget.fault(|b| &mut b.late));
            // One fault, whatever becomes of what was under way.
            push(How::LateCrash, budget.fault(|b| &mut b.crashes).and_then(|left| left.spend(|b| &mut b.late)));
        }
        if !matches!(effect, Effect::Read(_) | Effect::List { .. } | Effect::Token(_)) {
            push(How::ThenCrash, budget.fault(|b| &mut b.crashes));
        }
        // A machine's own operation is seen by nobody else before its answer, so holding it up shows nothing new.
        if !held
            && !matches!(effect, Effect::Host(_) | Effect::Nothing)
            && let Some(budget) = budget.delay(|b| &mut b.held)
        {
            moves.push(Move::trouble(Step::Hold { member, at }, budget));
        }
    }

    /// What a driver may make of a call beside doing it, or being busy with another.
    fn answers(&self, node: &str, call: &Call, push: &mut impl FnMut(How, Option<Budget>)) {
        if self.is_busy(call) {
            let left = match self.may_overtake(node, call) {
                true => self.budget.spend(|b| &mut b.overtaken),
                false => self.budget.spend(|b| &mut b.reordered),
            };
            push(How::Overtakes, left);
            return;
        }
        for code in codes(call.method()) {
            let left = match self.is_denied_by(call, *code) {
                true => self.budget.spend(|b| &mut b.lies),
                false => self.budget.fault(|b| &mut b.refused),
            };
            push(How::Refused(*code), left);
            push(How::Lied(*code), self.budget.spend(|b| &mut b.lies));
        }
    }

    /// The driver has made the volume and says that the request is one it cannot serve. CSI wants OK from a driver that is
    /// asked again for what it has made.
    fn is_denied_by(&self, call: &Call, code: Code) -> bool {
        let Call::CreateVolume(request) = call else { return false };
        self.truth.volumes.contains_key(&request.name) && !matches!(code, Code::Internal | Code::AlreadyExists)
    }

    /// How many operations a call takes on a machine; none where it is done as a whole.
    fn parts(&self, node: &str, call: &Call) -> u8 {
        let machine = self.truth.machine(node).filter(|_| !self.is_busy(call));
        machine.map_or(0, |machine| machine.operations(call) as u8)
    }

    /// The machine may lose its power at any moment.
    fn power(&self, index: usize, moves: &mut Vec<Move>) {
        if self.truth.machine(self.members[index].node()).is_some()
            && let Some(budget) = self.budget.fault(|b| &mut b.power)
        {
            moves.push(Move::trouble(Step::LosePower { member: index as u8 }, budget));
        }
    }

    /// The ways a controller's process may end, whatever it is doing.
    fn ends(&self, index: usize, moves: &mut Vec<Move>) {
        let member = index as u8;
        let held = self.members[index].held().min(6);
        let of = &self.members[index];
        if let Some(budget) = self.budget.fault(|b| &mut b.crashes) {
            for landed in 0..(1_u8 << held) {
                moves.push(Move::trouble(Step::Crash { member, landed, late: 0 }, budget));
            }
            if let Some(budget) = budget.spend(|b| &mut b.late) {
                for late in 1..(1_u8 << held) {
                    moves.push(Move::trouble(Step::Crash { member, landed: 0, late }, budget));
                }
            }
        }
        // With one thing under way a takeover is a crash with a late effect.
        if of.node().is_empty()
            && of.ready() + of.held() > 1
            && let Some(budget) = self.budget.fault(|b| &mut b.takeovers)
        {
            moves.push(Move::trouble(Step::Takeover { member }, budget));
        }
    }

    /// The same move with one of the watchers of what changed falling behind.
    pub(crate) fn stragglers(&self, step: &Move, kinds: &[Kind]) -> Vec<Move> {
        let Some(budget) = step.budget.delay(|b| &mut b.behind) else { return Vec::new() };
        let actor = match step.step {
            // The answer tells the actor what the watch would.
            Step::Act { member, how: How::Done | How::Overtakes, .. } => Some(member),
            Step::Act { member, how: How::ThenCrash | How::LateCrash | How::PowerCut(_), .. }
            | Step::Crash { member, .. }
            | Step::LosePower { member }
            | Step::Takeover { member } => Some(member),
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
}

impl Move {
    fn trouble(step: Step, budget: Budget) -> Move {
        Move { step, budget, behind: None, calm: false }
    }
}
