//! Golden scripts: what a user types and sees, run against the real binary with the real kubectl.
//!
//! A script is a transcript: lines that begin with `$ ` are commands for bash, the lines under each are what it prints
//! (both streams). `[..]` stands for anything within a line, a line of `...` for any number of lines. Lines that begin
//! with `#` are for readers. A script whose name begins with `root-` mounts filesystems and needs root.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]
#![allow(clippy::print_stderr, reason = "a script that is not run says why")]

mod documents;
mod script;

use std::path::Path;

fn run(name: &str) {
    script::run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(name));
}

/// One test per script, and a check that none is forgotten.
macro_rules! scripts {
    ($($test:ident $file:literal;)*) => {
        $( #[test] fn $test() { run($file); } )*

        #[test]
        fn every_script_is_run() {
            let known = [$($file),*];
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(known.contains(&name.as_str()), "{name} is not run; add it to scripts! in tests/scripts.rs");
            }
        }
    };
}

scripts! {
    first_five_minutes "root-first-five-minutes.txt";
    a_pod_is_a_guest "root-a-pod-is-a-guest.txt";
    pods_get_their_settings "root-pods-get-their-settings.txt";
    tokens_for_pods "root-tokens-for-pods.txt";
    parts_and_places "root-parts-and-places.txt";
    three_nodes "root-three-nodes.txt";
    a_node_dies "root-a-node-dies.txt";
    the_way_down "root-the-way-down.txt";
    what_a_node_tells "root-what-a-node-tells.txt";
    init_containers_and_sidecars "root-init-containers-and-sidecars.txt";
    kubectl_exec_and_cp "root-kubectl-exec-and-cp.txt";
    probes_and_hooks "root-probes-and-hooks.txt";
    carries_on_after_kill "root-carries-on-after-kill.txt";
    killed_at_random "root-killed-at-random.txt";
    explains_a_stopped_driver "root-explains-a-stopped-driver.txt";
    explains_the_object_asked_for "root-explains-the-object-asked-for.txt";
    claims_without_mounting "claims-without-mounting.txt";
    bad_input "bad-input.txt";
    deploys_a_driver "deploy.txt";
    packaged "packaged.txt";
    sources_and_strangers "root-sources-and-strangers.txt";
    translate "translate.txt";
    migrate_gates "migrate-gates.txt";
    migrate_plan "migrate-plan.txt";
    migrate_live "migrate-live.txt";
    migrate_read "migrate-read.txt";
    in_tree_volumes "root-in-tree-volumes.txt";
    migration_of_controllers_alone "root-migration-controllers-alone.txt";
    migration_killed "root-migration-killed.txt";
    migration_node_by_node "root-migration-node-by-node.txt";
    migration_by_the_plugin "root-migration-by-the-plugin.txt";
    migration_rehearsed "root-migration-rehearsed.txt";
    migration_driver_gone "root-migration-driver-gone.txt";
    migration_step_by_step "root-migration-step-by-step.txt";
    parity "root-parity.txt";
    sidecar_on_a_node "sidecar-on-a-node.txt";
    sidecars_beside_a_driver "root-sidecars-beside-a-driver.txt";
    sidecar_publishes_capacity "sidecar-publishes-capacity.txt";
    sidecar_on_every_node "sidecar-on-every-node.txt";
    sidecar_tells_users "sidecar-tells-users.txt";
    sidecar_as_helper "sidecar-as-helper.txt";
    a_standby_takes_over "root-a-standby-takes-over.txt";
    four_processes "root-four-processes.txt";
    kubectl_makes_what_it_knows "kubectl-makes-what-it-knows.txt";
    kubectl_asks_for_what_is_not_here "kubectl-asks-for-what-is-not-here.txt";
    fields_are_honoured_or_refused "fields-are-honoured-or-refused.txt";
    raw_block "root-raw-block.txt";
    fs_group "root-fs-group.txt";
    inline_volume "root-inline-volume.txt";
    secrets_on_the_node "root-secrets-on-the-node.txt";
    tokens_for_drivers "root-tokens-for-drivers.txt";
    waiting_is_visible "waiting-is-visible.txt";
    volumes_grow "root-volumes-grow.txt";
    volumes_change "root-volumes-change.txt";
    limits_and_room "root-limits-and-room.txt";
    the_disk_is_full "root-the-disk-is-full.txt";
    every_volume_over_restarts "root-every-volume-over-restarts.txt";
    a_filesystem_hangs "root-a-filesystem-hangs.txt";
    mounts_vanish "root-mounts-vanish.txt";
    orphaned_directories "root-orphaned-directories.txt";
    states_found_at_start "root-states-found-at-start.txt";
    volumes_leave_dead_nodes "root-volumes-leave-dead-nodes.txt";
    // Named so that it begins first: drivers are away for half a minute in it, again and again.
    a_walk_through_the_design "root-walkthroughs.txt";
    claims_from_templates "root-claims-from-templates.txt";
    claims_find_their_volumes "claims-find-their-volumes.txt";
}
