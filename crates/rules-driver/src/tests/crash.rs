//! Reliability 77, 82 and 113: disturbed anywhere and repeated, a call ends as if nothing had happened.

use super::*;
use proptest::prelude::*;

const FAULTS: [Fault; 3] = [Fault::Crash, Fault::Fails, Fault::Lies];

fn same(a: &Result<Response, Status>, b: &Result<Response, Status>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a == b,
        (Err(a), Err(b)) => a.code == b.code,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

#[test]
fn every_call_of_a_life_survives_every_fault_at_every_step() {
    for (config, calls) in lives() {
        let mut calm = Driver::with(config);
        every_fault(&mut calm, calls);
    }
}

/// Everything a driver can be asked, in orders that make sense.
fn lives() -> Vec<(Config, Vec<Call>)> {
    let unstaged =
        || life("v").into_iter().filter(|call| !matches!(call, Call::NodeStageVolume(_) | Call::NodeUnstageVolume(_)));
    vec![
        (config(), life("v")),
        (config(), snapshots::life()),
        (config(), growth::life("ext4")),
        (config(), growth::life("xfs")),
        (config(), growth::life("block")),
        (config(), pods::life()),
        (config(), features::directory_life()),
        (config(), features::directory_copies()),
        (without(&[Feature::Publish, Feature::Stage]), unstaged().filter(|call| !is_attaching(call)).collect()),
        (without(&[Feature::Stage]), unstaged().collect()),
    ]
}

fn is_attaching(call: &Call) -> bool {
    matches!(call, Call::ControllerPublishVolume(_) | Call::ControllerUnpublishVolume(_))
}

fn every_fault(calm: &mut Driver, calls: Vec<Call>) {
    for call in calls {
        let before = calm.clone();
        let expected = calm.call(call.clone());
        assert!(expected.is_ok(), "{call:?} {expected:?}");
        for fault in FAULTS {
            for after in 0..calm.ops.len() {
                let mut driver = before.clone();
                assert_eq!(driver.disturbed(call.clone(), after, fault), None, "{call:?} has an answer early");
                let answer = driver.call(call.clone());
                assert!(same(&answer, &expected), "{call:?} {fault:?} after {after}: {answer:?}");
                assert_eq!(driver.world, calm.world, "{call:?} {fault:?} after {after}");
                // What is acknowledged is on disk: a new process knows the same.
                let known = driver.facts.clone();
                driver.restart();
                assert_eq!(driver.facts, known, "{call:?} {fault:?} after {after}");
            }
        }
    }
}

// A call that was cut off and never repeated must not stand in the way of the call that undoes it.
#[test]
fn what_was_begun_can_be_undone_from_anywhere() {
    let undo = [delete("v"), detach("v", "n1"), unstage("v", STAGING), unpublish("v", "p1")];
    for (length, undo_from) in (1..=4).zip(0..) {
        for fault in FAULTS {
            for after in 0..5 {
                let mut driver = Driver::new();
                let clean = driver.world.clone();
                let calls = &life("v")[..length];
                driver.bring(&calls[..length - 1]);
                driver.disturbed(calls[length - 1].clone(), after, fault);
                for call in undo[..=undo_from].iter().rev() {
                    assert_eq!(driver.code(call.clone()), Code::Ok, "{call:?} {fault:?} after {after} of {length}");
                }
                driver.world.dirs.remove(STAGING);
                assert_eq!(driver.world, clean, "{fault:?} after {after} of {length}");
            }
        }
    }
}

// A deletion that was cut off is finished by whoever wants the name next, and no old byte comes back (83).
#[test]
fn a_name_can_be_used_again_after_a_deletion_that_was_cut_off() {
    for after in 0..4 {
        let mut driver = Driver::with(without(&[Feature::Publish]));
        driver.bring(&[create("v"), stage("v"), unstage("v", STAGING)]);
        assert_eq!(driver.world.filesystems().len(), 1);
        let cut = driver.disturbed(delete("v"), after, Fault::Crash).is_none();
        driver.bring(&[create("v")]);
        // Cut before the record said so, the volume was never deleted.
        let deleted = after > 0 || !cut;
        assert_eq!(driver.world.filesystems().is_empty(), deleted, "after {after}");
    }
}

// Reliability 83: a file that lies where the image goes was never a volume of ours.
#[test]
fn a_new_volume_holds_nobodys_bytes() {
    let mut driver = Driver::with(without(&[Feature::Publish]));
    let image = driver.config.image_path("v");
    let filesystem = Some(("ext4".into(), 64 << 20));
    driver
        .world
        .images
        .insert(image, Image { size: 64 << 20, content: "secret".into(), filesystem, ..Image::default() });
    // Not through the harness from the start: its machine has no images without a record.
    let (mut facts, config) = (driver.facts.clone(), driver.config.clone());
    let mut run = Run::new(create("v"), NOW);
    while let Step::Do(op) = run.step(&config, &mut facts) {
        let reply = driver.world.perform(&op).unwrap();
        run.did(&config, &mut facts, op, &reply);
    }
    driver.facts = facts;
    driver.bring(&[stage("v")]);
    assert_eq!(driver.world.images.values().next().unwrap().content, "");
}

// A volume whose last record could not be written is used all the same; its bytes must survive a restart (119).
#[test]
fn bytes_are_never_written_to_a_volume_that_may_be_made_anew() {
    let mut driver = Driver::with(without(&[Feature::Publish]));
    assert_eq!(driver.disturbed(create("v"), 0, Fault::Fails), None);
    driver.bring(&[stage("v"), unstage("v", STAGING)]);
    driver.restart();
    driver.bring(&[create("v")]);
    assert_eq!(driver.world.filesystems().len(), 1);
}

// What nobody could write to is made anew after an interruption; what somebody could is never touched again.
#[test]
fn a_staging_cut_off_anywhere_begins_anew_until_the_volume_is_somebodys() {
    for after in 0..9 {
        let mut driver = Driver::with(without(&[Feature::Publish]));
        driver.bring(&[create("v")]);
        driver.disturbed(stage("v"), after, Fault::Crash);
        let image = driver.config.image_path("v");
        if let Some(image) = driver.world.images.get_mut(&image) {
            image.content = "marked".into();
        }
        let known = driver.facts.volumes()["v"].bytes == crate::Bytes::There;
        driver.bring(&[stage("v")]);
        let content = driver.world.images[&image].content.clone();
        assert_eq!(content == "marked", known, "after {after}");
    }
}

// A disk that is full is a final refusal, so nothing of the call may be left; and there is room again afterwards.
#[test]
fn a_call_that_finds_the_disk_full_leaves_nothing_and_works_later() {
    let mut calm = Driver::with(without(&[Feature::Publish]));
    calm.bring(&[create("v"), stage("v")]);
    let calls = [
        (create("n"), delete("n")),
        (snapshots::take("v", "s"), snapshots::drop_snapshot("s")),
        (snapshots::copy("c", "v"), delete("c")),
        (snapshots::take_group(&["v"], "g"), snapshots::drop_group("g")),
    ];
    for (call, undo) in calls {
        let mut done = calm.clone();
        done.bring(core::slice::from_ref(&call));
        for after in 0..done.ops.len() {
            let mut driver = calm.clone();
            let answer = driver.disturbed(call.clone(), after, Fault::Full);
            let code = answer.unwrap().unwrap_err().code;
            assert_eq!(code, Code::ResourceExhausted, "{call:?} after {after}");
            assert_eq!(driver.world, calm.world, "{call:?} after {after}");
            assert_eq!(driver.facts.promised(), calm.facts.promised());
            driver.bring(core::slice::from_ref(&call));
            assert_eq!(driver.world, done.world);
        }
        let mut ends = done.clone();
        ends.bring(core::slice::from_ref(&undo));
        for after in 0..ends.ops.len() {
            let mut driver = done.clone();
            driver.disturbed(undo.clone(), after, Fault::Full);
            driver.bring(core::slice::from_ref(&undo));
            assert_eq!(driver.world, calm.world, "{undo:?} after {after}");
        }
    }
}

fn any_call() -> impl Strategy<Value = Call> {
    let id = prop_oneof![Just("v"), Just("w")];
    let pod = prop_oneof![Just("p1"), Just("p2")];
    (id, pod, 0..19u8).prop_map(|(id, pod, kind)| match kind {
        0 => create(id),
        1 => attach(id),
        2 => stage(id),
        3 => publish(id, pod),
        4 => unpublish(id, pod),
        5 => unstage(id, STAGING),
        6 => detach(id, "n1"),
        7 => delete(id),
        8 => snapshots::take(id, pod),
        9 => snapshots::drop_snapshot(pod),
        10 => snapshots::restore(id, pod),
        11 => snapshots::copy(id, if id == "v" { "w" } else { "v" }),
        12 => snapshots::take_group(&["v", "w"], pod),
        13 => snapshots::drop_group(pod),
        14 => growth::grow(id, 128 << 20),
        15 => growth::grow_node(id, STAGING),
        16 => pods::inline("inline", pod, &[("size", "32Mi")]),
        17 => unpublish("inline", pod),
        _ => Call::CreateVolume(create_request(id, 3 << 30, 0)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    // Two drivers get the same calls; one is disturbed at random and repeats. Nobody can tell them apart afterwards.
    #[test]
    fn a_disturbed_driver_ends_like_a_calm_one(
        calls in prop::collection::vec((any_call(), prop::collection::vec((0..5usize, 0..3usize), 0..3)), 1..40),
    ) {
        let (mut calm, mut shaken) = (Driver::new(), Driver::new());
        for (call, faults) in calls {
            let expected = calm.call(call.clone());
            let early = faults.into_iter().find_map(|(after, fault)| shaken.disturbed(call.clone(), after, FAULTS[fault]));
            let answer = early.unwrap_or_else(|| shaken.call(call.clone()));
            prop_assert!(same(&answer, &expected), "{call:?}: {answer:?}, not {expected:?}");
            prop_assert_eq!(&shaken.world, &calm.world);
        }
    }
}
