//! The calm steps between states: those that happen by themselves, without user, fault or delay. From every state some
//! of them lead to rest, and none go round in circles that change something, which would be controllers that undo each
//! other's work for ever.

/// Where the calm steps of each state lead, in one list: a list for each state would take ten times the room.
#[derive(Default)]
pub(crate) struct Calm {
    /// Where the steps of each state end in `steps`.
    ends: Vec<usize>,
    steps: Vec<Lead>,
    resting: usize,
}

/// The state that a step leads to, and in the highest bit whether it changes anything.
#[derive(Clone, Copy)]
struct Lead(u32);

const CHANGES: u32 = 1 << 31;

/// No exploration goes on beyond this many states, as the highest bit of a number is taken. What the last state adds
/// fits too.
pub(crate) const MOST: usize = (CHANGES - (1 << 20)) as usize;

impl Lead {
    fn to(self) -> usize {
        (self.0 & !CHANGES) as usize
    }

    fn changes(self) -> bool {
        self.0 & CHANGES != 0
    }
}

const NONE: u32 = u32::MAX;

impl Calm {
    /// The calm steps of the next state: where they lead, and whether they change anything while everybody sees how
    /// things are.
    pub(crate) fn push(&mut self, steps: &[(u32, bool)]) {
        self.steps.extend(steps.iter().map(|(to, changes)| Lead(to | if *changes { CHANGES } else { 0 })));
        self.ends.push(self.steps.len());
        self.resting += usize::from(steps.is_empty());
    }

    /// States in which nothing happens by itself.
    pub(crate) fn resting(&self) -> usize {
        self.resting
    }

    fn of(&self, at: usize) -> &[Lead] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.steps[from..self.ends[at]]
    }

    /// A state from which no calm steps lead to rest, if there is one.
    pub(crate) fn restless(&self) -> Option<u32> {
        let count = self.ends.len();
        // The same steps by where they lead: the place of the first one back, and then of all that follow.
        let mut begins = vec![0_usize; count + 1];
        for lead in &self.steps {
            begins[lead.to() + 1] += 1;
        }
        for at in 0..count {
            begins[at + 1] += begins[at];
        }
        let mut free = begins.clone();
        let mut back = vec![0_u32; self.steps.len()];
        for from in 0..count {
            for lead in self.of(from) {
                back[free[lead.to()]] = from as u32;
                free[lead.to()] += 1;
            }
        }
        drop(free);
        let mut reaches: Vec<bool> = (0..count).map(|at| self.of(at).is_empty()).collect();
        let mut open: Vec<usize> = (0..count).filter(|at| reaches[*at]).collect();
        while let Some(at) = open.pop() {
            for from in &back[begins[at]..begins[at + 1]] {
                if !std::mem::replace(&mut reaches[*from as usize], true) {
                    open.push(*from as usize);
                }
            }
        }
        reaches.iter().position(|reaches| !reaches).map(|at| at as u32)
    }

    /// A state on a circle that changes something, if there is one. Tarjan's components, without recursion.
    pub(crate) fn writing_circle(&self) -> Option<u32> {
        let component = self.components();
        let writes =
            |from: &usize| self.of(*from).iter().any(|lead| lead.changes() && component[*from] == component[lead.to()]);
        (0..self.ends.len()).find(writes).map(|from| from as u32)
    }

    fn components(&self) -> Vec<u32> {
        let count = self.ends.len();
        let mut order = vec![NONE; count];
        let mut low = vec![NONE; count];
        let mut component = vec![NONE; count];
        let mut stack = Vec::new();
        let mut next = 0;
        let mut found = 0;
        for root in 0..count {
            if order[root] != NONE {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((at, edge)) = path.last().copied() {
                if edge == 0 {
                    order[at] = next;
                    low[at] = next;
                    next += 1;
                    stack.push(at as u32);
                }
                let Some(lead) = self.of(at).get(edge) else {
                    path.pop();
                    if let Some((above, _)) = path.last() {
                        low[*above] = low[*above].min(low[at]);
                    }
                    if low[at] == order[at] {
                        while let Some(member) = stack.pop() {
                            component[member as usize] = found;
                            if member as usize == at {
                                break;
                            }
                        }
                        found += 1;
                    }
                    continue;
                };
                if let Some(top) = path.last_mut() {
                    top.1 += 1;
                }
                let to = lead.to();
                if order[to] == NONE {
                    path.push((to, 0));
                } else if component[to] == NONE {
                    low[at] = low[at].min(order[to]);
                }
            }
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm(states: &[&[(u32, bool)]]) -> Calm {
        let mut calm = Calm::default();
        for steps in states {
            calm.push(steps);
        }
        calm
    }

    #[test]
    fn finds_circles_that_write_and_no_others() {
        assert_eq!(calm(&[&[(1, true)], &[(2, true)], &[]]).writing_circle(), None);
        assert_eq!(calm(&[&[(1, false)], &[(0, false)]]).writing_circle(), None);
        assert!(matches!(calm(&[&[(1, true)], &[(2, false)], &[(1, true)]]).writing_circle(), Some(1 | 2)));
        assert_eq!(calm(&[&[(0, true)]]).writing_circle(), Some(0));
    }

    #[test]
    fn finds_states_from_which_nothing_leads_to_rest() {
        let line = calm(&[&[(1, true)], &[(2, true)], &[]]);
        assert_eq!((line.restless(), line.resting()), (None, 1));
        let fork = calm(&[&[(1, true), (2, false)], &[(1, false)], &[]]);
        assert_eq!(fork.restless(), Some(1));
        assert_eq!(calm(&[&[(1, false)], &[(0, false)]]).restless(), Some(0));
    }
}
