//! The group `coordination.k8s.io`.

use super::meta::OBJECT_META;
use crate::Type::{Int32, Message, MicroTime, String};
use crate::messages;

messages! {
    in "k8s.io.api.coordination.v1";

    LEASE_SPEC = "LeaseSpec" {
        1 holderIdentity? String, 2 leaseDurationSeconds? Int32, 3 acquireTime? MicroTime, 4 renewTime? MicroTime,
        5 leaseTransitions? Int32, 6 strategy? String, 7 preferredHolder? String,
    }
    LEASE = "Lease" { 1 metadata: Message(&OBJECT_META), 2 spec: Message(&LEASE_SPEC) }
}
