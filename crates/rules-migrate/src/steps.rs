//! The steps up (S4-35) and down again (S4-36), in their order.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, names};
use rules_translate::Plugin;
use serde::Serialize;

use crate::nodes::NodesSay;
use crate::obstacle::list;
use crate::stage::ControllersSay;

/// A step of an operator: what to do, whether it is done, and what to type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationStep {
    /// What is to be done.
    pub title: String,
    /// Whether it is.
    pub state: StepState,
    /// What is known about it; empty if there is nothing to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Nodes it is to be done on, one after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// What to type; `$NODE` is the node. A line that begins with `#` is for the operator to do.
    pub commands: Vec<String>,
}

/// Whether a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepState {
    /// Objects show that it is.
    Done,
    /// It is to be done.
    ToDo,
    /// Something stands in the way.
    Blocked,
    /// What was seen does not tell.
    Unknown,
}

/// What the steps are drawn from.
pub(crate) struct Situation<'a> {
    pub(crate) plugin: Plugin,
    pub(crate) controllers: ControllersSay,
    pub(crate) nodes: &'a NodesSay,
    /// How many obstacles block, beside a driver that is missing.
    pub(crate) blocking: usize,
    /// Kinds that were not seen: obstacles among them are not known.
    pub(crate) unseen: &'a [Kind],
}

const UNKNOWN_NODES: &str = "no CSINode was seen, so nothing is known of nodes";

/// Who attaches and provisions, and who mounts: whichever of the two a cluster has.
const CONTROLLERS: &str = "kube-controller-manager (or longshore controllers)";
const AGENT: &str = "the kubelet (or longshore node)";

impl Situation<'_> {
    /// The gates of the plugin's migration with its code still there.
    fn gates(&self, on: bool) -> String {
        let own = self.plugin.gate();
        let later = format!("InTreePlugin{}Unregister", own.trim_start_matches("CSIMigration"));
        match on {
            true => format!("--feature-gates=CSIMigration=true,{own}=true,{later}=false"),
            false => format!("--feature-gates={own}=false"),
        }
    }

    /// S4-35.
    pub(crate) fn up(&self) -> Vec<MigrationStep> {
        let mut steps = Vec::from([self.install(), self.resolve(), self.switch_controllers(), self.switch_nodes()]);
        steps.push(self.complete());
        // What comes after a step that is blocked waits for it; what is done stays done.
        let waiting = steps.iter_mut().skip_while(|step| step.state != StepState::Blocked);
        waiting.filter(|step| step.state == StepState::ToDo).for_each(|step| step.state = StepState::Blocked);
        steps
    }

    fn install(&self) -> MigrationStep {
        let driver = self.plugin.driver();
        let (state, note, nodes) = match self.nodes {
            NodesSay::Nothing => (StepState::Unknown, UNKNOWN_NODES.to_string(), Vec::new()),
            NodesSay::This(known) if known.without_driver.is_empty() => {
                (StepState::Done, format!("registered on all {} nodes", known.all.len()), Vec::new())
            }
            NodesSay::This(known) => {
                let (missing, all) = (known.without_driver.len(), known.all.len());
                (StepState::ToDo, format!("not registered on {missing} of {all} nodes"), known.without_driver.clone())
            }
        };
        let look = "kubectl get csinode -o custom-columns='NODE:.metadata.name,DRIVERS:.spec.drivers[*].name'";
        let own = format!("# deploy driver {driver} with its provisioner, attacher and resizer");
        let commands = if state == StepState::Done { Vec::new() } else { Vec::from([own, look.into()]) };
        MigrationStep { title: format!("Install driver {driver} on every node"), state, note, nodes, commands }
    }

    fn resolve(&self) -> MigrationStep {
        let (state, note) = match self.blocking {
            0 if self.unseen.is_empty() => (StepState::Done, "nothing stands in the way".to_string()),
            0 => {
                let kinds: Vec<&str> = self.unseen.iter().map(|kind| kind.name()).collect();
                let what = "nothing that was seen stands in the way; not seen";
                (StepState::Unknown, format!("{what}: {}", kinds.join(", ")))
            }
            1 => (StepState::Blocked, "1 obstacle, named above".to_string()),
            many => (StepState::Blocked, format!("{many} obstacles, named above")),
        };
        MigrationStep {
            title: "Resolve what stands in the way".into(),
            state,
            note,
            nodes: Vec::new(),
            commands: Vec::new(),
        }
    }

    fn switch_controllers(&self) -> MigrationStep {
        let (state, note) = match self.controllers {
            ControllersSay::On => (StepState::Done, "volumes and claims are marked".to_string()),
            ControllersSay::Off => (StepState::ToDo, "no volume or claim is marked".to_string()),
            ControllersSay::Partly { marked, unmarked } => {
                (StepState::ToDo, format!("{marked} volumes and claims are marked, {unmarked} are not yet"))
            }
            ControllersSay::Nothing => (StepState::Unknown, "nothing was provisioned that would show it".to_string()),
        };
        let commands = if state == StepState::Done {
            Vec::new()
        } else {
            Vec::from([format!("# restart {CONTROLLERS} with {}", self.gates(true)), marks()])
        };
        let title = "Switch the controllers on; nodes go on as before until they say otherwise".into();
        MigrationStep { title, state, note, nodes: Vec::new(), commands }
    }

    fn switch_nodes(&self) -> MigrationStep {
        let (state, note, nodes) = match self.nodes {
            NodesSay::Nothing => (StepState::Unknown, UNKNOWN_NODES.to_string(), Vec::new()),
            NodesSay::This(known) if known.all_migrated() => {
                (StepState::Done, format!("all {} nodes leave the volumes to the driver", known.all.len()), Vec::new())
            }
            NodesSay::This(known) => {
                let (done, all) = (known.migrated.len(), known.all.len());
                let moved: usize = known.lagging.iter().filter_map(|name| known.pods.get(name)).sum();
                let pods = if moved == 0 { String::new() } else { format!("; draining the others moves {moved} pods") };
                (StepState::ToDo, format!("{done} of {all} nodes are switched{pods}"), known.lagging.clone())
            }
        };
        let commands = if state == StepState::Done { Vec::new() } else { self.node_commands(true) };
        MigrationStep { title: "Switch one node after the other, each drained".into(), state, note, nodes, commands }
    }

    fn node_commands(&self, on: bool) -> Vec<String> {
        let told = if on { "the annotation now lists" } else { "the annotation no longer lists" };
        let held = match on {
            true => format!("{}/…", self.plugin),
            false => format!("kubernetes.io/csi/{}^…", self.plugin.driver()),
        };
        Vec::from([
            "# pods that nothing makes anew are refused; --force deletes them all the same, for good".into(),
            "kubectl drain $NODE --ignore-daemonsets --delete-emptydir-data".into(),
            format!("# go on when this names no {held} any more:"),
            "kubectl get node $NODE -o jsonpath='{.status.volumesInUse}'".into(),
            format!("# restart {AGENT} of $NODE with {}", self.gates(on)),
            format!("# {told} {}:", self.plugin),
            format!(
                "kubectl get csinode $NODE -o jsonpath='{{.metadata.annotations.{}}}'",
                names::MIGRATED_PLUGINS.replace('.', "\\.")
            ),
            "kubectl uncordon $NODE".into(),
        ])
    }

    fn complete(&self) -> MigrationStep {
        let own = self.plugin.gate();
        let later = format!("InTreePlugin{}Unregister", own.trim_start_matches("CSIMigration"));
        let (state, note) = match self.nodes {
            NodesSay::Nothing => (StepState::Unknown, UNKNOWN_NODES.to_string()),
            NodesSay::This(known) if !known.all_migrated() => {
                (StepState::Blocked, format!("only when every node is switched; not yet: {}", list(&known.lagging)))
            }
            NodesSay::This(_) => (StepState::Unknown, "objects do not show whether this was done".to_string()),
        };
        let commands = Vec::from([format!(
            "# restart {CONTROLLERS}, then {AGENT} of each node, with \
             --feature-gates=CSIMigration=true,{own}=true,{later}=true"
        )]);
        MigrationStep {
            title: "Retire the plugin; there is no way back after it is gone".into(),
            state,
            note,
            nodes: Vec::new(),
            commands,
        }
    }

    /// S4-36: the nodes first, the controllers last.
    pub(crate) fn down(&self) -> Vec<MigrationStep> {
        let (state, note, nodes) = match self.nodes {
            NodesSay::Nothing => (StepState::Unknown, UNKNOWN_NODES.to_string(), Vec::new()),
            NodesSay::This(known) if known.migrated.is_empty() => {
                (StepState::Done, "every node serves the volumes with the plugin".to_string(), Vec::new())
            }
            NodesSay::This(known) => {
                let (left, all) = (known.migrated.len(), known.all.len());
                (
                    StepState::ToDo,
                    format!("{left} of {all} nodes leave the volumes to the driver"),
                    known.migrated.clone(),
                )
            }
        };
        let commands = if state == StepState::Done { Vec::new() } else { self.node_commands(false) };
        let title = "Switch one node after the other back, each drained".into();
        let first = MigrationStep { title, state, note, nodes, commands };
        let (state, note) = match self.controllers {
            ControllersSay::Off => (StepState::Done, "no volume or claim is marked".to_string()),
            ControllersSay::On => (StepState::ToDo, "volumes and claims are marked".to_string()),
            ControllersSay::Partly { marked, .. } => {
                (StepState::ToDo, format!("{marked} volumes and claims are marked"))
            }
            ControllersSay::Nothing => (StepState::Unknown, "nothing was provisioned that would show it".to_string()),
        };
        let commands = match state {
            StepState::Done => Vec::new(),
            StepState::ToDo | StepState::Blocked | StepState::Unknown => {
                Vec::from([format!("# restart {CONTROLLERS} with {}", self.gates(false)), marks()])
            }
        };
        let title = "Only then switch the controllers off; they take the marks away".into();
        Vec::from([first, MigrationStep { title, state, note, nodes: Vec::new(), commands }])
    }
}

/// Shows the marks.
fn marks() -> String {
    let key = names::MIGRATED_TO.replace('.', "\\.");
    format!("kubectl get pv -o custom-columns='NAME:.metadata.name,TAKEN OVER BY:.metadata.annotations.{key}'")
}
