//! Known bugs of the kubelet (reliability 6), as [`crate::upstream`] has those of the controllers.

use crate::planted;
use crate::upstream::found_and_gone;
use crate::wrong::{Agent, DropsRecord, ForgetsStaged, LeavesDirectories, Led, ReadsNothing, TakesDownFirst};
use prove_world::world::World;
use prove_world::worlds::attach;
use prove_world::worlds::node::{self, TWO_PODS};
use prove_world::{Budget, Law, Scenario, Seat};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;

fn started<N: control::Rules<Local = rules_node::Local>>() -> World {
    attach::start_all::<AttachDetach, Attacher, N>(planted::none(), planted::attacher(), attach::agent_seat())
}

fn ours_running() -> Scenario {
    Scenario {
        start: || attach::running(attach::start::<AttachDetach>(Seat::fixed(|_, _| Default::default()))),
        ..attach::SCENARIO
    }
}

/// One crash, of anybody.
fn a_crash(user: u8) -> Budget {
    Budget { faults: 1, crashes: 1, ..Budget::calm(user) }
}

// 7, k/k#101791: what is known of a volume cannot be read after a restart, and it is cleaned up.
#[test]
fn a_volume_in_use_whose_record_cannot_be_read() {
    let start = || node::spoiled::<Led<Agent<ReadsNothing>>>(attach::agent_seat());
    let theirs = Scenario { name: "node-unreadable, reading nothing", start, ..node::UNREADABLE };
    found_and_gone(&theirs, &node::UNREADABLE, Budget::calm(0), Law::UnreadableInUse);
}

// 8, k/k#85476: a restart between NodeUnpublishVolume and NodeUnstageVolume.
#[test]
fn a_restart_between_unpublish_and_unstage() {
    let start = || attach::running(started::<Led<ForgetsStaged>>());
    let theirs = Scenario { name: "attach, forgetting what is staged", start, ..attach::SCENARIO };
    found_and_gone(&theirs, &ours_running(), a_crash(1), Law::MountedIsInUse);
}

// 9, k/k#115006: after a restart, volumes are taken from under a pod that runs.
#[test]
fn a_restart_under_a_running_pod() {
    let start = || attach::running(started::<Led<TakesDownFirst>>());
    let theirs = Scenario { name: "attach, taking down first", start, ..attach::SCENARIO };
    found_and_gone(&theirs, &ours_running(), a_crash(0), Law::RunningHasVolumes);
}

// 10, k/k#101911 and k/k#136908: NodePublishVolume is refused for good, and the volume's record goes though it is
// staged.
#[test]
fn a_publish_that_is_refused_for_good() {
    let theirs =
        Scenario { name: "attach, dropping the record", start: started::<Led<DropsRecord>>, ..attach::SCENARIO };
    let budget = Budget { faults: 1, refused: 1, ..Budget::calm(0) };
    found_and_gone(&theirs, &attach::SCENARIO, budget, Law::MountedIsRecorded);
}

// 11, k/k#105536: directories of pods that are gone stay. Here a pod goes only when its directories have, so that what
// is seen is the pod.
#[test]
fn directories_of_a_pod_that_is_gone() {
    let start = || node::start::<Led<LeavesDirectories>>(TWO_PODS, attach::agent_seat());
    let theirs = Scenario { name: "node-tidy, leaving directories", start, ..node::TIDY };
    found_and_gone(&theirs, &node::TIDY, Budget::calm(1), Law::AsAsked);
}
