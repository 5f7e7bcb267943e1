//! The scenarios under `scripts`: claim `data` is bound to volume `pv1` of driver `d`, which is registered on node `n`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::names;
use prove_lab::{Lab, Stage, play_scripts};

use crate::{DriverFacts, Local, Node, ProcessName, Record};

fn stage() -> Stage<Node> {
    let mut local = Local::new("n", "life-1", "/r");
    local.drivers.insert("d".into(), DriverFacts { socket: "/csi.sock".into(), stages: true });
    let mut lab = Lab::new("ns", local);
    lab.make(&format!("node n ready=true @{}=life-1", names::AGENT_LIFE));
    lab.make(r#"claim data class="" volume=pv1"#);
    lab.make(r#"volume pv1 class="" handle=h claim=data spec.csi.fsType=ext4 spec.mountOptions=["noatime"]"#);
    lab.make("attachment va node=n volume=pv1");
    lab.change("attachment va status.attached=true status.attachmentMetadata.lun=3x");
    let mut stage = Stage::new(lab);
    (stage.noticed, stage.reborn, stage.command) = (noticed, reborn, command);
    report(&mut stage, true);
    stage
}

/// The machine says how processes fare.
fn noticed(stage: &mut Stage<Node>) {
    let states = stage.machine.states();
    if stage.lab.local().processes != states {
        stage.lab.update_local(|local| local.processes = states);
    }
}

/// What another life of the agent finds on the machine.
fn reborn(stage: &Stage<Node>) -> Local {
    let before = stage.lab.local();
    let number: u32 = before.life.trim_start_matches("life-").parse().unwrap();
    let mut local = Local::new("n", format!("life-{}", number + 1), "/r");
    local.drivers = before.drivers.clone();
    for (path, bytes) in &stage.machine.files {
        match Record::parse(bytes) {
            Ok(record) => drop(local.records.insert(record.unique_name(), record)),
            Err(_) => drop(local.unreadable.insert(path.clone())),
        }
    }
    local.mounts = stage.driver.truth.iter().filter_map(|fact| Some(fact.split_once(" at ")?.1.into())).collect();
    local.processes = stage.machine.states();
    local
}

/// The controller's report.
fn report(stage: &mut Stage<Node>, attached: bool) {
    let name = names::unique_volume_name("d", "h");
    let list = if attached { format!(r#"[{{"name":"{name}","devicePath":""}}]"#) } else { "[]".into() };
    stage.lab.change(&format!("node n status.volumesAttached={list}"));
}

fn command(stage: &mut Stage<Node>, words: &[&str]) -> Option<String> {
    match words {
        ["report", "attached"] => report(stage, true),
        ["report", "detached"] => report(stage, false),
        // The registrar writes the life of the agent on its node.
        ["introduce"] => {
            let life = stage.lab.local().life.clone();
            stage.lab.change(&format!("node n @{}={life}", names::AGENT_LIFE));
        }
        ["user", pod, "arrives"] => stage.lab.make(&format!(
            r#"pod {pod} node=n claim=data spec.restartPolicy=Never spec.containers=[{{"name":"c","image":"i","command":["/bin/true"],"volumeMounts":[{{"name":"v","mountPath":"/data"}}]}}]"#
        )),
        ["exit", pod, code] => {
            let of_pod = |name: &&String| ProcessName::parse(name).is_some_and(|name| name.pod.name == *pod);
            let names: Vec<String> = stage.machine.processes.keys().filter(of_pod).cloned().collect();
            names.iter().for_each(|name| stage.machine.end(name, code.parse().unwrap(), stage.lab.now.0));
            noticed(stage);
        }
        ["driver", "is", "not", "registered"] => stage.lab.update_local(|local| local.drivers.clear()),
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", stage);
}
