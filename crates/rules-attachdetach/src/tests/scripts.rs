//! The scenarios under `scripts`: claim `c` is bound to volume `v` of driver `d`, and nodes `a` and `b` leave their
//! attachments to the controller.

use alloc::format;

use api::names;
use prove_lab::{Lab, Scene, play_scripts};

use crate::AttachDetach;

fn scene() -> Scene<AttachDetach> {
    let mut lab = Lab::new("n", Default::default());
    lab.make(r#"claim c class="" volume=v"#);
    lab.change("claim c status.phase=Bound");
    lab.make(r#"volume v class="" handle=h claim=c"#);
    for node in ["a", "b"] {
        lab.make(&format!(r#"node {node} @{}="true""#, names::CONTROLLER_MANAGED_ATTACH));
    }
    let mut scene = Scene::new(lab);
    scene.command = |scene, words| match words {
        // What the node's agent says of the volume.
        [node, "uses", "it"] => Some(in_use(scene, node, &format!(r#"["{}"]"#, names::unique_volume_name("d", "h")))),
        [node, "uses", "nothing"] => Some(in_use(scene, node, "null")),
        // What the attacher does with the attachment to a node.
        ["attacher", "attaches", node] => {
            let name = names::attachment_name("h", "d", node);
            scene.lab.change(&format!(r#"attachment {name} finalizers=["external-attacher/d"] status.attached=true"#));
            Some("".into())
        }
        ["attacher", "detaches", node] => {
            scene.lab.change(&format!("attachment {} finalizers=null", names::attachment_name("h", "d", node)));
            Some("".into())
        }
        _ => None,
    };
    scene
}

fn in_use(scene: &mut Scene<AttachDetach>, node: &str, list: &str) -> alloc::string::String {
    scene.lab.change(&format!("node {node} status.volumesInUse={list}"));
    "".into()
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", scene);
}
