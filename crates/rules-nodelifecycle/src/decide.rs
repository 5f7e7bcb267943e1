use control::{Decision, Timestamp, Why};

use crate::{Action, Key, Memory, Reason, View, node, pod};

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Gone(Key::Node(name)) => {
            Decision::Rest(Why::settled(Reason::Gone, alloc::format!("node {name} does not exist")))
        }
        View::Gone(Key::Pod(_)) => Decision::Rest(Why::settled(Reason::Gone, "the pod does not exist")),
        View::Node(view) => node::decide(now, view, memory),
        View::Pod(view) => pod::decide(now, view, memory),
    }
}
