//! Kinds that hold data, rights and notes.

use wire::messages::*;

use super::meta::{META, OBJECT};
use super::tables;
use crate::kinds::messages::*;

tables! {
    NAMESPACE = crate::kinds::messages::NAMESPACE {
        honoured metadata => META;
        honoured spec => NAMESPACE_WISHES;
        honoured status;
    }
    NAMESPACE_WISHES = NAMESPACE_SPEC {
        warned finalizers ["kubernetes"]: "they do not hold the namespace up; use metadata.finalizers";
    }
    CONFIG_MAP = wire::messages::CONFIG_MAP {
        honoured metadata => META;
        honoured data: "Texts by name.";
        honoured binaryData: "Bytes by name, in base64.";
        honoured immutable: "Whether the data stays as it is for good.";
    }
    SECRET = wire::messages::SECRET {
        honoured metadata => META;
        honoured data: "Bytes by name, in base64.";
        honoured stringData: "Texts by name, which become data.";
        honoured type: "What the data is for.";
        honoured immutable: "Whether the data stays as it is for good.";
    }
    ACCOUNT = SERVICE_ACCOUNT {
        honoured metadata => META;
        honoured secrets: "For people and programs to read; nothing here acts on it." => OBJECT;
        warned imagePullSecrets: "no images are pulled here, so nobody uses them";
        honoured automountServiceAccountToken: "Whether pods of this account that do not say find a token where \
            clients look for it; not set means no.";
    }
    EVENT = wire::messages::EVENT {
        honoured metadata => META;
        honoured involvedObject, related => OBJECT;
        honoured reason, message, firstTimestamp, lastTimestamp, count, type, eventTime, action, reportingComponent,
            reportingInstance;
        honoured source => EVENT_FROM;
        honoured series => EVENT_AGAIN;
    }
    EVENT_FROM = EVENT_SOURCE {
        honoured component, host;
    }
    EVENT_AGAIN = EVENT_SERIES {
        honoured count, lastObservedTime;
    }
    LEASE = wire::messages::LEASE {
        honoured metadata => META;
        honoured spec => LEASE_TERMS;
    }
    LEASE_TERMS = LEASE_SPEC {
        honoured holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions;
        warned strategy, preferredHolder: "nobody chooses among candidates here: whoever takes the lease first has it";
    }
    GRANT = REFERENCE_GRANT {
        honoured metadata => META;
        honoured spec => GRANT_TERMS;
    }
    GRANT_TERMS = REFERENCE_GRANT_SPEC {
        honoured from => GRANT_FROM;
        honoured to => GRANT_TO;
    }
    GRANT_FROM = REFERENCE_GRANT_FROM {
        honoured group, kind, namespace;
    }
    GRANT_TO = REFERENCE_GRANT_TO {
        honoured group, kind, name;
    }
    ROLE = crate::kinds::messages::ROLE {
        honoured metadata => META;
        honoured rules: "What is allowed." => RULE;
    }
    CLUSTER_ROLE = crate::kinds::messages::CLUSTER_ROLE {
        honoured metadata => META;
        honoured rules: "What is allowed." => RULE;
        refused aggregationRule: "nothing gathers rules of other roles here, so this role would allow nothing; write \
            them out in rules";
    }
    RULE = POLICY_RULE {
        honoured verbs, apiGroups, resources, resourceNames, nonResourceURLs;
    }
    BINDING = ROLE_BINDING {
        honoured metadata => META;
        honoured subjects: "Who gets the rights." => SUBJECTS;
        honoured roleRef: "The role that says which." => ROLE_NAMED;
    }
    CLUSTER_BINDING = CLUSTER_ROLE_BINDING {
        honoured metadata => META;
        honoured subjects: "Who gets the rights." => SUBJECTS;
        honoured roleRef: "The role that says which." => ROLE_NAMED;
    }
    SUBJECTS = SUBJECT {
        honoured kind, apiGroup, name, namespace;
    }
    ROLE_NAMED = ROLE_REF {
        honoured apiGroup, kind, name;
    }
}
