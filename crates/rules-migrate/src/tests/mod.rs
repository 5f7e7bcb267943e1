//! Tables: what a cluster looks like, and what is said of it.

mod objects;
mod programs;
mod stages;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object};
use serde_json::{Value, json};

use crate::{MigrationPlan, PluginPlan, Survey};

pub(crate) const EBS: &str = "ebs.csi.aws.com";
pub(crate) const PLUGIN: &str = "kubernetes.io/aws-ebs";

/// A cluster, told object by object.
pub(crate) struct Cluster(pub(crate) Survey);

impl Cluster {
    pub(crate) fn new() -> Cluster {
        Cluster(Survey::default())
    }

    /// One in which every kind was asked for.
    pub(crate) fn live() -> Cluster {
        let mut survey = Survey::default();
        Survey::KINDS.into_iter().for_each(|kind| survey.asked_for(kind));
        Cluster(survey)
    }

    pub(crate) fn with(mut self, kind: Kind, json: Value) -> Cluster {
        self.0.add(&Object::from_json(kind, json).unwrap());
        self
    }

    /// A volume of EBS with these annotations.
    pub(crate) fn volume(self, name: &str, id: &str, annotations: Value) -> Cluster {
        let metadata =
            json!({ "name": name, "annotations": annotations, "labels": { api::names::ZONE: "us-west-2a" } });
        let claim = json!({ "namespace": "default", "name": name });
        let spec = json!({ "awsElasticBlockStore": { "volumeID": id }, "claimRef": claim });
        self.with(Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec }))
    }

    /// A volume that the plugin provisioned, marked or not.
    pub(crate) fn provisioned(self, name: &str, marked: bool) -> Cluster {
        let mut annotations = json!({ api::names::PROVISIONED_BY: PLUGIN });
        if marked {
            annotations[api::names::MIGRATED_TO] = EBS.into();
        }
        let id = alloc::format!("vol-{name}");
        self.volume(name, &id, annotations)
    }

    /// A node in a zone; with the driver on it, and with the annotation that lists the plugin.
    pub(crate) fn node(self, name: &str, driver: bool, listed: bool) -> Cluster {
        let labels = json!({ api::names::ZONE: "us-west-2a" });
        let entry = json!({ "name": EBS, "nodeID": name, "topologyKeys": ["topology.ebs.csi.aws.com/zone"] });
        let drivers = if driver { json!([entry]) } else { json!([]) };
        let list = alloc::format!("kubernetes.io/gce-pd,{PLUGIN}");
        let annotations = if listed { json!({ api::names::MIGRATED_PLUGINS: list }) } else { json!({}) };
        let metadata = json!({ "name": name, "annotations": annotations });
        self.with(Kind::Node, json!({ "metadata": { "name": name, "labels": labels } }))
            .with(Kind::CSINode, json!({ "metadata": metadata, "spec": { "drivers": drivers } }))
    }

    pub(crate) fn plan(&self) -> MigrationPlan {
        self.0.plan()
    }

    /// The plan for the only plugin.
    pub(crate) fn only(&self) -> PluginPlan {
        let plan = self.plan();
        assert_eq!(plan.plugins.len(), 1, "{plan:?}");
        plan.plugins.into_iter().next().unwrap()
    }

    /// What stands in the way, in sentences.
    pub(crate) fn obstacles(&self, blocks: bool) -> Vec<String> {
        let plan = self.only();
        let these = plan.obstacles.iter().filter(|obstacle| obstacle.blocks() == blocks);
        these.map(ToString::to_string).collect()
    }
}
