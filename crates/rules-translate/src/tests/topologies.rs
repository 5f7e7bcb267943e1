//! TR-7 to TR-11, and the tables of zones.

use api::names::{REGION, REGION_BETA, ZONE, ZONE_BETA};
use api::{PersistentVolume, Value};
use serde_json::json;

use super::{sentence, volume};
use crate::{Plugin, volume_to_csi, volume_to_in_tree};

const EBS: &str = "topology.ebs.csi.aws.com/zone";

fn ebs(labels: Value, terms: Value) -> PersistentVolume {
    let affinity = if terms.is_null() { json!(null) } else { json!({ "required": { "nodeSelectorTerms": terms } }) };
    let mut spec = json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } });
    if !affinity.is_null() {
        spec["nodeAffinity"] = affinity;
    }
    volume(json!({ "metadata": { "name": "pv", "labels": labels }, "spec": spec }))
}

fn term(pairs: &[(&str, &[&str])]) -> Value {
    let all = pairs.iter().map(|(key, values)| json!({ "key": key, "operator": "In", "values": values }));
    json!({ "matchExpressions": all.collect::<Value>() })
}

fn places(volume: &PersistentVolume) -> Value {
    serde_json::to_value(&volume.spec).unwrap()["nodeAffinity"]["required"]["nodeSelectorTerms"].clone()
}

// TR-7, TR-8.
#[test]
fn zones_get_the_drivers_name_whichever_generation_they_are_of() {
    for (zone, region) in [(ZONE, REGION), (ZONE_BETA, REGION_BETA)] {
        let labelled = ebs(json!({ zone: "us-west-2b__ us-west-2a__us-west-2a__" }), json!(null));
        let seen = volume_to_csi(&labelled).unwrap().object;
        assert_eq!(places(&seen), json!([term(&[(EBS, &["us-west-2a", "us-west-2b"])])]), "{zone}");
        assert_eq!(seen.metadata.labels, labelled.metadata.labels, "labels stay");
        let terms = json!([term(&[(zone, &["us-west-2a"]), (region, &["us-west-2"])]), term(&[("host", &["h"])])]);
        let seen = volume_to_csi(&ebs(json!({}), terms)).unwrap().object;
        let first = term(&[(EBS, &["us-west-2a"]), (REGION, &["us-west-2"])]);
        assert_eq!(places(&seen), json!([first, term(&[("host", &["h"])])]), "{zone}");
    }
}

// TR-8: what the affinity says of zones counts, and labels only where it says nothing.
#[test]
fn a_label_is_added_to_every_place_unless_the_affinity_names_zones() {
    let terms = json!([term(&[("host", &["g"])]), term(&[("host", &["h"])])]);
    let seen = volume_to_csi(&ebs(json!({ ZONE: "z" }), terms)).unwrap().object;
    let with = |host: &str| term(&[("host", &[host]), (EBS, &["z"])]);
    assert_eq!(places(&seen), json!([with("g"), with("h")]));
    let seen = volume_to_csi(&ebs(json!({ ZONE: "z" }), json!([term(&[(ZONE, &["y"])])]))).unwrap().object;
    assert_eq!(places(&seen), json!([term(&[(EBS, &["y"])])]));
    let seen = volume_to_csi(&ebs(json!({ ZONE: " __ " }), json!(null))).unwrap().object;
    assert!(places(&seen).is_null());
}

fn back(plugin: Plugin, handle: &str, zones: &[&str]) -> Result<PersistentVolume, crate::Error> {
    let terms = json!([term(&[(plugin.zone_key().unwrap(), zones)])]);
    let spec = json!({
        "csi": { "driver": plugin.driver(), "volumeHandle": handle },
        "nodeAffinity": { "required": { "nodeSelectorTerms": terms } },
    });
    let there = volume(json!({ "metadata": { "name": "pv" }, "spec": spec }));
    volume_to_in_tree(&there).map(|translated| translated.object)
}

// TR-9, TR-16: the regions of Amazon's zones.
#[test]
fn regions_are_told_from_the_names_of_zones() {
    for (zone, region) in [
        ("us-west-2a", "us-west-2"),
        ("us-gov-east-1a", "us-gov-east-1"),
        ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        ("us-west-2-lax-1a", "us-west-2"),
    ] {
        let seen = back(Plugin::AwsEbs, "vol-1", &[zone]).unwrap();
        assert_eq!(places(&seen), json!([term(&[(ZONE, &[zone]), (REGION, &[region])])]));
        assert_eq!(seen.metadata.labels[ZONE], zone);
        assert_eq!(seen.metadata.labels[REGION], region);
    }
    for zones in [&[][..], &["us-west-2a", "us-east-1a"], &["us-west-2"], &["us-west-2ab"], &["us-west"], &["é-b-é"]]
    {
        assert!(back(Plugin::AwsEbs, "vol-1", zones).is_err(), "{zones:?}");
    }
    assert_eq!(
        sentence(back(Plugin::AwsEbs, "vol-1", &["us-west"])),
        "the zones us-west of kubernetes.io/aws-ebs do not name exactly one region"
    );
    let seen = back(Plugin::GcePd, "projects/p/zones/z/disks/d", &["us-east1-b", "us-east1-a"]).unwrap();
    assert_eq!(seen.metadata.labels[ZONE], "us-east1-a__us-east1-b"); // TR-22
    assert_eq!(seen.metadata.labels[REGION], "us-east1");
    assert!(back(Plugin::GcePd, "projects/p/zones/z/disks/d", &["us-east1"]).is_err());
}

// TR-9, TR-38: no region where the plugin knew none; a label that is there has the last word.
#[test]
fn labels_that_are_there_stay() {
    let mut there = back(Plugin::Cinder, "c", &["nova"]).unwrap();
    assert_eq!(there.metadata.labels[ZONE], "nova");
    assert!(!there.metadata.labels.contains_key(REGION));
    there.metadata.labels.insert(ZONE.into(), "mine".into());
    let again = volume_to_in_tree(&volume_to_csi(&there).unwrap().object).unwrap().object;
    assert_eq!(again, there);
}
