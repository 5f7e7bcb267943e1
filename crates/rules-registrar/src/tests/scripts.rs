//! The scenarios under `scripts`: one driver behind one registration socket, on node `n`.

use alloc::format;
use alloc::string::{String, ToString};

use csi::v1;
use prove_lab::{Lab, Scene, play_scripts};

use crate::{Local, Registrar};

fn scene() -> Scene<Registrar> {
    let mut scene = Scene::new(Lab::new("default", Local::new("n", "life-1")));
    (scene.reborn, scene.command) = (reborn, command);
    scene
}

/// Another life of the agent, which finds the sockets that are there.
fn reborn(scene: &Scene<Registrar>) -> Local {
    let before = scene.lab.local();
    let number: u32 = before.incarnation.trim_start_matches("life-").parse().unwrap();
    let mut local = Local::new("n", format!("life-{}", number + 1));
    before.sockets.keys().for_each(|path| local.seen(path.as_str()));
    local
}

fn command(scene: &mut Scene<Registrar>, words: &[&str]) -> Option<String> {
    match words {
        ["start"] => scene.lab.update_local(|_| ()),
        ["socket", "appears", path] => scene.lab.update_local(|local| local.seen(*path)),
        ["socket", "vanishes", path] => {
            let now = scene.lab.now;
            scene.lab.update_local(|local| local.gone(path, now));
        }
        ["driver", "calls", "the", "node", id] => scene.driver.node.node_id = id.to_string(),
        ["driver", "is", "named", name] => scene.driver.plugin.name = name.to_string(),
        ["driver", "speaks", version] => scene.driver.plugin.supported_versions = alloc::vec![version.to_string()],
        ["driver", "takes", volumes] => scene.driver.node.max_volumes_per_node = volumes.parse().unwrap(),
        ["driver", "is", "in", zone] => {
            let segments = [("zone".to_string(), zone.to_string())].into();
            scene.driver.node.accessible_topology = Some(v1::Topology { segments });
        }
        ["drivers"] => return Some(format!("{:?}", scene.lab.local().drivers())),
        _ => return None,
    }
    Some(String::new())
}

#[test]
fn scripts() {
    play_scripts(env!("CARGO_MANIFEST_DIR"), "", scene);
}
