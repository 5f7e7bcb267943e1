//! The scenarios under `scripts`: claim `data` is bound to volume `pv1` of driver `d`, which is registered on node `n`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::names;
use csi::NodeRpc;
use prove_lab::{Lab, Scene, play_scripts};

use crate::{DriverFacts, Local, Node, ProcessName};

fn scene() -> Scene<Node> {
    let mut local = Local::new("n", "life-1", "/r");
    local.drivers.insert("d".into(), DriverFacts::new([NodeRpc::StageUnstageVolume]));
    let mut lab = Lab::new("ns", local);
    lab.make(&format!("node n ready=true @{}=life-1", names::AGENT_INCARNATION));
    lab.make(r#"claim data class="" volume=pv1"#);
    lab.make(r#"volume pv1 class="" handle=h claim=data spec.csi.fsType=ext4 spec.mountOptions=["noatime"]"#);
    lab.make("attachment va node=n volume=pv1");
    lab.change("attachment va status.attached=true status.attachmentMetadata.lun=3x");
    let mut scene = Scene::new(lab);
    (scene.noticed, scene.reborn, scene.command) = (noticed, reborn, command);
    report(&mut scene, true);
    scene
}

/// The machine says how processes fare.
fn noticed(scene: &mut Scene<Node>) {
    let states = scene.machine.states();
    if scene.lab.local().processes != states {
        scene.lab.update_local(|local| local.processes = states);
    }
}

/// What another life of the agent finds on the machine.
fn reborn(scene: &Scene<Node>) -> Local {
    let before = scene.lab.local();
    let number: u32 = before.incarnation.trim_start_matches("life-").parse().unwrap();
    let mut local = Local::new("n", format!("life-{}", number + 1), "/r");
    local.drivers = before.drivers.clone();
    for (path, bytes) in &scene.machine.files {
        let _ = local.load_record(path, Ok(bytes.clone()));
    }
    local.mounts = scene.driver.truth.iter().filter_map(|fact| Some(fact.split_once(" at ")?.1.into())).collect();
    local.processes = scene.machine.states();
    local
}

/// The controller's report.
fn report(scene: &mut Scene<Node>, attached: bool) {
    let name = names::unique_volume_name("d", "h");
    let list = if attached { format!(r#"[{{"name":"{name}","devicePath":""}}]"#) } else { "[]".into() };
    scene.lab.change(&format!("node n status.volumesAttached={list}"));
}

fn command(scene: &mut Scene<Node>, words: &[&str]) -> Option<String> {
    match words {
        ["report", "attached"] => report(scene, true),
        ["report", "detached"] => report(scene, false),
        // The registrar writes the life of the agent on its node.
        ["introduce"] => {
            let life = scene.lab.local().incarnation.clone();
            scene.lab.change(&format!("node n @{}={life}", names::AGENT_INCARNATION));
        }
        ["user", pod, "arrives"] => {
            let mount = r#"{"name":"v","mountPath":"/data"}"#;
            let container = format!(r#"{{"name":"c","image":"i","command":["/bin/true"],"volumeMounts":[{mount}]}}"#);
            let spec = format!("spec.restartPolicy=Never spec.containers=[{container}]");
            scene.lab.make(&format!("pod {pod} node=n claim=data {spec}"));
        }
        ["exit", pod, code] => {
            let of_pod = |name: &&String| ProcessName::parse(name).is_some_and(|name| name.pod.name == *pod);
            let names: Vec<String> = scene.machine.processes.keys().filter(of_pod).cloned().collect();
            names.iter().for_each(|name| scene.machine.end(name, code.parse().unwrap(), scene.lab.now.0));
            noticed(scene);
        }
        ["driver", "is", "not", "registered"] => scene.lab.update_local(|local| local.drivers.clear()),
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", scene);
}
