//! The suite judged: a driver that keeps its promises passes, and for each promise it breaks the named case fails.

mod evil;

use evil::{Defect, judge, judge_in_place_of};
use prove_conformance::CaseVerdict;
use rules_translate::Plugin;

#[tokio::test]
async fn a_driver_that_keeps_its_promises_passes() {
    let report = judge(Defect::NoneAtAll, &[]).await;
    let failed: Vec<String> = report
        .finished
        .iter()
        .filter_map(|done| match &done.verdict {
            CaseVerdict::Failed(why) => Some(format!("{}: {why}", done.case.name)),
            CaseVerdict::Passed | CaseVerdict::Warned(_) | CaseVerdict::Skipped(_) => None,
        })
        .collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    assert!(report.count().passed > 200, "{:?}", report.count());
}

/// The defects, and the case that has to find each.
const PLANTED: &[(Defect, &str)] = &[
    (Defect::MakesTwoOfOneName, "controller/create/same-name-same-size"),
    (Defect::EchoesSecrets, "secrets/create/refusal"),
    (Defect::SecretsInContext, "secrets/create/answer"),
    (Defect::IgnoresReadOnly, "data/read-only/refuses-writes"),
    (Defect::LosesStateAtRestart, "restart/create/found-again"),
    (Defect::WrongCode, "controller/create/no-name"),
    (Defect::PagesOverlap, "controller/list/pages-complete"),
    (Defect::TakesAnyToken, "controller/list/token-invalid"),
    (Defect::DeletesInUse, "controller/delete/published"),
    (Defect::DeletesByPath, "hostile/id/delete"),
    (Defect::EphemeralByPath, "hostile/id/publish-ephemeral"),
    (Defect::CutsNames, "controller/create/long-names-differ-at-the-end"),
    (Defect::MakesTooSmall, "controller/create/with-capacity"),
    (Defect::ForgetsSource, "controller/create/source-named-in-answer"),
    (Defect::Shrinks, "controller/expand/never-shrinks"),
    (Defect::ForgetsNodes, "controller/attach/listed-nodes"),
    (Defect::LeavesTarget, "node/unpublish/target-removed"),
    (Defect::SharesData, "data/files/not-in-other-volumes"),
    (Defect::LiveSnapshots, "data/snapshot/is-of-its-moment"),
    (Defect::MountsAgain, "node/publish/repeat-mounts-once"),
    (Defect::GroupWithoutMember, "group/create/one-snapshot-a-volume"),
    (Defect::ElsewherePlaced, "topology/create/reachable-from-the-node"),
    (Defect::RacyCreate, "concurrency/create/one-name"),
    (Defect::NewTimeEachTime, "controller/snapshot/repeat-answers-the-same"),
    (Defect::UnpublishOnce, "node/unpublish/ten-times"),
    (Defect::PublishesUnstaged, "node/publish/not-staged"),
    (Defect::AttachesUnknownNode, "controller/attach/node-unknown"),
    (Defect::DiesOfNegativePages, "controller/list/negative-page"),
];

#[tokio::test]
async fn each_broken_promise_is_found_by_its_case() {
    let mut missed = Vec::new();
    for (defect, case) in PLANTED {
        let report = judge(*defect, &[case]).await;
        match report.verdict(case) {
            Some(CaseVerdict::Failed(_)) => {}
            // Without root nobody can look into a mount, and the report says so.
            Some(CaseVerdict::Skipped(why)) if why.contains("root") => {}
            other => missed.push(format!("{defect:?}: {case} was {other:?}")),
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

/// The defects of a driver in the place of Amazon's plugin, the case that has to find each, and what it says.
const PLANTED_IN_PLACE: &[(Defect, &str, &str)] = &[
    (Defect::NeedsItsContext, "in-tree/volume/its-whole-life", "the shelf is not told"),
    (Defect::CallsDisksByUrl, "in-tree/volume/found-by-its-record", "cannot be translated"),
    (Defect::KnowsFewParameters, "in-tree/class/encrypted=true", "unknown parameter encrypted"),
    (Defect::KeepsDeleted, "in-tree/volume/its-whole-life", "is still there"),
    (Defect::IgnoresReadOnly, "in-tree/volume/read-only", "a file was written"),
    (Defect::PublishesUnstaged, "in-tree/class/fstype=xfs", "only plain files"),
    (Defect::NeverGrowsOnNode, "in-tree/volume/grows", "the filesystem stays small"),
];

// S4-47: a driver has parity when it serves what the plugin served; what it serves otherwise is found.
#[tokio::test]
async fn a_driver_that_does_not_serve_what_the_plugin_served_is_found() {
    let plain = [
        "volume/its-whole-life",
        "volume/found",
        "volume/read-only",
        "volume/grows",
        "class/encrypted",
        "class/iopsPerGB",
    ];
    let report = judge_in_place_of(Plugin::AwsEbs, Defect::NoneAtAll, &plain).await;
    assert!(report.holds() && report.count().passed >= 6, "{}", report.text(false));
    for (defect, case, words) in PLANTED_IN_PLACE {
        let report = judge_in_place_of(Plugin::AwsEbs, *defect, &[case]).await;
        match report.verdict(case) {
            Some(CaseVerdict::Failed(why)) => assert!(why.contains(words), "{defect:?}: {why}"),
            // Without root nobody can look into a mount, and the report says so.
            Some(CaseVerdict::Skipped(why)) if why.contains("root") => {}
            other => panic!("{defect:?}: {case} was {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_interrupted_run_says_so_and_leaves_nothing() {
    let (report, left) =
        evil::judge_until(Defect::NoneAtAll, &["concurrency/"], std::time::Duration::from_millis(30)).await;
    assert!(report.interrupted && !report.holds());
    assert!(report.text(false).contains("the run was interrupted and has cleaned up"));
    assert_eq!(left, (0, 0), "volumes and snapshots left behind");
}

#[tokio::test]
async fn the_last_line_is_the_verdict_alone() {
    let report = judge(Defect::WrongCode, &["controller/create/no-name", "identity/"]).await;
    let text = report.text(false);
    let counts = report.count();
    let line = format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    assert_eq!(text.lines().last(), Some(line.as_str()));
    assert!(
        text.contains(
            "✗ no-name: CreateVolume without a name was answered INTERNAL: no name, expected INVALID_ARGUMENT"
        )
    );
    assert_eq!(report.json()["failed"], 1);
    assert!(report.junit().contains("<failure message=\"CreateVolume without a name"));
}
