//! Metadata and the small references many kinds share.

use super::Shape::{Boolean, Integer, Keyed, Objects, OpaqueList, Text, TextMap, TextSet, Texts, Time};
use super::types;

types! {
    OWNER_REFERENCE = "OwnerReference" {
        apiVersion: Text, blockOwnerDeletion: Boolean, controller: Boolean, kind: Text, name: Text, uid: Text,
    }
    OBJECT_META = "ObjectMeta" {
        annotations: TextMap, creationTimestamp: Time, deletionGracePeriodSeconds: Integer,
        deletionTimestamp: Time, finalizers: TextSet, generateName: Text, generation: Integer, labels: TextMap,
        managedFields: OpaqueList, name: Text, namespace: Text, ownerReferences: Keyed(&OWNER_REFERENCE, "uid"),
        resourceVersion: Text, selfLink: Text, uid: Text,
    }
    LABEL_SELECTOR_REQUIREMENT = "LabelSelectorRequirement" {
        key: Text, operator: Text, values: Texts,
    }
    LABEL_SELECTOR = "LabelSelector" {
        matchExpressions: Objects(&LABEL_SELECTOR_REQUIREMENT), matchLabels: TextMap,
    }
    OBJECT_REFERENCE = "ObjectReference" {
        apiVersion: Text, fieldPath: Text, kind: Text, name: Text, namespace: Text, resourceVersion: Text,
        uid: Text,
    }
    LOCAL_OBJECT_REFERENCE = "LocalObjectReference" {
        name: Text,
    }
    SECRET_REFERENCE = "SecretReference" {
        name: Text, namespace: Text,
    }
    TOPOLOGY_SELECTOR_LABEL_REQUIREMENT = "TopologySelectorLabelRequirement" {
        key: Text, values: Texts,
    }
    TOPOLOGY_SELECTOR_TERM = "TopologySelectorTerm" {
        matchLabelExpressions: Objects(&TOPOLOGY_SELECTOR_LABEL_REQUIREMENT),
    }
    NODE_SELECTOR_REQUIREMENT = "NodeSelectorRequirement" {
        key: Text, operator: Text, values: Texts,
    }
    NODE_SELECTOR_TERM = "NodeSelectorTerm" {
        matchExpressions: Objects(&NODE_SELECTOR_REQUIREMENT), matchFields: Objects(&NODE_SELECTOR_REQUIREMENT),
    }
    NODE_SELECTOR = "NodeSelector" {
        nodeSelectorTerms: Objects(&NODE_SELECTOR_TERM),
    }
}
