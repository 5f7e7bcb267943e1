//! Finds cycles in the graph of states. A cycle of steps that need no fault and that change something means that
//! controllers undo each other's work for ever.

/// A state on a circle that changes something, if there is one. Tarjan's components, without recursion.
pub(crate) fn writing_circle(edges: &[&[(u32, bool)]]) -> Option<u32> {
    let component = components(edges);
    for (from, out) in edges.iter().enumerate() {
        for (to, changes) in *out {
            if *changes && component[from] == component[*to as usize] {
                return Some(from as u32);
            }
        }
    }
    None
}

const NONE: u32 = u32::MAX;

fn components(edges: &[&[(u32, bool)]]) -> Vec<u32> {
    let count = edges.len();
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
                stack.push(at);
            }
            let Some((to, _)) = edges[at].get(edge) else {
                path.pop();
                if let Some((above, _)) = path.last() {
                    low[*above] = low[*above].min(low[at]);
                }
                if low[at] == order[at] {
                    while let Some(member) = stack.pop() {
                        component[member] = found;
                        if member == at {
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
            let to = *to as usize;
            if order[to] == NONE {
                path.push((to, 0));
            } else if component[to] == NONE {
                low[at] = low[at].min(order[to]);
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_circles_that_write_and_no_others() {
        let line: [&[(u32, bool)]; 3] = [&[(1, true)], &[(2, true)], &[]];
        assert_eq!(writing_circle(&line), None);
        let waiting: [&[(u32, bool)]; 2] = [&[(1, false)], &[(0, false)]];
        assert_eq!(writing_circle(&waiting), None);
        let busy: [&[(u32, bool)]; 3] = [&[(1, true)], &[(2, false)], &[(1, true)]];
        assert!(matches!(writing_circle(&busy), Some(1 | 2)));
        let itself: [&[(u32, bool)]; 1] = [&[(0, true)]];
        assert_eq!(writing_circle(&itself), Some(0));
    }
}
